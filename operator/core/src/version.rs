//! Versions of skills and the constraints that choose among them.
//!
//! Order and comparison are the semver crate's. The grammar of constraints is the product's own: docs/adr/0003 says
//! where it differs from the crate's, and why.

use std::{fmt, str::FromStr};

use semver::{BuildMetadata, Comparator, Op, Prerelease, Version, VersionReq};
use skillet_api::Reason;

/// Longest number in a version, in digits; the same bound as in the CRD's pattern.
const MAX_DIGITS: usize = 9;

/// A skill's version: three numbers without leading zeros, no pre-release and no build part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SkillSemver(Version);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version; write three numbers like 1.2.3, without leading zeros and without a suffix")]
pub struct VersionError(String);

impl SkillSemver {
    pub fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self(Version::new(major.into(), minor.into(), patch.into()))
    }
}

impl FromStr for SkillSemver {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let wrong = || VersionError(text.to_owned());
        let short = text.split('.').all(|number| number.len() <= MAX_DIGITS);
        let version = Version::parse(text).map_err(|_| wrong())?;
        let plain = version.pre.is_empty() && version.build.is_empty();
        if short && plain { Ok(Self(version)) } else { Err(wrong()) }
    }
}

impl fmt::Display for SkillSemver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The set of acceptable versions: `*`, `latest`, one version, or comparisons that must all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    text: String,
    requirement: VersionReq,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    #[error("the version constraint is empty; write * for the newest version or leave the field out")]
    Empty,
    #[error("the version constraint is {0} characters long; at most 256 are read")]
    TooLong(usize),
    #[error("the version constraint {0:?} begins or ends with a blank; remove it")]
    OuterBlank(String),
    #[error("in the version constraint {text:?}, {part:?} stands alone or not at all; remove the rest")]
    NotAlone { text: String, part: String },
    #[error("in the version constraint {text:?}, there is nothing before or after a comma")]
    EmptyPart { text: String },
    #[error("in the version constraint {text:?}, {part:?} is not read: {why}")]
    Part { text: String, part: String, why: &'static str },
}

impl ConstraintError {
    pub fn reason(&self) -> Reason {
        Reason::ConstraintInvalid
    }
}

const MAX_TEXT: usize = 256;

/// Longest operator first, so that `>=` is never read as `>`.
const OPERATORS: [(&str, Op); 8] = [
    (">=", Op::GreaterEq),
    ("<=", Op::LessEq),
    ("==", Op::Exact),
    (">", Op::Greater),
    ("<", Op::Less),
    ("=", Op::Exact),
    ("^", Op::Caret),
    ("~", Op::Tilde),
];

impl Constraint {
    /// Returns the constraint that every version matches.
    pub fn any() -> Self {
        Self { text: "*".to_owned(), requirement: VersionReq::STAR }
    }

    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        let length = text.chars().count();
        if text.trim().is_empty() {
            return Err(ConstraintError::Empty);
        }
        if length > MAX_TEXT {
            return Err(ConstraintError::TooLong(length));
        }
        if text.trim() != text {
            return Err(ConstraintError::OuterBlank(text.to_owned()));
        }
        if is_any(text) {
            return Ok(Self { text: text.to_owned(), requirement: VersionReq::STAR });
        }
        let mut comparators = Vec::new();
        for range in text.split(',') {
            if range.trim().is_empty() {
                return Err(ConstraintError::EmptyPart { text: text.to_owned() });
            }
            for part in range.split_whitespace() {
                read_part(text, part, &mut comparators)?;
            }
        }
        Ok(Self { text: text.to_owned(), requirement: VersionReq { comparators } })
    }

    pub fn matches(&self, version: &SkillSemver) -> bool {
        self.requirement.matches(&version.0)
    }
}

fn is_any(part: &str) -> bool {
    matches!(part, "*" | "latest")
}

/// Parses one comparison, such as `^1.2.3`, and appends its comparators.
fn read_part(text: &str, part: &str, comparators: &mut Vec<Comparator>) -> Result<(), ConstraintError> {
    if is_any(part) {
        return Err(ConstraintError::NotAlone { text: text.to_owned(), part: part.to_owned() });
    }
    let (operator, rest) = OPERATORS
        .into_iter()
        .find_map(|(sign, op)| part.strip_prefix(sign).map(|rest| (op, rest)))
        .unwrap_or((Op::Exact, part));
    let version: SkillSemver = rest.parse().map_err(|_| ConstraintError::Part {
        text: text.to_owned(),
        part: part.to_owned(),
        why: explain_part(rest),
    })?;
    let version = version.0;
    if operator == Op::Caret {
        // The crate's caret ends at 0.4.0 for ^0.3.0; here it means "same major" for every major.
        comparators.push(comparator(Op::Less, &Version::new(version.major + 1, 0, 0)));
        comparators.push(comparator(Op::GreaterEq, &version));
    } else {
        comparators.push(comparator(operator, &version));
    }
    Ok(())
}

fn comparator(op: Op, version: &Version) -> Comparator {
    Comparator {
        op,
        major: version.major,
        minor: Some(version.minor),
        patch: Some(version.patch),
        pre: Prerelease::EMPTY,
    }
}

/// Returns a hint for frequent mistakes in the version after an operator.
fn explain_part(rest: &str) -> &'static str {
    if rest.is_empty() {
        return "the version must follow its operator without a blank, like ^1.2.3";
    }
    if rest.strip_prefix(['v', 'V']).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return "write the version without v, like 1.2.3";
    }
    let without_suffix = Version::parse(rest).ok().filter(|version: &Version| {
        version.pre != Prerelease::EMPTY || version.build != BuildMetadata::EMPTY
    });
    if without_suffix.is_some() {
        return "skills have no pre-release or build versions; write three numbers like 1.2.3";
    }
    if rest.split('.').count() < 3 && rest.split('.').all(|n| n.parse::<u64>().is_ok()) {
        return "all three numbers are needed, like 1.2.3";
    }
    "write an operator (^ ~ > >= < <= == =) and three numbers, like ^1.2.3"
}

impl FromStr for Constraint {
    type Err = ConstraintError;

    fn from_str(text: &str) -> Result<Self, ConstraintError> {
        Self::parse(text)
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the highest version that matches.
pub fn resolve<'a>(
    constraint: &Constraint,
    available: impl IntoIterator<Item = &'a SkillSemver>,
) -> Option<&'a SkillSemver> {
    available.into_iter().filter(|version| constraint.matches(version)).max()
}

/// Returns the version that runs if a request names none: the wanted one. If it is not available, the newest below it runs,
/// else the newest of all.
pub fn current<'a>(
    wanted: Option<&SkillSemver>,
    available: impl IntoIterator<Item = &'a SkillSemver>,
) -> Option<&'a SkillSemver> {
    available.into_iter().max_by_key(|version| (wanted.is_none_or(|wanted| *version <= wanted), *version))
}

/// Most versions that one message lists.
const MAX_LISTED: usize = 10;

/// Lists versions for a message, in the order given, which is highest first.
pub fn list<'a>(versions: impl IntoIterator<Item = &'a SkillSemver>) -> String {
    let all: Vec<String> = versions.into_iter().map(ToString::to_string).collect();
    let (shown, rest) = all.split_at(all.len().min(MAX_LISTED));
    let tail = if rest.is_empty() { String::new() } else { format!(" and {} older ones", rest.len()) };
    format!("{}{tail}", shown.join(", "))
}

/// Sorts, highest first.
pub fn newest_first(versions: &mut [SkillSemver]) {
    versions.sort_unstable_by(|a, b| b.cmp(a));
}

#[cfg(test)]
mod tests;

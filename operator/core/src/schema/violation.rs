//! Violations of a schema in words: the position, the expectation and the value.

use std::fmt;

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

use crate::text::truncate;

/// Longest value that is shown, in bytes.
const MAX_SHOWN: usize = 72;
/// Most violations that one message lists.
const MAX_LISTED: usize = 5;

/// A position at which a value violates a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer into the value; empty is the value itself.
    pub pointer: String,
    /// The expectation and the value, such as `integer, got "x"`.
    pub expected: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() { "(root)" } else { &self.pointer };
        write!(f, "{pointer}: expected {}", self.expected)
    }
}

impl From<&ValidationError<'_>> for Violation {
    fn from(error: &ValidationError<'_>) -> Self {
        Self { pointer: error.instance_path().to_string(), expected: expectation(error) }
    }
}

/// Lists at most five violations in one sentence, and the number of the others.
pub fn summarize(violations: &[Violation]) -> String {
    let listed: Vec<String> = violations.iter().take(MAX_LISTED).map(ToString::to_string).collect();
    match violations.len().saturating_sub(MAX_LISTED) {
        0 => listed.join("; "),
        more => format!("{}; and {more} more", listed.join("; ")),
    }
}

/// Returns a value as compact JSON, cut if it is long.
pub(super) fn short(value: &Value) -> String {
    let text = value.to_string();
    let (head, is_cut) = truncate(&text, MAX_SHOWN);
    if is_cut { format!("{head}...") } else { text }
}

/// Returns the expectation and the value.
pub(super) fn expectation(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Required { .. }
        | Kind::AdditionalProperties { .. }
        | Kind::UnevaluatedProperties { .. }
        | Kind::PropertyNames { .. } => wanted(error),
        _ => format!("{}, got {}", wanted(error), short(error.instance())),
    }
}

fn wanted(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Type { kind } => types(kind),
        Kind::Required { property } => format!("property {property}, which is missing"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("no property {}", names(unexpected))
        }
        Kind::FalseSchema if is_about_further_properties(error) => "no further property".to_owned(),
        Kind::FalseSchema => "nothing here".to_owned(),
        Kind::Enum { options } => format!("one of {}", short(options)),
        Kind::Constant { expected_value } => short(expected_value),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => alternatives(error, context),
        Kind::OneOfMultipleValid { .. } => "what exactly one of oneOf describes".to_owned(),
        Kind::Not { schema } => format!("anything but {}", short(schema)),
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("at least {limit} characters"),
        Kind::MaxLength { limit } => format!("at most {limit} characters"),
        Kind::MinItems { limit } => format!("at least {limit} items"),
        Kind::MaxItems { limit } => format!("at most {limit} items"),
        Kind::MinProperties { limit } => format!("at least {limit} properties"),
        Kind::MaxProperties { limit } => format!("at most {limit} properties"),
        Kind::UniqueItems => "items that differ from each other".to_owned(),
        Kind::Pattern { pattern } => format!("text that matches {}", short(&Value::from(pattern.as_str()))),
        Kind::Format { format } => format!("format {format}"),
        Kind::PropertyNames { error } => format!("other property names: {}", expectation(error)),
        // Other kinds are rare, and the library describes them in whole sentences.
        _ => {
            let text = error.masked().to_string();
            let (head, is_cut) = truncate(&text, 3 * MAX_SHOWN);
            format!("otherwise ({head}{})", if is_cut { "..." } else { "" })
        }
    }
}

/// Returns `integer or null` if every alternative fails at the value itself; else only that none matches.
fn alternatives(error: &ValidationError<'_>, context: &[Vec<ValidationError<'static>>]) -> String {
    let simple = |branch: &Vec<ValidationError<'static>>| {
        let first = branch.first().filter(|first| first.instance_path() == error.instance_path())?;
        let is_nested = matches!(first.kind(), Kind::AnyOf { .. } | Kind::OneOfNotValid { .. });
        (branch.len() == 1 && !is_nested).then(|| wanted(first))
    };
    let branches: Option<Vec<String>> = context.iter().map(simple).collect();
    match branches {
        Some(branches) if (1..=MAX_LISTED).contains(&branches.len()) => branches.join(" or "),
        _ => format!("what one of {} describes", error.kind().keyword()),
    }
}

/// The library reports `additionalProperties: false` without `properties` as a false schema at the parent.
fn is_about_further_properties(error: &ValidationError<'_>) -> bool {
    let path = error.schema_path().to_string();
    path.ends_with("/additionalProperties") || path.ends_with("/unevaluatedProperties")
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(single) => single.to_string(),
        TypeKind::Multiple(set) => {
            let words: Vec<String> = set.iter().map(|each| each.to_string()).collect();
            words.join(" or ")
        }
    }
}

fn names(unexpected: &[String]) -> String {
    let shown: Vec<String> =
        unexpected.iter().take(MAX_LISTED).map(|name| short(&Value::from(name.as_str()))).collect();
    let more = if unexpected.len() > MAX_LISTED { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

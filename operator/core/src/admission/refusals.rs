//! Refusals of a version: none fits, or its content cannot run.

use skillet_api::{Reason, Skill, reason::READY};

use super::{Refusal, Sealed};
use crate::{
    skill::FieldError,
    version::{Constraint, SkillSemver, list},
};

pub(super) fn only_yanked(
    skill: &Skill,
    constraint: &Constraint,
    version: &SkillSemver,
    usable: &[&Sealed<'_>],
) -> Refusal {
    let name = skill.metadata.name.as_deref().unwrap_or_default();
    let rest = if usable.is_empty() { "no other".to_owned() } else { show(usable) };
    let message = format!(
        "version {version} of Skill {name} is withdrawn by spec.yankedVersions, and no other fits {constraint}; there is {rest}"
    );
    Refusal::new(Reason::VersionYanked, message)
}

pub(super) fn no_match(skill: &Skill, constraint: &Constraint, sealed: &[&Sealed<'_>]) -> Refusal {
    let name = skill.metadata.name.as_deref().unwrap_or_default();
    if sealed.is_empty() {
        return match not_ready(skill) {
            Some((why, message)) => {
                Refusal::new(reason_of(&[why]), format!("Skill {name} has no sealed version: {message}"))
            }
            None => Refusal::new(
                Reason::SkillNotReady,
                format!("Skill {name} has no sealed version yet; see its conditions"),
            ),
        };
    }
    let message = format!("no version of Skill {name} fits {constraint}; there is {}", show(sealed));
    Refusal::new(Reason::VersionNotFound, message)
}

/// Lists versions for a message, highest first.
fn show(versions: &[&Sealed<'_>]) -> String {
    list(versions.iter().map(|(semver, _)| semver))
}

/// Returns the reason and the message of a Skill that is not Ready.
fn not_ready(skill: &Skill) -> Option<(&str, &str)> {
    let conditions = &skill.status.as_ref()?.conditions;
    let ready =
        conditions.iter().find(|condition| condition.type_ == READY && condition.status == "False")?;
    Some((&ready.reason, &ready.message))
}

/// Returns the reason of the policy, or of what the version lacks, if all errors have it. All other errors are for the Skill's
/// author: `SkillNotReady`.
fn reason_of(errors: &[&str]) -> Reason {
    let own = [
        Reason::ImageNotAllowed,
        Reason::LimitTooHigh,
        Reason::NoProgram,
        Reason::FileNotFound,
        Reason::NoInterpreter,
        Reason::CommandNotFound,
        Reason::ServerNotFound,
        Reason::DynamicContentDisabled,
    ];
    own.into_iter()
        .find(|reason| errors.iter().all(|error| *error == reason.as_str()))
        .unwrap_or(Reason::SkillNotReady)
}

/// Refuses a sealed version that is not valid under this policy.
pub(super) fn refuse_content(name: &str, version: &SkillSemver, errors: &[FieldError]) -> Refusal {
    let Some(first) = errors.first() else {
        return Refusal::new(
            Reason::SkillNotReady,
            format!("version {version} of Skill {name} is not valid"),
        );
    };
    let reason = reason_of(&errors.iter().map(|error| error.reason.as_str()).collect::<Vec<_>>());
    Refusal::new(reason, format!("version {version} of Skill {name} cannot run: {first}"))
}

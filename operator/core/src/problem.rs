//! What is wrong with a Skill: one entry for each thing, collected so that a user sees all of them at once.

use std::fmt;

use skillet_api::Reason;

/// One thing that is wrong with a Skill.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct SkillProblem {
    pub reason: Reason,
    /// Path from the object's root, such as `spec.limits.timeout`.
    pub field: String,
    /// What is wrong there and what to write instead.
    pub message: String,
}

impl SkillProblem {
    pub fn reason(&self) -> Reason {
        self.reason
    }
}

/// Problems found so far, in the order of the fields.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<SkillProblem>);

impl Problems {
    pub(crate) fn add(&mut self, reason: Reason, field: impl fmt::Display, message: impl Into<String>) {
        self.0.push(SkillProblem { reason, field: field.to_string(), message: message.into() });
    }

    pub(crate) fn spec(&mut self, field: impl fmt::Display, message: impl Into<String>) {
        self.add(Reason::SpecInvalid, field, message);
    }

    /// As the CRD's `maxLength` counts: in characters, not in bytes.
    pub(crate) fn at_most(&mut self, field: impl fmt::Display, text: &str, limit: usize) {
        // No text has more characters than bytes; most are so short that nothing is counted.
        if text.len() > limit {
            let length = text.chars().count();
            if length > limit {
                self.spec(field, format!("has {length} characters, at most {limit} are allowed"));
            }
        }
    }

    pub(crate) fn at_most_items(&mut self, field: impl fmt::Display, count: usize, limit: usize) {
        if count > limit {
            self.spec(field, format!("has {count} entries, at most {limit} are allowed"));
        }
    }

    pub(crate) fn not_empty(&mut self, field: impl fmt::Display, text: &str) {
        if text.is_empty() {
            self.spec(field, "must not be empty");
        }
    }

    /// The system passes arguments and variables as C strings.
    pub(crate) fn no_nul(&mut self, field: impl fmt::Display, text: &str) {
        if text.contains('\0') {
            self.spec(field, "must not contain a NUL character");
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_vec(self) -> Vec<SkillProblem> {
        self.0
    }
}

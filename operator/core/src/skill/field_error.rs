//! Errors of a Skill's fields, collected so that a user sees all of them at once.

use std::fmt;

use skillet_api::Reason;

/// An error of one field of a Skill.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct FieldError {
    pub reason: Reason,
    /// Path from the object's root, such as `spec.limits.timeout`.
    pub field: String,
    /// Description of the error, with what to write instead.
    pub message: String,
}

impl FieldError {
    pub fn new(reason: Reason, field: impl fmt::Display, message: impl Into<String>) -> Self {
        Self { reason, field: field.to_string(), message: message.into() }
    }

    pub fn reason(&self) -> Reason {
        self.reason
    }
}

/// Errors so far, in the order of the fields.
#[derive(Debug, Default)]
pub(super) struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    pub(super) fn add(&mut self, reason: Reason, field: impl fmt::Display, message: impl Into<String>) {
        self.0.push(FieldError::new(reason, field, message));
    }

    pub(super) fn spec(&mut self, field: impl fmt::Display, message: impl Into<String>) {
        self.add(Reason::SpecInvalid, field, message);
    }

    /// Bounds a text in characters, as the CRD's `maxLength` does.
    pub(super) fn at_most(&mut self, field: impl fmt::Display, text: &str, limit: usize) {
        // No text has more characters than bytes, so a short text needs no count.
        if text.len() > limit {
            let length = text.chars().count();
            if length > limit {
                self.spec(field, format!("has {length} characters, at most {limit} are allowed"));
            }
        }
    }

    pub(super) fn at_most_items(&mut self, field: impl fmt::Display, count: usize, limit: usize) {
        if count > limit {
            self.spec(field, format!("has {count} entries, at most {limit} are allowed"));
        }
    }

    pub(super) fn not_empty(&mut self, field: impl fmt::Display, text: &str) {
        if text.is_empty() {
            self.spec(field, "must not be empty");
        }
    }

    /// Refuses NUL, since the system passes arguments and variables as C strings.
    pub(super) fn no_nul(&mut self, field: impl fmt::Display, text: &str) {
        if text.contains('\0') {
            self.spec(field, "must not contain a NUL character");
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_vec(self) -> Vec<FieldError> {
        self.0
    }
}

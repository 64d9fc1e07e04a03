//! Errors of creating, reading and waiting for an execution, and their HTTP form.

use std::time::Duration;

use http::StatusCode;
use thiserror::Error;

use crate::{error::ApiError, idempotency};

#[derive(Debug, Error)]
pub enum ExecutionError {
    #[error("could not create a SkillExecution in namespace {namespace}")]
    Create { namespace: String, source: Box<kube::Error> },
    #[error("could not read SkillExecution {namespace}/{name}")]
    Read { namespace: String, name: String, source: Box<kube::Error> },
    #[error("could not list the SkillExecutions of namespace {namespace}")]
    List { namespace: String, source: Box<kube::Error> },
    #[error("could not cancel SkillExecution {namespace}/{name}")]
    Cancel { namespace: String, name: String, source: Box<kube::Error> },
    #[error("could not annotate SkillExecution {namespace}/{name}")]
    Annotate { namespace: String, name: String, source: Box<kube::Error> },
    /// The API server does not let the gateway do it: rights, a quota, a namespace that is going.
    #[error("the cluster refused the SkillExecution in namespace {namespace}: {message}")]
    Forbidden { namespace: String, message: String },
    /// The API server has no such namespace, or no such kind.
    #[error("the cluster has no place for a SkillExecution in namespace {namespace}: {message}")]
    NoPlace { namespace: String, message: String },
    /// The API server found a field at fault.
    #[error("the cluster did not take the SkillExecution in namespace {namespace}: {message}")]
    Invalid { namespace: String, message: String, field: Option<String> },
    /// The input is too large, or Kubernetes would change it.
    #[error("{message}")]
    InputRefused { message: String },
    /// The same key was used with another skill or input.
    #[error("the idempotency key was used for another call")]
    Conflict,
    #[error("SkillExecution {namespace}/{name} was deleted before it ended")]
    Gone { namespace: String, name: String },
    #[error("SkillExecution {namespace}/{name} has not ended within {limit:?}")]
    TooLate { namespace: String, name: String, limit: Duration },
    #[error("the gateway stops")]
    Stopping,
}

impl ExecutionError {
    /// Returns the reason without a result, as the one word that a model reads.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Create { .. }
            | Self::Read { .. }
            | Self::List { .. }
            | Self::Cancel { .. }
            | Self::Annotate { .. }
            | Self::Stopping => "ApiError",
            Self::Forbidden { .. } => "Forbidden",
            Self::NoPlace { .. } => "SkillNotFound",
            Self::Invalid { .. } | Self::InputRefused { .. } => "InputInvalid",
            Self::Conflict => "Conflict",
            Self::Gone { .. } => "SandboxLost",
            Self::TooLate { .. } => "TimedOut",
        }
    }

    /// Classifies the API server's response to a creation.
    pub(super) fn of_create(namespace: &str, error: kube::Error) -> Self {
        let namespace = namespace.to_owned();
        match error {
            kube::Error::Api(status) if status.code == 403 => {
                Self::Forbidden { namespace, message: status.message }
            }
            kube::Error::Api(status) if status.code == 404 => {
                Self::NoPlace { namespace, message: status.message }
            }
            kube::Error::Api(status) if matches!(status.code, 400 | 422) => {
                let causes = status.details.map(|details| details.causes).unwrap_or_default();
                let field = causes.into_iter().map(|cause| cause.field).find(|field| !field.is_empty());
                Self::Invalid { namespace, message: status.message, field }
            }
            source => Self::Create { namespace, source: Box::new(source) },
        }
    }
}

impl From<ExecutionError> for ApiError {
    fn from(error: ExecutionError) -> Self {
        let message = error.to_string();
        match error {
            ExecutionError::Create { .. }
            | ExecutionError::Read { .. }
            | ExecutionError::List { .. }
            | ExecutionError::Cancel { .. }
            | ExecutionError::Annotate { .. }
            | ExecutionError::Stopping => Self::unavailable(message),
            ExecutionError::Forbidden { .. } => Self::new(StatusCode::FORBIDDEN, "Forbidden", message),
            ExecutionError::NoPlace { .. } => Self::not_found(message),
            ExecutionError::Invalid { field, .. } => {
                let invalid = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
                match field {
                    Some(field) => invalid.at(as_pointer(&field)),
                    None => invalid,
                }
            }
            ExecutionError::InputRefused { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "InputInvalid", message).at("/input")
            }
            ExecutionError::Conflict => {
                Self::new(StatusCode::CONFLICT, "Conflict", message).at(idempotency::HEADER)
            }
            ExecutionError::Gone { .. } => Self::new(StatusCode::GONE, "Gone", message),
            ExecutionError::TooLate { .. } => Self::new(StatusCode::GATEWAY_TIMEOUT, "TooLate", message),
        }
    }
}

/// The request's field for a field of the execution: `spec.sessionId` is `/sessionId` of the body.
fn as_pointer(field: &str) -> String {
    format!("/{}", field.strip_prefix("spec.").unwrap_or(field).replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    fn answer(code: u16, field: &str) -> ApiError {
        let status =
            json!({ "code": code, "message": "says why", "details": { "causes": [{ "field": field }] } });
        let status: Status = serde_json::from_value(status).unwrap();
        ExecutionError::of_create("ns", kube::Error::Api(Box::new(status))).into()
    }

    #[test]
    fn a_refusal_keeps_the_message_of_the_api_server() {
        for (code, status) in [(400, 422), (403, 403), (404, 404), (422, 422), (429, 503), (500, 503)] {
            let error = answer(code, "");
            assert_eq!(error.status.as_u16(), status, "{code}");
            assert_eq!(error.message.ends_with("says why"), status != 503, "{error:?}");
        }
    }

    #[test]
    fn the_field_at_fault_is_the_requests_own() {
        assert_eq!(answer(422, "spec.sessionId").field.as_deref(), Some("/sessionId"));
        assert_eq!(answer(422, "").field, None);
    }
}

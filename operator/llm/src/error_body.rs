//! Errors of the gateway in the form that a provider's SDKs read: as the body of a response, or as an event of a stream.
//!
//! Each form has the gateway's reason word: `code` for OpenAI, `details.error_code` for Anthropic, `details[0].reason`
//! for Google.

use serde_json::{Value, json};

use crate::DialectName;

/// An error of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorDetail<'a> {
    /// The HTTP status, also in a stream, whose own status was sent before.
    pub status: u16,
    /// One CamelCase word.
    pub reason: &'a str,
    pub message: &'a str,
    /// The JSON pointer or parameter at fault.
    pub field: Option<&'a str>,
}

impl DialectName {
    /// The body of an error response.
    pub fn error_body(self, error: &ErrorDetail<'_>) -> Value {
        let ErrorDetail { status, reason, message, field } = *error;
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => {
                let kind = openai_type(status);
                json!({"error": {"message": message, "type": kind, "param": field, "code": reason}})
            }
            Self::Anthropic => {
                let mut details = json!({ "error_code": reason });
                if let Some(field) = field {
                    details["field"] = field.into();
                }
                let error = json!({"type": anthropic_type(status), "message": message, "details": details});
                json!({"type": "error", "error": error})
            }
            Self::Gemini => {
                let mut info = json!({
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "skillet.dev",
                });
                if let Some(field) = field {
                    info["metadata"] = json!({ "field": field });
                }
                let kind = google_status(status);
                json!({"error": {"code": status, "message": message, "status": kind, "details": [info]}})
            }
        }
    }

    /// The event of a stream that fails: its type if the dialect's events have one, and its data.
    pub(crate) fn error_event(self, error: &ErrorDetail<'_>) -> (Option<&'static str>, Value) {
        let mut body = self.error_body(error);
        match self {
            Self::OpenAiChat | Self::Gemini => (None, body),
            Self::Anthropic => (Some("error"), body),
            Self::OpenAiResponses => {
                // Some SDKs read the fields of the event, others those of `error`.
                for field in ["message", "param", "code"] {
                    body[field] = body["error"][field].clone();
                }
                body["type"] = "error".into();
                (Some("error"), body)
            }
        }
    }
}

fn openai_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

fn google_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        405 => "UNIMPLEMENTED",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        408 | 504 => "DEADLINE_EXCEEDED",
        502 | 503 => "UNAVAILABLE",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERROR: ErrorDetail<'static> =
        ErrorDetail { status: 403, reason: "Forbidden", message: "no", field: Some("/model") };

    #[test]
    fn an_error_has_the_form_of_its_dialect_and_the_reason_word() {
        let openai = json!({"error": {"message": "no", "type": "permission_error", "param": "/model", "code": "Forbidden"}});
        let anthropic = json!({"type": "error", "error": {
            "type": "permission_error", "message": "no", "details": {"error_code": "Forbidden", "field": "/model"},
        }});
        let info = json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "Forbidden", "domain": "skillet.dev",
            "metadata": {"field": "/model"},
        });
        let google = json!({"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED", "details": [info]}});
        for (dialect, body) in [
            (DialectName::OpenAiChat, &openai),
            (DialectName::OpenAiResponses, &openai),
            (DialectName::Anthropic, &anthropic),
            (DialectName::Gemini, &google),
        ] {
            assert_eq!(dialect.error_body(&ERROR), *body, "{dialect:?}");
        }
    }

    #[test]
    fn an_event_of_responses_has_the_fields_of_both_forms() {
        let (kind, data) = DialectName::OpenAiResponses.error_event(&ERROR);
        assert_eq!(kind, Some("error"));
        for place in ["", "/error"] {
            assert_eq!(data.pointer(&format!("{place}/message")), Some(&json!("no")), "{data}");
            assert_eq!(data.pointer(&format!("{place}/code")), Some(&json!("Forbidden")), "{data}");
        }
        assert_eq!(data["type"], "error");
    }

    #[test]
    fn a_gemini_chunk_of_an_error_begins_as_its_sdks_expect() {
        let (_, data) = DialectName::Gemini.error_event(&ERROR);
        assert!(data.to_string().starts_with("{\"error\":"), "{data}");
    }

    #[test]
    fn every_status_has_a_type_in_every_dialect() {
        for (status, openai, anthropic, google) in [
            (400, "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"),
            (401, "authentication_error", "authentication_error", "UNAUTHENTICATED"),
            (404, "not_found_error", "not_found_error", "NOT_FOUND"),
            (405, "invalid_request_error", "invalid_request_error", "UNIMPLEMENTED"),
            (413, "invalid_request_error", "request_too_large", "INVALID_ARGUMENT"),
            (429, "rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED"),
            (500, "server_error", "api_error", "INTERNAL"),
            (502, "server_error", "api_error", "UNAVAILABLE"),
            (503, "server_error", "overloaded_error", "UNAVAILABLE"),
            (504, "server_error", "timeout_error", "DEADLINE_EXCEEDED"),
        ] {
            assert_eq!(
                (openai_type(status), anthropic_type(status), google_status(status)),
                (openai, anthropic, google)
            );
        }
    }
}

//! Errors of the gateway in the form that the client's SDK reads. Each SDK expects its own provider's.

use axum::{
    Json,
    extract::Request,
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, header};
use skillet_llm::{DialectName, ErrorDetail};

use super::passthrough;
use crate::error::ApiError;

/// Paths of the gateway itself among those of the providers.
const OWN: [&str; 3] = ["/v1/explain", "/v1/inject", "/v1/intercept"];

/// Rewrites an error of the gateway on a provider's path, an unknown path included.
pub async fn write(request: Request, next: Next) -> Response {
    let dialect = dialect(request.uri().path(), request.headers());
    let response = next.run(request).await;
    let (Some(dialect), Some(error)) = (dialect, response.extensions().get::<ApiError>()) else {
        return response;
    };
    let ApiError { status, code, message, field, retry_after: _ } = error;
    let detail = ErrorDetail { status: status.as_u16(), reason: code, message, field: field.as_deref() };
    let mut written = (*status, Json(dialect.error_body(&detail))).into_response();
    // The log reads it.
    written.extensions_mut().insert(error.clone());
    for (name, value) in response.headers() {
        if ![header::CONTENT_TYPE, header::CONTENT_LENGTH].contains(name) {
            written.headers_mut().append(name.clone(), value.clone());
        }
    }
    written
}

/// The dialect of a path. None for a path of the gateway itself.
fn dialect(path: &str, headers: &HeaderMap) -> Option<DialectName> {
    let is_providers =
        ["/v1/", "/v1alpha/", "/v1beta/", "/upload/"].iter().any(|family| path.starts_with(family));
    if !is_providers || OWN.contains(&path) {
        return None;
    }
    Some(match passthrough::dialect(path, headers) {
        DialectName::OpenAiChat if headers.contains_key("x-goog-api-key") => DialectName::Gemini,
        DialectName::OpenAiChat if path.starts_with("/v1/models/") && path.contains(':') => {
            DialectName::Gemini
        }
        dialect => dialect,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{AGENT, TestGateway};

    #[tokio::test]
    async fn an_error_has_the_form_of_the_path_that_was_asked() {
        let gateway = TestGateway::new();
        let check = async |path: &str, body: &str, pointer: &str, reason: &str| {
            let answer = gateway.send("POST", path, Some(AGENT), &[], body).await;
            assert_eq!(answer.json().pointer(pointer), Some(&json!(reason)), "{path}: {answer:?}");
        };
        for path in ["/v1/chat/completions", "/v1/responses"] {
            check(path, "no", "/error/code", "BadRequest").await;
            check(path, "no", "/error/type", "invalid_request_error").await;
        }
        check("/v1/messages", "no", "/type", "error").await;
        check("/v1/messages", "no", "/error/details/error_code", "BadRequest").await;
        for path in ["/v1beta/models/m:generateContent", "/v1/models/m:generateContent"] {
            check(path, "no", "/error/status", "INVALID_ARGUMENT").await;
            check(path, "no", "/error/details/0/reason", "BadRequest").await;
        }
        check("/v1/unknown", "{}", "/error/code", "NotFound").await;
        check("/v1/inject", "no", "/error/code", "BadRequest").await;
    }

    #[tokio::test]
    async fn an_error_keeps_its_status_and_headers() {
        let gateway = TestGateway::new();
        let answer = gateway.send("POST", "/v1/messages", None, &[], "{}").await;
        assert_eq!((answer.status, answer.header("content-type")), (401, "application/json"));
        assert_eq!(answer.json()["error"]["type"], "authentication_error");
        assert_eq!(
            gateway.send("PUT", "/v1/messages", Some(AGENT), &[], "{}").await.error().1,
            "MethodNotAllowed"
        );
    }

    #[test]
    fn a_shared_path_has_the_form_of_the_client_that_asks() {
        let with = |name: &'static str| HeaderMap::from_iter([(name.parse().unwrap(), "x".parse().unwrap())]);
        let none = HeaderMap::new();
        assert_eq!(dialect("/v1/nothing", &none), Some(DialectName::OpenAiChat));
        assert_eq!(dialect("/v1/nothing", &with("anthropic-version")), Some(DialectName::Anthropic));
        assert_eq!(dialect("/v1/nothing", &with("x-goog-api-key")), Some(DialectName::Gemini));
        assert_eq!(dialect("/v1beta/nothing", &none), Some(DialectName::Gemini));
        for own in ["/api/skills", "/v1/explain", "/nothing"] {
            assert_eq!(dialect(own, &none), None, "{own}");
        }
    }
}

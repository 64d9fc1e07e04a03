//! The one shape of an error: `{"error": {"code", "message", "field"}}`, with the status that fits the code.

use std::time::Duration;

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{Method, StatusCode, Uri, header::RETRY_AFTER};
use serde::Serialize;
use utoipa::ToSchema;

/// The error code of a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ApiError {
    #[serde(skip)]
    #[schema(ignore)]
    pub status: StatusCode,
    /// One CamelCase word: the reason words of SkillExecution where there is one, else the gateway's own.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// JSON pointer or parameter that is at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The value of the header `Retry-After`, if a retry may succeed.
    #[serde(skip)]
    #[schema(ignore)]
    pub retry_after: Option<Duration>,
}

/// The body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ErrorResponse {
    pub error: ApiError,
}

impl ApiError {
    pub fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), message: message.into(), field: None, retry_after: None }
    }

    /// The same with the field that is at fault.
    #[must_use]
    pub fn at(self, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..self }
    }

    /// The request is at fault.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// There is no such thing, or the caller may not know of it.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// The caller may not do it.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    /// Nothing is served at the path.
    pub fn no_path(uri: &Uri) -> Self {
        Self::not_found(format!("there is no path {}; see /openapi.json", uri.path()))
    }

    /// The path is there and takes another method.
    pub fn method_not_allowed(method: &Method) -> Self {
        let message = format!("this path does not take {method}; see /openapi.json");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// The body has more bytes than are read.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("the body has more than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", message)
    }

    /// The body is not too long, but becomes more than one request may hold.
    pub fn too_many_values() -> Self {
        let message = "the request has more values than the gateway has memory for in one request";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", message)
    }

    /// The same of an answer, which nothing in the request could make smaller.
    pub fn answer_too_large() -> Self {
        let message = "the answer has more values than the gateway has memory for in one request";
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "TooLarge", message)
    }

    /// Other requests hold the memory, and none was given back in time.
    pub fn overloaded(waited: Duration) -> Self {
        let message = format!("the gateway has had no memory left for this request for {waited:?}");
        Self {
            retry_after: Some(waited),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "Overloaded", message)
        }
    }

    /// The body came too slowly.
    pub fn too_slow() -> Self {
        let message = "the body came slower than 64 KiB a second, or paused for 10 seconds";
        Self::new(StatusCode::REQUEST_TIMEOUT, "TooSlow", message)
    }

    /// The cluster did not do what was needed.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ApiError", message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, retry_after) = (self.status, self.retry_after);
        let mut response = (status, Json(ErrorResponse { error: self.clone() })).into_response();
        // The routes of models write it in another form.
        response.extensions_mut().insert(self);
        if let Some(after) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, after.as_secs().into());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_one_shape_and_no_status_in_its_body() {
        let error = ApiError::bad_request("no").at("page");
        assert_eq!(error.clone().into_response().status(), StatusCode::BAD_REQUEST);
        let body = serde_json::to_value(ErrorResponse { error }).unwrap();
        assert_eq!(
            body,
            serde_json::json!({ "error": { "code": "BadRequest", "message": "no", "field": "page" } })
        );
    }

    #[test]
    fn an_overloaded_response_has_a_retry_after_header() {
        let response = ApiError::overloaded(Duration::from_secs(5)).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[RETRY_AFTER], "5");
        assert!(!ApiError::not_found("no").into_response().headers().contains_key(RETRY_AFTER));
    }
}

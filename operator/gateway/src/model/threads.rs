//! Anthropic's message threads: the provider keeps the turns, and a continued thread may not name tools again.
//!
//! A request with skills cannot be part of a thread. Nor can one with the platform's key, which reaches all threads. The SDKs answer this error with the whole conversation, without a
//! thread.

use axum::{
    Json,
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde_json::{Value, json};
use skillet_llm::DialectName;

/// The refusal of a request that is part of a thread.
pub(super) fn refuse(dialect: DialectName, request: &Value) -> Option<Response> {
    if dialect != DialectName::Anthropic || request["thread"].is_null() {
        return None;
    }
    let message = "thread: a request with skills or with the platform's key cannot be part of a thread; \
                   send the full conversation without thread";
    let details = json!({ "error_code": "thread_unsupported_request", "unsupported": [] });
    let error = json!({ "type": "invalid_request_error", "message": message, "details": details });
    Some((StatusCode::BAD_REQUEST, Json(json!({ "type": "error", "error": error }))).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{AGENT, TestGateway};

    #[tokio::test]
    async fn a_thread_is_refused_only_if_skills_are_offered() {
        let gateway = TestGateway::new();
        gateway.offer("team", "sum", "auto");
        let request = json!({ "model": "m", "thread": { "type": "create" }, "messages": [] }).to_string();
        let answer = gateway.send("POST", "/v1/messages", Some(AGENT), &[], &request).await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.json()["error"]["details"]["error_code"], "thread_unsupported_request");
        assert!(gateway.provider.requests().is_empty());
        let off = [("x-skillet-skills", "off")];
        assert_eq!(gateway.send("POST", "/v1/messages", Some(AGENT), &off, &request).await.status, 200);
        assert_eq!(gateway.provider.texts().pop().unwrap(), request);
    }
}

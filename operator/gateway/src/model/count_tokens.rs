//! Tokens of a model request as it would be sent: with the tools that it would be offered and with its carried turns.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};
use skillet_llm::{DialectName, json_edit::render};

use super::{
    ModelState,
    proxy::{ProviderTarget, receive},
    request_record::RequestRecord,
    turn::Turn,
    upstream::response_headers,
};
use crate::{commands::CommandUse, error::ApiError};

/// The field of Gemini's `countTokens` with a whole request. Without it only contents are counted.
const GEMINI_REQUEST: &str = "generateContentRequest";

/// `POST /v1/messages/count_tokens`.
pub(super) async fn anthropic(
    State(gateway): State<ModelState>,
    request: Request,
) -> Result<Response, ApiError> {
    count(gateway, DialectName::Anthropic, None, request).await
}

/// `POST /v1beta/models/{model}:countTokens`.
pub(super) async fn gemini(
    gateway: ModelState,
    model: String,
    request: Request,
) -> Result<Response, ApiError> {
    count(gateway, DialectName::Gemini, Some(model), request).await
}

async fn count(
    gateway: ModelState,
    dialect: DialectName,
    model: Option<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let (turn, target) = receive(&gateway, dialect, model, request).await?;
    let record = gateway.record(&turn.caller, dialect, &turn.model);
    let response = ask(&gateway, turn, &target, &record).await;
    record.respond(&response);
    response
}

async fn ask(
    gateway: &ModelState,
    mut turn: Turn,
    target: &ProviderTarget,
    record: &Arc<RequestRecord>,
) -> Result<Response, ApiError> {
    let upstream = target.admit(gateway, &turn, record).await?;
    let is_gemini = turn.dialect == DialectName::Gemini;
    if is_gemini && turn.request[GEMINI_REQUEST].is_object() {
        turn.request = turn.request[GEMINI_REQUEST].take();
    }
    let offered = turn.offer_tools(gateway, CommandUse::Show).await?;
    let mut body = turn.original.clone();
    if turn.restored.is_some() || offered.changes_request() {
        let counted = if is_gemini { whole_request(&turn.model, turn.request.take()) } else { turn.request };
        body = render(&turn.original, &counted).into();
    }
    let response = upstream.send(body).await?;
    let (status, headers) = (response.status(), response_headers(response.headers()));
    let body = Body::from_stream(response.into_stream());
    Ok((status, headers, offered.response_headers(), body).into_response())
}

/// The request in the form in which Gemini counts its tools too.
fn whole_request(model: &str, mut request: Value) -> Value {
    if let Some(fields) = request.as_object_mut() {
        fields.entry("model").or_insert_with(|| format!("models/{model}").into());
    }
    json!({ GEMINI_REQUEST: request })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{AGENT, TestGateway};

    /// The request that the provider gets for a count of `body`.
    async fn counted(gateway: &TestGateway, path: &str, body: &Value) -> Value {
        gateway.provider.will_say(&json!({ "input_tokens": 7 }));
        let answer = gateway.send("POST", path, Some(AGENT), &[], &body.to_string()).await;
        assert_eq!((answer.status, answer.json()), (200, json!({ "input_tokens": 7 })), "{path}");
        gateway.provider.last_request()
    }

    #[tokio::test]
    async fn tokens_are_counted_with_the_tools_that_would_be_offered() {
        let gateway = TestGateway::new();
        gateway.offer("team", "sum", "auto");
        let path = "/v1/messages/count_tokens";
        let request = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
        let sent = counted(&gateway, path, &request).await;
        assert_eq!((&sent["tools"][0]["name"], &sent["messages"]), (&json!("sum"), &request["messages"]));

        let path = "/v1beta/models/gemini-x:countTokens";
        let contents = json!([{ "role": "user", "parts": [{ "text": "hi" }] }]);
        for body in [
            json!({ "contents": contents }),
            json!({ "generateContentRequest": { "model": "models/gemini-x", "contents": contents } }),
        ] {
            let whole = &counted(&gateway, path, &body).await["generateContentRequest"];
            assert_eq!(whole["tools"][0]["functionDeclarations"][0]["name"], "sum", "{whole}");
            assert_eq!((&whole["model"], &whole["contents"]), (&json!("models/gemini-x"), &contents));
        }
    }

    #[tokio::test]
    async fn a_count_without_skills_is_sent_as_it_came() {
        let gateway = TestGateway::new();
        let body = json!({ "contents": [] });
        assert_eq!(counted(&gateway, "/v1beta/models/gemini-x:countTokens", &body).await, body);
    }
}

//! The providers' own routes: a client changes its base URL, and its model has the platform's skills.
//!
//! The handler authenticates the caller before it reads the body, reserves memory for the body, offers tools, and then
//! drives the conversation with the provider. A request without tools and confirmations is forwarded byte for byte. The
//! caller's token for the gateway never reaches a provider.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Request, State},
    response::{IntoResponse as _, Response},
    routing::post,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::Value;
use skillet_api::gateway::StoredObjects;
use skillet_llm::DialectName;

use crate::{
    commands::CommandUse,
    compute::compute,
    error::ApiError,
    model::{
        BODY_BUDGET, ModelState, count_tokens, passthrough,
        request_record::RequestRecord,
        response_ids::bind_ids,
        threads,
        turn::Turn,
        upstream::{ProviderRequest, Upstream},
    },
};

/// `true` answers with the request that would be sent, and sends nothing.
const DRY_RUN_HEADER: &str = "x-skillet-dry-run";

/// The routes of the four dialects.
pub fn routes() -> Router<ModelState> {
    Router::new()
        .route("/v1/chat/completions", post(openai_chat))
        .route("/v1/responses", post(openai_responses))
        .route("/v1/messages", post(anthropic))
        .route("/v1/messages/count_tokens", post(count_tokens::anthropic))
        .route("/v1beta/models/{call}", post(gemini).fallback(passthrough::pass))
        .route("/v1/models/{call}", post(gemini).fallback(passthrough::pass))
        .merge(passthrough::routes())
        .method_not_allowed_fallback(async |method: Method| ApiError::method_not_allowed(&method))
}

async fn openai_chat(State(gateway): State<ModelState>, request: Request) -> Result<Response, ApiError> {
    handle(gateway, DialectName::OpenAiChat, None, request).await
}

async fn openai_responses(State(gateway): State<ModelState>, request: Request) -> Result<Response, ApiError> {
    handle(gateway, DialectName::OpenAiResponses, None, request).await
}

async fn anthropic(State(gateway): State<ModelState>, request: Request) -> Result<Response, ApiError> {
    handle(gateway, DialectName::Anthropic, None, request).await
}

async fn gemini(
    State(gateway): State<ModelState>,
    Path(call): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let (model, method) = call.rsplit_once(':').unwrap_or((&call, ""));
    // Read as a path, it would lead out of the one that the policy gives.
    if model.contains(['/', '\\']) || model.contains("..") {
        return Err(ApiError::not_found("there is no such model"));
    }
    let is_streaming = match method {
        "generateContent" => false,
        "streamGenerateContent" => true,
        "countTokens" => return count_tokens::gemini(gateway, model.to_owned(), request).await,
        _ => return passthrough::pass(State(gateway), request).await,
    };
    let route = GeminiRoute { model: model.to_owned(), is_streaming };
    handle(gateway, DialectName::Gemini, Some(route), request).await
}

/// Gemini names the model and the method in the path, the others in the body.
struct GeminiRoute {
    model: String,
    is_streaming: bool,
}

async fn handle(
    gateway: ModelState,
    dialect: DialectName,
    route: Option<GeminiRoute>,
    request: Request,
) -> Result<Response, ApiError> {
    let (model, is_streaming) = route.map(|route| (route.model, route.is_streaming)).unzip();
    let (turn, target) = receive(&gateway, dialect, model, request).await?;
    if flag(&turn.headers, DRY_RUN_HEADER)? {
        return dry_run(gateway, turn).await;
    }
    let is_streaming = is_streaming.unwrap_or_else(|| dialect.dialect().is_streaming(&turn.request));
    let record = gateway.record(&turn.caller, dialect, &turn.model);
    let response = respond(gateway, turn, &target, is_streaming, &record).await;
    record.respond(&response);
    response
}

/// Admits the request, offers it skills, and asks the provider.
async fn respond(
    gateway: ModelState,
    mut turn: Turn,
    target: &ProviderTarget,
    is_streaming: bool,
    record: &Arc<RequestRecord>,
) -> Result<Response, ApiError> {
    let upstream = target.admit(&gateway, &turn, record).await?;
    let shared_key = upstream.shared_key();
    if let Some(rules) = shared_key {
        turn.share_key(&gateway, rules).await?;
    }
    let tools = turn.offer_tools(&gateway, CommandUse::Run).await?;
    record.set_native_tools(&tools.native);
    let hides_threads = shared_key.is_some_and(|rules| rules.stored_objects != StoredObjects::Allow);
    if (hides_threads || !tools.tools.is_empty())
        && let Some(refusal) = threads::refuse(turn.dialect, &turn.request)
    {
        return Ok(refusal);
    }
    let is_bound = turn.dialect == DialectName::OpenAiResponses
        && shared_key.is_some_and(|rules| rules.stored_objects == StoredObjects::Bind);
    let binding = if is_bound { gateway.id_binding(&turn.caller.namespace) } else { None };
    if let Some(lesson) = &tools.lesson {
        gateway.learning.add_offer(&turn.caller.namespace, lesson);
    }
    let (conversation, request) = turn.into_conversation(gateway, tools)?;
    let response = conversation.respond(upstream, request, is_streaming).await?;
    Ok(bind_ids(response, binding))
}

/// Answers with the request that would be sent, with the commands of its texts as they are written.
async fn dry_run(gateway: ModelState, mut turn: Turn) -> Result<Response, ApiError> {
    let tools = turn.offer_tools(&gateway, CommandUse::Show).await?;
    if !tools.tools.is_empty()
        && let Some(refusal) = threads::refuse(turn.dialect, &turn.request)
    {
        return Ok(refusal);
    }
    let (conversation, request) = turn.into_conversation(gateway, tools)?;
    Ok(with_text(&conversation.offered.to_json(), "request", &conversation.sent(&request)))
}

/// The path and headers of a request as its provider gets them.
pub(super) struct ProviderTarget {
    path: String,
    headers: HeaderMap,
}

impl ProviderTarget {
    /// Prepares the request to the provider, if the caller may send it.
    pub(super) async fn admit(
        &self,
        gateway: &ModelState,
        turn: &Turn,
        record: &Arc<RequestRecord>,
    ) -> Result<Upstream, ApiError> {
        let Self { path, headers } = self;
        let fallbacks = fallbacks(&turn.request);
        let model = Some(turn.model.as_str());
        let sent = ProviderRequest { dialect: turn.dialect, model, fallbacks: &fallbacks, path, headers };
        gateway.admit(&turn.caller, &sent, record).await
    }
}

/// Authenticates the caller and reads the body. `model` is the path's.
pub(super) async fn receive(
    gateway: &ModelState,
    dialect: DialectName,
    model: Option<String>,
    request: Request,
) -> Result<(Turn, ProviderTarget), ApiError> {
    let (parts, body) = request.into_parts();
    let authenticated = gateway.auth.authenticate(&parts.headers, parts.uri.query()).await?;
    let mut headers = parts.headers.clone();
    authenticated.strip_token(&mut headers);
    let path = authenticated.path_without_token(&parts.uri);
    let caller = authenticated.caller;
    let (original, memory) = gateway.memory.read(&caller.namespace, body, BODY_BUDGET).await?;
    let request = compute(original.len(), || parse(&original))?;
    let model = model.unwrap_or_else(|| request["model"].as_str().unwrap_or_default().to_owned());
    let turn =
        Turn { caller, headers: parts.headers, dialect, model, request, original, restored: None, memory };
    Ok((turn, ProviderTarget { path, headers }))
}

/// Models that OpenRouter and its like may run instead.
fn fallbacks(request: &Value) -> Vec<&str> {
    request["models"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn parse(body: &Bytes) -> Result<Value, ApiError> {
    let request: Value = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("the body is not JSON: {error}")))?;
    if request.is_object() {
        Ok(request)
    } else {
        Err(ApiError::bad_request("the body is not a JSON object"))
    }
}

fn flag(headers: &HeaderMap, name: &'static str) -> Result<bool, ApiError> {
    match headers.get(name).map(HeaderValue::as_bytes) {
        None | Some(b"false") => Ok(false),
        Some(b"true") => Ok(true),
        Some(_) => Err(ApiError::bad_request("is neither true nor false").at(name)),
    }
}

/// An answer of `fields`, an object, and of one more field that is JSON text already.
pub fn with_text(fields: &Value, name: &str, text: &[u8]) -> Response {
    let mut body = fields.to_string().into_bytes();
    body.pop();
    let comma = if body.len() > 1 { "," } else { "" };
    for part in [comma, "\"", name, "\":"] {
        body.extend_from_slice(part.as_bytes());
    }
    body.extend_from_slice(text);
    body.push(b'}');
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

#[cfg(test)]
mod tests;

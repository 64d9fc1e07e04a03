//! The providers' own routes: a client changes its base URL, and its model has the platform's skills.
//!
//! The handler authenticates the caller before it reads the body, reserves memory for the body, offers tools, and then
//! drives the conversation with the provider. A request without tools and confirmations is forwarded byte for byte. The
//! caller's token for the gateway never reaches a provider.

use axum::{
    Router,
    extract::{Path, Request, State},
    response::{IntoResponse as _, Response},
    routing::post,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;
use skillet_llm::{DialectName, json_edit::render};

use crate::{
    auth::Authenticated,
    error::ApiError,
    idempotency,
    memory::BodyBudget,
    model::{
        conversation::{
            self, Conversation, Limits,
            headers::{confirmations, session},
        },
        tools::{self, OfferRequest, SkillPreferences},
        upstream::Upstream,
    },
    request_id,
    state::GatewayState,
};

/// A request's body: images stand in it as text. It is held as it came or is sent, and as a document, of which the next
/// round's is made while the last is still there.
pub const BODY_BUDGET: BodyBudget =
    BodyBudget { max_bytes: 32 * 1024 * 1024, text_copies: 1, parsed_copies: 2 };
/// `true` answers with the request that would be sent, and sends nothing.
const DRY_RUN_HEADER: &str = "x-skillet-dry-run";
/// Tells which skills were offered.
const OFFERED_HEADER: &str = "x-skillet-offered";
/// Tells why nothing was offered, where the request itself forbids it.
const NOT_OFFERED_HEADER: &str = "x-skillet-not-offered";
/// Tells which skills were run; not in streams, whose headers are sent before.
const RAN_HEADER: &str = "x-skillet-ran";

/// The routes of the four dialects.
pub fn routes() -> Router<GatewayState> {
    Router::new()
        .route("/v1/chat/completions", post(openai_chat))
        .route("/v1/responses", post(openai_responses))
        .route("/v1/messages", post(anthropic))
        .route("/v1beta/models/{call}", post(gemini))
        .route("/v1/models/{call}", post(gemini))
}

async fn openai_chat(State(gateway): State<GatewayState>, request: Request) -> Result<Response, ApiError> {
    answer(gateway, DialectName::OpenAiChat, None, request).await
}

async fn openai_responses(
    State(gateway): State<GatewayState>,
    request: Request,
) -> Result<Response, ApiError> {
    answer(gateway, DialectName::OpenAiResponses, None, request).await
}

async fn anthropic(State(gateway): State<GatewayState>, request: Request) -> Result<Response, ApiError> {
    answer(gateway, DialectName::Anthropic, None, request).await
}

async fn gemini(
    State(gateway): State<GatewayState>,
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
        _ => return Err(ApiError::not_found(format!("there is no method {method:?} of a model here"))),
    };
    let by_route = ByRoute { model: model.to_owned(), is_streaming };
    answer(gateway, DialectName::Gemini, Some(by_route), request).await
}

/// What Gemini says in the path, and the others in the body.
struct ByRoute {
    model: String,
    is_streaming: bool,
}

async fn answer(
    gateway: GatewayState,
    dialect: DialectName,
    by_route: Option<ByRoute>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    let identified = gateway.auth.authenticate(&headers, parts.uri.query()).await?;
    let mut passed_on = headers.clone();
    identified.strip_token(&mut passed_on);
    let path = path(&parts.uri, &identified);
    let (sent, room) = gateway.memory.read(&identified.caller.namespace, body, BODY_BUDGET).await?;
    let mut request = parse(&sent)?;
    let ByRoute { model, is_streaming } = by_route.unwrap_or_else(|| ByRoute {
        model: request["model"].as_str().unwrap_or_default().to_owned(),
        is_streaming: dialect.dialect().is_streaming(&request),
    });
    let preferences = SkillPreferences::of(&headers)?;
    let limits = Limits::of(&gateway.catalog.policy().gateway.conversation, &headers)?;
    let idempotency = idempotency::key(&headers)?;
    let namespaces = tools::visible(&gateway, &identified.caller, &preferences).await?;
    let policy = gateway.catalog.policy();
    let can_ask = gateway.confirmation.is_some();
    let question =
        OfferRequest { dialect, model: &model, request: &request, preferences: &preferences, can_ask };
    let offering = tools::offer(&policy, &namespaces, &question);
    tools::add(dialect, &mut request, &offering)?;
    if flag(&headers, DRY_RUN_HEADER)? {
        return Ok(with_text(&offering.to_json(), "request", &render(&sent, &request)));
    }
    let upstream = Upstream::new(&gateway, dialect, &path, &passed_on).await?;
    let offered = names(offering.tools.iter().map(|tool| &*tool.name));
    let is_offered = !offering.tools.is_empty();
    let withheld = offering.withheld.clone();
    let mut conversation = Conversation {
        caller: identified.caller,
        dialect,
        offering,
        written: sent,
        limits,
        idempotency,
        session: session(&headers)?,
        request_id: request_id::of(&headers),
        confirmations: confirmations(&headers)?,
        room: Some(room),
        gateway,
    };
    let mut progress = conversation.progress();
    let is_settled = conversation.resolve_confirmations(&mut request, &mut progress).await?;
    // An unchanged request is forwarded byte for byte.
    let is_changed = is_offered || is_settled;
    let sent = if is_changed { conversation.sent(&request) } else { conversation.written.clone() };
    conversation.release_request(&mut request, sent.len());
    let mut response = if is_streaming {
        conversation::respond_streaming(conversation, upstream, request, sent, progress).await?
    } else {
        let (mut response, progress) =
            conversation::respond_buffered(&conversation, &upstream, request, sent, progress).await?;
        put(&mut response, RAN_HEADER, names(progress.ran.iter().map(|name| &**name)));
        response
    };
    put(&mut response, OFFERED_HEADER, offered);
    if let Some(reason) = withheld {
        put(&mut response, NOT_OFFERED_HEADER, reason.as_str().to_owned());
    }
    Ok(response)
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

/// Path and query for the provider, without a token that was for the gateway.
fn path(uri: &http::Uri, identified: &Authenticated) -> String {
    match uri.query().map(|query| identified.strip_token_from_query(query)) {
        Some(query) if !query.is_empty() => format!("{}?{query}", uri.path()),
        Some(_) | None => uri.path().to_owned(),
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

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<&str>>().join(",")
}

fn put(response: &mut Response, name: &'static str, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests;

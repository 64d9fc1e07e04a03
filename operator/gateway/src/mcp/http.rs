//! The HTTP transport: authenticates the caller, checks the session's owner, and passes the request to rmcp.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
    routing::any,
};
use futures::StreamExt as _;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{CONTENT_TYPE, WWW_AUTHENTICATE},
};
use rmcp::transport::streamable_http_server::{
    SessionManager as _, StreamableHttpServerConfig, StreamableHttpService,
};
use serde::Deserialize;
use serde_json::{Value, json};
use skillet_api::Reason;
use skillet_core::exact_json::find_inexact;
use tokio::sync::Mutex;

use super::{
    Timing,
    server::Server,
    session::{OPENER, Owner, RestorableSessions, Sessions},
    tool_result,
};
use crate::{
    error::ApiError,
    memory::{BodyBudget, MemoryReservation},
    service::SkillService,
};

const SESSION: &str = "mcp-session-id";
const PROTOCOL: &str = "mcp-protocol-version";
/// From this protocol on there are no sessions.
const WITHOUT_SESSIONS: &str = "2026-07-28";
/// Headers in which a token may come. rmcp logs requests, so they end here.
const TOKENS: [&str; 4] = ["authorization", "x-api-key", "x-skillet-token", "x-goog-api-key"];
/// As large as an object of the API server may be. An input is held in the message, in the request, and in the execution
/// that is made.
const BODY_BUDGET: BodyBudget = BodyBudget { max_bytes: 1_572_864, text_copies: 2, parsed_copies: 3 };

struct Transport {
    service: SkillService,
    sessions: Arc<Sessions>,
    protocol: StreamableHttpService<Server, Sessions>,
}

pub(super) fn routes(service: SkillService, timing: Timing) -> Router {
    let sessions = Arc::new(Sessions::new(&timing));
    // A page in a browser that was led here under another host name has no token, which is what counts.
    let mut config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_json_response(true)
        .with_max_request_body_bytes(BODY_BUDGET.max_bytes);
    config.session_store = Some(Arc::new(RestorableSessions));
    let (of_session, fingerprints) = (service.clone(), Arc::default());
    let make = move || Ok(Server::new(of_session.clone(), Arc::clone(&fingerprints), timing));
    let protocol = StreamableHttpService::new(make, sessions.clone(), config);
    let transport = Transport { service, sessions, protocol };
    Router::new().route("/mcp", any(serve)).with_state(Arc::new(transport))
}

async fn serve(State(transport): State<Arc<Transport>>, request: Request) -> Response {
    transport.handle(request).await.unwrap_or_else(error_response)
}

impl Transport {
    async fn handle(&self, request: Request) -> Result<Response, ApiError> {
        let caller = self.service.authenticate(request.headers()).await?;
        let owner = Owner::of(&caller);
        self.admit(&owner, request.headers()).await?;
        let (head, body) = request.into_parts();
        let (bytes, memory) = self.service.memory.read(&caller.namespace, body, BODY_BUDGET).await?;
        if let Some(refusal) = refuse_inexact(&bytes) {
            return Ok(refusal);
        }
        let mut request = Request::from_parts(head, Body::from(bytes));
        for name in TOKENS {
            request.headers_mut().remove(name);
        }
        request.extensions_mut().insert(caller);
        // The tool call resizes it. Weak, since a session may keep the request that opened it.
        let memory = Arc::new(Mutex::new(memory));
        request.extensions_mut().insert(Arc::downgrade(&memory));
        let is_for_notices = request.method() == Method::GET;
        // SDKs take 202 for a failure.
        let is_closing = request.method() == Method::DELETE;
        let is_json = is_json(request.headers());
        let response = OPENER.scope(owner, self.protocol.handle(request)).await;
        if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return Ok(parse_error());
        }
        if is_closing && response.status() == StatusCode::ACCEPTED {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        if !is_for_notices {
            return Ok(hold_until_end(response.map(Body::new), memory));
        }
        let stop = self.service.stop.clone().cancelled_owned();
        Ok(response.map(|body| Body::from_stream(Body::new(body).into_data_stream().take_until(stop))))
    }

    /// Fails unless a request of this caller may use the session that it names, or open a session.
    async fn admit(&self, owner: &Owner, headers: &HeaderMap) -> Result<(), ApiError> {
        let opens = match headers.get(SESSION) {
            None => {
                headers.get(PROTOCOL).is_none_or(|protocol| protocol.as_bytes() < WITHOUT_SESSIONS.as_bytes())
            }
            Some(id) => {
                let id = id.to_str().ok().filter(|id| owner.owns(id));
                // The protocol's word for a client to open another session.
                let id = id.ok_or_else(|| ApiError::not_found("there is no such session").at(SESSION))?;
                !self.sessions.has_session(&id.into()).await.unwrap_or(false)
            }
        };
        if opens && !self.sessions.may_open(owner).await {
            let message = "too many sessions are open; close them with DELETE";
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TooManySessions", message));
        }
        Ok(())
    }
}

/// Holds the request's memory until a stream ends. A response in one piece is complete already.
fn hold_until_end(response: Response, memory: Arc<Mutex<MemoryReservation>>) -> Response {
    let content = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !content.is_some_and(|content| content.starts_with(b"text/event-stream")) {
        return response;
    }
    response.map(|body| {
        Body::from_stream(body.into_data_stream().inspect(move |_| {
            let _held = &memory;
        }))
    })
}

fn error_response(error: ApiError) -> Response {
    let is_unknown = error.status == StatusCode::UNAUTHORIZED;
    let mut response = error.into_response();
    if is_unknown {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Answers a tool call whose arguments Kubernetes would change. The document that rmcp reads has lost what they were.
fn refuse_inexact(body: &[u8]) -> Option<Response> {
    const ARGUMENTS: &str = "/params/arguments";
    let found = find_inexact(std::str::from_utf8(body).ok()?)?;
    let place = found.pointer.strip_prefix(ARGUMENTS)?;
    let message = found.to_string().replacen(ARGUMENTS, "", 1);
    let message = if place.is_empty() { format!("(root){message}") } else { message };
    let request: CallId = serde_json::from_slice(body).ok()?;
    let result = tool_result::failed(Reason::InputInvalid.as_str(), &message);
    Some(axum::Json(json!({ "jsonrpc": "2.0", "id": request.id, "result": result })).into_response())
}

/// The id of a JSON-RPC request.
#[derive(Deserialize)]
struct CallId {
    id: Value,
}

fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    text.is_some_and(|text| text.split(';').any(|part| part.trim().eq_ignore_ascii_case("application/json")))
}

/// rmcp says of a body that it cannot read that it is not JSON; JSON-RPC has a word of its own for it.
fn parse_error() -> Response {
    let error = json!({ "code": -32700, "message": "the body is not a JSON-RPC message of MCP" });
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    (StatusCode::BAD_REQUEST, axum::Json(body)).into_response()
}

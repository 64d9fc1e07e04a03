//! Stateless routes for routers that call the model themselves, and `explain` for people.
//!
//! `inject` adds tools to a request. `intercept` runs the skill calls of a response and builds the next request.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Request, State},
    response::Response,
    routing::post,
};
use bytes::Bytes;
use http::{HeaderMap, request::Parts};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use skillet_llm::{
    DialectName,
    json_edit::{field, render},
};
use skillet_offer::{Explanation, OfferDecision};

use crate::{
    auth::Caller,
    catalog::Namespace,
    error::ApiError,
    idempotency,
    memory::MemoryReservation,
    model::{
        conversation::{
            Conversation, Limits, SplitCalls,
            headers::{confirmations, session},
        },
        proxy::{BODY_BUDGET, with_text},
        tools::{self, OfferRequest, OfferedTools, SkillPreferences, Target},
    },
    request_id,
    rest::body,
    state::GatewayState,
};

/// The routes.
pub fn routes() -> Router<GatewayState> {
    Router::new()
        .route("/v1/inject", post(inject))
        .route("/v1/intercept", post(intercept))
        .route("/v1/explain", post(explain))
}

/// The form of a request and its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    #[serde(rename = "anthropic")]
    Anthropic,
    #[serde(rename = "gemini")]
    Gemini,
}

impl From<Form> for DialectName {
    fn from(form: Form) -> Self {
        match form {
            Form::OpenAiChat => Self::OpenAiChat,
            Form::OpenAiResponses => Self::OpenAiResponses,
            Form::Anthropic => Self::Anthropic,
            Form::Gemini => Self::Gemini,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inject {
    dialect: Form,
    request: Value,
    /// For Gemini, whose requests do not name it.
    model: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Intercept {
    dialect: Form,
    /// As it was sent to the provider.
    request: Value,
    answer: Value,
    /// What `inject` said of this request.
    offered: std::collections::BTreeMap<String, Target>,
    /// Rounds before this one: they count against the limit, and keep idempotency keys of rounds apart.
    #[serde(default)]
    round: u32,
}

/// A request of a caller who is known.
struct Sent<T> {
    caller: Caller,
    headers: HeaderMap,
    bytes: Bytes,
    body: T,
    /// What it takes of the memory for all.
    room: MemoryReservation,
}

/// Authenticates first: no unknown caller makes the gateway hold a body.
async fn sent<T: DeserializeOwned>(gateway: &GatewayState, request: Request) -> Result<Sent<T>, ApiError> {
    let (Parts { headers, .. }, body) = request.into_parts();
    let caller = gateway.auth.authenticate(&headers, None).await?.caller;
    let (bytes, room) = gateway.memory.read(&caller.namespace, body, BODY_BUDGET).await?;
    Ok(Sent { caller, headers, body: body::read(&bytes)?, bytes, room })
}

/// A request whose skills are to be chosen.
struct Asked {
    caller: Caller,
    headers: HeaderMap,
    dialect: DialectName,
    request: Value,
    written: Bytes,
    model: String,
    preferences: SkillPreferences,
    namespaces: Vec<Arc<Namespace>>,
    room: MemoryReservation,
}

async fn asked(gateway: &GatewayState, request: Request) -> Result<Asked, ApiError> {
    let Sent { caller, headers, bytes, body, room } = sent(gateway, request).await?;
    let written = written(&bytes, "request");
    let Inject { dialect, request, model } = body;
    let preferences = SkillPreferences::of(&headers)?;
    let model = model.or_else(|| request["model"].as_str().map(ToOwned::to_owned)).unwrap_or_default();
    let namespaces = tools::visible(gateway, &caller, &preferences).await?;
    Ok(Asked {
        caller,
        headers,
        dialect: dialect.into(),
        request,
        written,
        model,
        preferences,
        namespaces,
        room,
    })
}

impl Asked {
    fn question(&self, gateway: &GatewayState) -> OfferRequest<'_> {
        let Self { dialect, request, model, preferences, .. } = self;
        OfferRequest {
            dialect: *dialect,
            model,
            request,
            preferences,
            can_ask: gateway.confirmation.is_some(),
        }
    }
}

/// A field of a body as its author wrote it.
fn written(body: &Bytes, name: &str) -> Bytes {
    field(body, name).map(|text| body.slice_ref(text)).unwrap_or_default()
}

async fn inject(State(gateway): State<GatewayState>, request: Request) -> Result<Response, ApiError> {
    let asked = asked(&gateway, request).await?;
    let offering = tools::offer(&gateway.catalog.policy(), &asked.namespaces, &asked.question(&gateway));
    let Asked { caller, headers, dialect, mut request, written, room, .. } = asked;
    tools::add(dialect, &mut request, &offering)?;
    let conversation = conversation(gateway, caller, dialect, offering, (&headers, written, room))?;
    conversation.resolve_confirmations(&mut request, &mut conversation.progress()).await?;
    Ok(with_text(&conversation.offering.to_json(), "request", &conversation.sent(&request)))
}

fn conversation(
    gateway: GatewayState,
    caller: Caller,
    dialect: DialectName,
    offering: OfferedTools,
    (headers, written, room): (&HeaderMap, Bytes, MemoryReservation),
) -> Result<Conversation, ApiError> {
    Ok(Conversation {
        limits: Limits::of(&gateway.catalog.policy().gateway.conversation, headers)?,
        gateway,
        caller,
        dialect,
        offering,
        written,
        idempotency: idempotency::key(headers)?,
        session: session(headers)?,
        request_id: request_id::of(headers),
        confirmations: confirmations(headers)?,
        room: Some(room),
    })
}

async fn intercept(State(gateway): State<GatewayState>, request: Request) -> Result<Response, ApiError> {
    let Sent { caller, headers, bytes, body, room } = sent(&gateway, request).await?;
    let Intercept { dialect, request, answer, offered, round } = body;
    let targets = offered.into_iter().map(|(tool, target)| (tool.into(), target)).collect();
    let offering = OfferedTools { targets, ..OfferedTools::default() };
    let from = (&headers, written(&bytes, "request"), room);
    let conversation = conversation(gateway, caller, dialect.into(), offering, from)?;
    let as_written = written(&bytes, "answer");
    let SplitCalls { ours, asked, has_client_calls } = conversation.split_calls(&answer);
    if ours.is_empty() && asked.is_empty() {
        return Ok(with_text(&json!({ "results": [] }), "answer", &as_written));
    }
    let mut progress = conversation.progress_at(round);
    let may_go_on = conversation.may_continue(&progress);
    let results =
        if may_go_on { conversation.run(&ours, &mut progress).await } else { Conversation::not_run(&ours) };
    let listed: Vec<Value> = results
        .iter()
        .map(|result| json!({ "id": result.id, "tool": result.name, "content": result.content, "isError": result.is_error }))
        .collect();
    let dialect = conversation.dialect.dialect();
    let fields = json!({ "results": listed });
    Ok(if has_client_calls || !may_go_on {
        let mut mixed = dialect.client_response(&answer, &results);
        conversation.ask(&answer, &asked, &mut mixed);
        with_text(&fields, "answer", &render(&as_written, &mixed))
    } else {
        let next = conversation.next(&request, &answer, &results);
        with_text(&fields, "nextRequest", &conversation.sent(&next))
    })
}

async fn explain(State(gateway): State<GatewayState>, request: Request) -> Result<Json<Value>, ApiError> {
    let asked = asked(&gateway, request).await?;
    let policy = gateway.catalog.policy();
    let explained = tools::explained(&policy, &asked.namespaces, &asked.question(&gateway));
    let skills: Vec<Value> = explained.iter().map(explanation_json).collect();
    Ok(Json(json!({ "skills": skills })))
}

fn explanation_json(explanation: &Explanation) -> Value {
    let Explanation { skill, score, signals, decision } = explanation;
    let signals: Vec<Value> = signals
        .iter()
        .map(|signal| json!({ "kind": format!("{:?}", signal.kind), "points": signal.points, "text": signal.text }))
        .collect();
    let (is_offered, reason) = match decision {
        OfferDecision::Offered { .. } => (true, "Offered"),
        OfferDecision::NotOffered(reason) => (false, reason.as_str()),
    };
    json!({
        "namespace": *skill.namespace,
        "name": *skill.name,
        "version": Some(&*skill.version).filter(|_| skill.is_ready),
        "score": score,
        "signals": signals,
        "offered": is_offered,
        "reason": reason,
    })
}

#[cfg(test)]
mod tests;

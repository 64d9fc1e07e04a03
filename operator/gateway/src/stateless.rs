//! For routers that call the model themselves: a request in, the same with skills out; an answer in, results and the
//! next request out. And for people: why a request is offered what it is.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Request, State},
    routing::post,
};
use http::{HeaderMap, request::Parts};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use skillet_core::{
    dialect::{
        DialectName,
        confirmation::answer::{self, tokens},
    },
    offer::{Explanation, Verdict},
};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    conversation::{Called, Conversation, Limits, SESSION_HEADER},
    error::ApiError,
    idempotency,
    identity::Caller,
    offering::{self, Offering, Question, Target, Wish},
    proxy::{self, text},
    rest::body,
    skills::Namespace,
    state::Gateway,
};

/// The routes.
pub fn routes() -> Router<Gateway> {
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
    /// How often the model was asked again before, so that no call is taken for an earlier one.
    #[serde(default)]
    round: u32,
}

/// A request of a caller who is known.
struct Sent<T> {
    caller: Caller,
    headers: HeaderMap,
    body: T,
    /// What it takes of the memory for all.
    room: OwnedSemaphorePermit,
}

/// Who asks comes first: nobody unknown makes the gateway hold a body.
async fn sent<T: DeserializeOwned>(gateway: &Gateway, request: Request) -> Result<Sent<T>, ApiError> {
    let (Parts { headers, .. }, body) = request.into_parts();
    let caller = gateway.identity.caller(&headers).await?;
    let bytes = proxy::read(body).await?;
    let room = gateway.room.take(&bytes).await?;
    Ok(Sent { caller, headers, body: body::read(&bytes)?, room })
}

/// A request whose skills are to be chosen.
struct Asked {
    caller: Caller,
    headers: HeaderMap,
    dialect: DialectName,
    request: Value,
    model: String,
    wish: Wish,
    namespaces: Vec<Arc<Namespace>>,
    room: OwnedSemaphorePermit,
}

async fn asked(gateway: &Gateway, request: Request) -> Result<Asked, ApiError> {
    let Sent { caller, headers, body, room } = sent(gateway, request).await?;
    let Inject { dialect, request, model } = body;
    let wish = Wish::of(&headers)?;
    let model = model.or_else(|| request["model"].as_str().map(ToOwned::to_owned)).unwrap_or_default();
    let namespaces = offering::visible(gateway, &caller, &wish).await?;
    Ok(Asked { caller, headers, dialect: dialect.into(), request, model, wish, namespaces, room })
}

impl Asked {
    fn question(&self, gateway: &Gateway) -> Question<'_> {
        let Self { dialect, request, model, wish, .. } = self;
        Question { dialect: *dialect, model, request, wish, can_ask: gateway.confirmation.is_some() }
    }
}

async fn inject(State(gateway): State<Gateway>, request: Request) -> Result<Json<Value>, ApiError> {
    let asked = asked(&gateway, request).await?;
    let offering = offering::offer(&gateway.skills.policy(), &asked.namespaces, &asked.question(&gateway));
    let Asked { caller, headers, dialect, mut request, room, .. } = asked;
    offering::add(dialect, &mut request, &offering)?;
    let conversation = conversation(gateway, caller, dialect, offering, (&headers, room))?;
    conversation.settle(&mut request, &mut conversation.progress()).await;
    Ok(Json(conversation.offering.told(&request)))
}

fn conversation(
    gateway: Gateway,
    caller: Caller,
    dialect: DialectName,
    offering: Offering,
    (headers, room): (&HeaderMap, OwnedSemaphorePermit),
) -> Result<Conversation, ApiError> {
    Ok(Conversation {
        limits: Limits::of(&gateway.skills.policy().gateway.conversation, headers)?,
        gateway,
        caller,
        dialect,
        offering,
        idempotency: idempotency::key(headers)?,
        session: text(headers, SESSION_HEADER),
        confirmations: tokens(text(headers, answer::HEADER).as_deref()),
        room: Some(room),
    })
}

async fn intercept(State(gateway): State<Gateway>, request: Request) -> Result<Json<Value>, ApiError> {
    let Sent { caller, headers, body, room } = sent(&gateway, request).await?;
    let Intercept { dialect, request, answer, offered, round } = body;
    let targets = offered.into_iter().map(|(tool, target)| (tool.into(), target)).collect();
    let offering = Offering { targets, ..Offering::default() };
    let conversation = conversation(gateway, caller, dialect.into(), offering, (&headers, room))?;
    let Called { ours, asked, has_others } = conversation.called(&answer);
    if ours.is_empty() && asked.is_empty() {
        return Ok(Json(json!({ "results": [], "answer": answer })));
    }
    let mut progress = conversation.progress_at(round);
    let results = conversation.run(&ours, &mut progress).await;
    let told: Vec<Value> = results
        .iter()
        .map(|result| json!({ "id": result.id, "tool": result.name, "content": result.content, "isError": result.is_error }))
        .collect();
    let dialect = conversation.dialect.dialect();
    Ok(Json(if has_others {
        let mut mixed = dialect.mixed_answer(&answer, &results);
        conversation.ask(&answer, &asked, &mut mixed);
        json!({ "results": told, "answer": mixed })
    } else {
        json!({ "results": told, "nextRequest": conversation.next(&request, &answer, &results) })
    }))
}

async fn explain(State(gateway): State<Gateway>, request: Request) -> Result<Json<Value>, ApiError> {
    let asked = asked(&gateway, request).await?;
    let policy = gateway.skills.policy();
    let explained = offering::explained(&policy, &asked.namespaces, &asked.question(&gateway));
    let skills: Vec<Value> = explained.iter().map(told).collect();
    Ok(Json(json!({ "skills": skills })))
}

fn told(explanation: &Explanation) -> Value {
    let Explanation { skill, score, signals, verdict } = explanation;
    let signals: Vec<Value> = signals
        .iter()
        .map(|signal| json!({ "kind": format!("{:?}", signal.kind), "points": signal.points, "text": signal.text }))
        .collect();
    let (is_offered, reason) = match verdict {
        Verdict::Offered { .. } => (true, "Offered"),
        Verdict::NotOffered(reason) => (false, reason.as_str()),
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
#[path = "stateless_tests.rs"]
mod tests;

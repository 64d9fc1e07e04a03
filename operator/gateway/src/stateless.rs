//! For routers that call the model themselves: a request in, the same with skills out; an answer in, results and the
//! next request out. And for people: why a request is offered what it is.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    routing::post,
};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skillet_core::{
    dialect::DialectName,
    offer::{Explanation, Verdict},
};

use crate::{
    conversation::{Conversation, IDEMPOTENCY_HEADER, Limits, SESSION_HEADER},
    error::ApiError,
    offering::{self, Offering, Target, Wish},
    proxy::{REQUEST_LIMIT, text},
    skills::Namespace,
    state::Gateway,
};

/// The routes.
pub fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/inject", post(inject))
        .route("/v1/intercept", post(intercept))
        .route("/v1/explain", post(explain))
        .layer(DefaultBodyLimit::max(REQUEST_LIMIT))
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

/// A body as JSON of a known shape; what is wrong with it is told with its place.
fn parsed<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, ApiError> {
    let mut reader = serde_json::Deserializer::from_str(body);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = format!("/{}", error.path().to_string().replace('.', "/"));
        ApiError::bad_request(error.into_inner().to_string()).at(field)
    })
}

/// A request whose skills are to be chosen.
struct Asked {
    dialect: DialectName,
    request: Value,
    model: String,
    wish: Wish,
    namespaces: Vec<Arc<Namespace>>,
}

async fn asked(gateway: &Gateway, headers: &HeaderMap, body: &str) -> Result<Asked, ApiError> {
    let caller = gateway.identity.caller(headers).await?;
    let Inject { dialect, request, model } = parsed(body)?;
    let wish = Wish::of(headers)?;
    let model = model.or_else(|| request["model"].as_str().map(ToOwned::to_owned)).unwrap_or_default();
    let namespaces = offering::visible(gateway, &caller, &wish).await?;
    Ok(Asked { dialect: dialect.into(), request, model, wish, namespaces })
}

async fn inject(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, ApiError> {
    let Asked { dialect, mut request, model, wish, namespaces } = asked(&gateway, &headers, &body).await?;
    let offering = offering::offer(&gateway.skills.policy(), &namespaces, dialect, &model, &request, &wish);
    offering::add(dialect, &mut request, &offering)?;
    Ok(Json(offering.told(&request)))
}

async fn intercept(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, ApiError> {
    let caller = gateway.identity.caller(&headers).await?;
    let Intercept { dialect, request, answer, offered, round } = parsed(&body)?;
    let limits = Limits::of(&gateway.skills.policy().gateway.conversation, &headers)?;
    let targets = offered.into_iter().map(|(tool, target)| (tool.into(), target)).collect();
    let conversation = Conversation {
        gateway,
        caller,
        dialect: dialect.into(),
        offering: Offering { targets, ..Offering::default() },
        limits,
        idempotency: text(&headers, IDEMPOTENCY_HEADER),
        session: text(&headers, SESSION_HEADER),
        room: None,
    };
    let (ours, has_others) = conversation.ours(&answer);
    if ours.is_empty() {
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
        json!({ "results": told, "answer": dialect.mixed_answer(&answer, &results) })
    } else {
        json!({ "results": told, "nextRequest": conversation.next(&request, &answer, &results) })
    }))
}

async fn explain(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, ApiError> {
    let Asked { dialect, request, model, wish, namespaces } = asked(&gateway, &headers, &body).await?;
    let policy = gateway.skills.policy();
    let explained = offering::explained(&policy, &namespaces, dialect, &model, &request, &wish);
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
        "version": *skill.version,
        "score": score,
        "signals": signals,
        "offered": is_offered,
        "reason": reason,
    })
}

#[cfg(test)]
#[path = "stateless_tests.rs"]
mod tests;

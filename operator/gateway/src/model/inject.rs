//! Stateless routes for routers that call the model themselves, and `explain` for people.
//!
//! `inject` adds tools to a request. `intercept` runs the skill calls of a response and builds the next request.

use axum::{
    Json, Router,
    extract::{Request, State},
    response::Response,
    routing::post,
};
use bytes::Bytes;
use http::{HeaderMap, request::Parts};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use skillet_llm::{
    DialectName, ToolResult,
    json_edit::{field, render},
};
use skillet_offer::{Explanation, OfferDecision, QuestionTerm};

use crate::{
    auth::{Caller, Verb},
    commands::CommandUse,
    compute::compute,
    error::ApiError,
    memory::MemoryReservation,
    model::{BODY_BUDGET, ModelState},
    model::{
        conversation::{
            SplitCalls,
            step::{Round, Step},
        },
        offered_tools::{OfferedTool, OfferedTools, SearchScope},
        preferences::SkillPreferences,
        proxy::with_text,
        tools::{self, ExplainedOffer},
        turn::Turn,
    },
    rest::body,
};

/// The routes.
pub fn routes() -> Router<ModelState> {
    Router::new()
        .route("/v1/inject", post(inject))
        .route("/v1/intercept", post(intercept))
        .route("/v1/explain", post(explain))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inject {
    dialect: DialectName,
    request: Value,
    /// For Gemini, whose requests do not name it.
    model: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Intercept {
    dialect: DialectName,
    /// As it was sent to the provider.
    request: Value,
    answer: Value,
    /// The tools that `inject` returned for this request.
    offered: std::collections::BTreeMap<String, OfferedTool>,
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
    memory: MemoryReservation,
}

/// Authenticates first: no unknown caller makes the gateway hold a body.
async fn sent<T: DeserializeOwned>(gateway: &ModelState, request: Request) -> Result<Sent<T>, ApiError> {
    let (Parts { headers, .. }, body) = request.into_parts();
    let caller = gateway.auth.authenticate(&headers, None).await?.caller;
    let (bytes, memory) = gateway.memory.read(&caller.namespace, body, BODY_BUDGET).await?;
    let body = compute(bytes.len(), || body::read(&bytes))?;
    Ok(Sent { caller, headers, bytes, body, memory })
}

async fn read_turn(gateway: &ModelState, request: Request) -> Result<Turn, ApiError> {
    let Sent { caller, headers, bytes, body, memory } = sent(gateway, request).await?;
    let Inject { dialect, request, model } = body;
    let model = model.or_else(|| request["model"].as_str().map(ToOwned::to_owned)).unwrap_or_default();
    Ok(Turn {
        caller,
        headers,
        dialect,
        model,
        request,
        original: field_text(&bytes, "request"),
        restored: None,
        memory,
    })
}

/// A field of a body as its author wrote it.
fn field_text(body: &Bytes, name: &str) -> Bytes {
    field(body, name).map(|text| body.slice_ref(text)).unwrap_or_default()
}

async fn inject(State(gateway): State<ModelState>, request: Request) -> Result<Response, ApiError> {
    let mut turn = read_turn(&gateway, request).await?;
    let tools = turn.offer_tools(&gateway, CommandUse::Run).await?;
    let (conversation, mut request) = turn.into_conversation(gateway, tools)?;
    conversation.resolve_confirmations(&mut request, &mut conversation.progress()).await?;
    Ok(with_text(&conversation.offered.to_json(), "request", &conversation.sent(&request)))
}

async fn intercept(State(gateway): State<ModelState>, request: Request) -> Result<Response, ApiError> {
    let Sent { caller, headers, bytes, body, memory } = sent(&gateway, request).await?;
    let Intercept { dialect, request, answer, offered, round: round_number } = body;
    let targets = offered.into_iter().map(|(tool, target)| (tool.into(), target)).collect();
    let mut tools = OfferedTools { targets, ..OfferedTools::default() };
    let mut scope = None;
    if tools.needs_scope() {
        let preferences = SkillPreferences::of(&headers)?;
        let usable = tools::load_namespaces(&gateway, &caller, &preferences).await?.usable;
        let namespaces = usable.iter().map(|namespace| namespace.name().clone()).collect();
        tools.scope = SearchScope { namespaces, filter: preferences.filter.clone() };
        scope = Some((usable, preferences));
    }
    let (original, model) = (field_text(&bytes, "request"), String::new());
    let turn = Turn { caller, headers, dialect, model, request, original, restored: None, memory };
    if let Some((usable, preferences)) = &scope {
        let question = turn.offer_request(&gateway, preferences);
        let find = || tools::find_restrictions(usable, &question, &tools.targets);
        tools.restrictions = compute(turn.original.len(), find);
    }
    let (conversation, request) = turn.into_conversation(gateway, tools)?;
    let as_written = field_text(&bytes, "answer");
    let called = compute(as_written.len(), || conversation.split_calls(&answer));
    if called.is_empty() {
        return Ok(with_text(&json!({ "results": [] }), "answer", &as_written));
    }
    let SplitCalls { skills, awaiting_confirmation, has_client_calls } = called;
    let round = Round { response: &answer, skill_calls: &skills, has_client_calls };
    Ok(match conversation.step(&request, round, &mut conversation.progress_at(round_number)).await {
        Step::Ask { request, results } => {
            with_text(&results_json(&results), "nextRequest", &conversation.sent(&request))
        }
        Step::Respond { results } => {
            let mut mixed = conversation.dialect.dialect().client_response(&answer, &results);
            conversation.add_confirmation_prompt(&answer, &awaiting_confirmation, None, &mut mixed);
            with_text(&results_json(&results), "answer", &render(&as_written, &mixed))
        }
    })
}

fn results_json(results: &[ToolResult]) -> Value {
    let listed: Vec<Value> = results
        .iter()
        .map(|result| json!({ "id": result.id, "tool": result.name, "content": result.content, "isError": result.is_error }))
        .collect();
    json!({ "results": listed })
}

async fn explain(State(gateway): State<ModelState>, request: Request) -> Result<Json<Value>, ApiError> {
    let (explained, forbidden) = read_turn(&gateway, request).await?.explain(&gateway).await?;
    let ExplainedOffer { mode, skills, instructions, native, terms } = explained;
    let skills: Vec<Value> = skills.iter().map(explanation_json).collect();
    let terms: Vec<Value> = terms
        .iter()
        .map(|QuestionTerm { word, term, points }| json!({ "word": word, "term": term, "points": points }))
        .collect();
    let forbidden: Vec<Value> =
        forbidden.iter().map(|(namespace, verb)| forbidden_json(namespace, *verb)).collect();
    Ok(Json(
        json!({ "mode": mode, "skills": skills, "instructions": instructions, "nativeTools": native, "terms": terms,
            "embeddings": gateway.catalog.embeddings().to_json(), "forbidden": forbidden }),
    ))
}

fn forbidden_json(namespace: &str, verb: Verb) -> Value {
    let message = format!(
        "the caller may not {verb} skills in namespace {namespace}; a Role that names single skills does not suffice for models"
    );
    json!({ "namespace": namespace, "verb": verb.as_str(), "message": message })
}

fn explanation_json(explanation: &Explanation) -> Value {
    let Explanation { skill, score, signals, threshold, turn, decision } = explanation;
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
        "threshold": threshold,
        "distance": score - threshold,
        "turn": turn,
        "signals": signals,
        "offered": is_offered,
        "reason": reason,
    })
}

#[cfg(test)]
mod tests;

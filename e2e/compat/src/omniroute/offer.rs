//! `context_tokens`, `name_tokens`, `context_text`, `score`, `detect_provider`, `background_reason`: how a request is
//! read and what a skill scores.

use std::sync::Arc;

use serde_json::{Value, json};
use skillet_api::skill::{Invocation, Mode};
use skillet_llm::ToolDefinition;
use skillet_offer::{
    Candidate, ProviderFamily, Query, RequestFacts, Scorer, Scoring, ascii_words as tokens,
    background::{BackgroundReason, background_reason},
    context_text, provider_family, reference_texts,
};

use crate::{
    case::Case,
    judge::{Answer, Sense, mentions},
};

pub(super) fn context_tokens(case: &Case) -> Result<Answer, String> {
    Ok(compare_sets(case, &tokens::context_tokens(case.text("text"))))
}

pub(super) fn name_tokens(case: &Case) -> Result<Answer, String> {
    Ok(compare_sets(case, &tokens::name_tokens(case.text("name"))))
}

/// Tokens are a set; their order does not count.
fn compare_sets(case: &Case, tokens: &[String]) -> Answer {
    let sorted = |tokens: &Value| {
        let mut texts: Vec<String> = tokens.as_array().into_iter().flatten().map(Value::to_string).collect();
        texts.sort();
        texts
    };
    let value = json!({ "tokens": tokens });
    let is_same = sorted(&value["tokens"]) == sorted(&case.expected["tokens"]);
    Answer { is_same, ..Answer::exact(case, value) }
}

pub(super) fn context(case: &Case) -> Result<Answer, String> {
    let text = with_facts(&case.input, context_text);
    let expected = case.expected["text"].as_str().unwrap_or_default();
    let is_same = text == expected || split_tools(&text) == split_tools(expected);
    Ok(Answer { is_same, ..Answer::exact(case, json!({ "text": text })) })
}

/// The list of tools that a context begins with, whose keys may be in any order, and the rest.
fn split_tools(context: &str) -> Option<(Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(context).into_iter::<Value>();
    let tools = values.next()?.ok()?;
    Some((tools, context.get(values.byte_offset()..)?))
}

pub(super) fn score(case: &Case) -> Result<Answer, String> {
    let skill = candidate(&case.input["skill"], Mode::Auto, 0)?;
    let scoring = Scoring::default();
    let score = |scoring: &Scoring| {
        Scorer::new(scoring.weights, &query(scoring, &case.input["request"])).score(&skill)
    };
    let reference = score(&scoring);
    let value = json!({"score": reference, "injectedIfAuto": reference >= scoring.threshold});
    let better = score(&Scoring::words());
    // What is wanted better is the scoring `words`: no false match, or a match in any script.
    let is_better = if mentions(case.want.as_deref().unwrap_or_default(), &["unicode", "token"]) {
        better > reference
    } else {
        better < reference
    };
    let meets_want = if case.want.is_some() { Sense::of(is_better) } else { Sense::Unknown };
    Ok(Answer { meets_want, ..Answer::exact(case, value) })
}

pub(super) fn detect_provider(case: &Case) -> Result<Answer, String> {
    Ok(Answer::exact(case, json!({ "provider": provider_family(case.text("model")).word() })))
}

pub(super) fn background(case: &Case) -> Result<Answer, String> {
    let headers = case.input["headers"].as_object();
    let header = |name: &str| {
        let mut headers = headers.into_iter().flatten();
        headers.find(|(given, _)| given.eq_ignore_ascii_case(name)).and_then(|(_, value)| value.as_str())
    };
    let reason = background_reason(&case.input["body"], header);
    Ok(Answer::exact(case, json!({ "reason": reason.map(BackgroundReason::word) })))
}

/// A request of a case, read for a scoring.
pub(super) fn query(scoring: &Scoring, request: &Value) -> Query {
    with_facts(request, |facts| scoring.query(facts))
}

fn with_facts<T>(request: &Value, read: impl FnOnce(&RequestFacts<'_>) -> T) -> T {
    let text = |field: &str| request[field].as_str().unwrap_or_default();
    let client_tools = client_tools(request);
    let texts = reference_texts(request);
    read(&RequestFacts {
        provider: match text("provider") {
            "openai" => ProviderFamily::OpenAi,
            "anthropic" => ProviderFamily::Anthropic,
            "google" => ProviderFamily::Google,
            _ => ProviderFamily::Other,
        },
        model: text("model"),
        source_format: text("sourceFormat"),
        target_format: text("targetFormat"),
        background: request["backgroundReason"].as_str(),
        client_tools: &client_tools,
        texts: &texts,
    })
}

pub(super) fn client_tools(request: &Value) -> Vec<&Value> {
    request["existingTools"].as_array().into_iter().flatten().collect()
}

/// A skill of a case; its place in the list is when it was registered.
pub(super) fn candidate(skill: &Value, mode: Mode, registered: i64) -> Result<Candidate, String> {
    let text = |field: &str| skill[field].as_str().unwrap_or_default();
    let name = skill["name"].as_str().ok_or("the skill has no name")?;
    let tags = skill["tags"].as_array().into_iter().flatten();
    let tool = ToolDefinition {
        // Until the product's own names and schemas are plugged in here.
        name: format!("{name}@{}", text("version")).into(),
        description: text("description").into(),
        parameters: Arc::new(skill["inputSchema"].clone()),
    };
    Ok(Candidate {
        namespace: text("owner").into(),
        name: name.into(),
        version: text("version").into(),
        is_ready: true,
        description: text("description").into(),
        tags: tags.filter_map(Value::as_str).map(str::to_owned).collect(),
        mode,
        enabled: skill["enabled"].as_bool().unwrap_or(true),
        invocation: Invocation::Auto,
        install_count: skill["installCount"].as_u64().unwrap_or_default(),
        registered,
        tool: tool.into(),
    })
}

//! `context_tokens`, `name_tokens`, `context_text`, `score`, `detect_provider`: words and texts of requests, and scores of
//! skills.

use std::sync::Arc;

use serde_json::{Value, json};
use skillet_api::skill::{Invocation, Mode};
use skillet_llm::ToolDefinition;
use skillet_offer::{Candidate, ProviderFamily, Query, RequestFacts, Scorer, Scoring, ascii_words};

use super::background;
use crate::{
    case::Case,
    judge::{Answer, Sense, mentions},
};

pub(super) fn context_tokens(case: &Case) -> Result<Answer, String> {
    Ok(compare_sets(case, &ascii_words::text_words(case.text("text"))))
}

pub(super) fn name_tokens(case: &Case) -> Result<Answer, String> {
    Ok(compare_sets(case, &ascii_words::name_words(case.text("name"))))
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
    let text = with_facts(&case.input, |facts| facts.substring_text());
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
    let (scoring, request) = (Scoring::default(), &case.input["request"]);
    let background =
        request["backgroundReason"].as_str().map_or(0, |reason| background::points(&skill, reason));
    let score =
        |scoring: &Scoring| background + Scorer::new(scoring.weights, &query(scoring, request)).score(&skill);
    let substring = score(&scoring);
    let value = json!({"score": substring, "injectedIfAuto": substring >= scoring.threshold});
    let words = score(&Scoring::words());
    // The better result that cases want is that of `Words`: no false match, or a match in any script.
    let is_better = if mentions(case.want.as_deref().unwrap_or_default(), &["unicode", "token"]) {
        words > substring
    } else {
        words < substring
    };
    let meets_want = if case.want.is_some() { Sense::of(is_better) } else { Sense::Unknown };
    Ok(Answer { meets_want, ..Answer::exact(case, value) })
}

pub(super) fn detect_provider(case: &Case) -> Result<Answer, String> {
    Ok(Answer::exact(case, json!({ "provider": ProviderFamily::of_model(case.text("model")).as_str() })))
}

/// Prepares the request of a case for a scoring.
pub(super) fn query(scoring: &Scoring, request: &Value) -> Query {
    with_facts(request, |facts| scoring.query(&facts))
}

fn with_facts<T>(request: &Value, read: impl FnOnce(RequestFacts<'_>) -> T) -> T {
    let text = |field: &str| request[field].as_str().unwrap_or_default();
    let client_tools = client_tools(request);
    let texts = texts(request);
    // OmniRoute searches both formats and the reason for background, in this order.
    let parts = [text("sourceFormat"), text("targetFormat"), text("backgroundReason")];
    let format: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    read(RequestFacts {
        provider: match text("provider") {
            "openai" => ProviderFamily::OpenAi,
            "anthropic" => ProviderFamily::Anthropic,
            "google" => ProviderFamily::Google,
            _ => ProviderFamily::Other,
        },
        model: text("model"),
        format: &format.join(" "),
        client_tools: &client_tools,
        texts: &texts,
        user_turns: &[],
    })
}

/// Returns the texts that OmniRoute reads from a request body: the `content` of each message of `messages`, else of `input`
/// if that is a list. A `content` is a text, or a list of texts and of items with a `text`.
///
/// The product's dialects read more: a text as `input`, instructions beside the messages, Gemini's contents.
fn texts(body: &Value) -> Vec<&str> {
    let list = |field: &str| body.get(field).and_then(Value::as_array);
    let messages = list("messages").or_else(|| list("input")).map(Vec::as_slice).unwrap_or_default();
    messages.iter().filter_map(|message| message.get("content")).flat_map(content_texts).collect()
}

fn content_texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text.as_str()],
        Value::Array(items) => items.iter().filter_map(item_text).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

fn item_text(item: &Value) -> Option<&str> {
    item.as_str().or_else(|| item.get("text")?.as_str())
}

pub(super) fn client_tools(request: &Value) -> Vec<&Value> {
    request["existingTools"].as_array().into_iter().flatten().collect()
}

/// Reads a skill of a case; its position in the list is its registration.
pub(super) fn candidate(skill: &Value, mode: Mode, registered: i64) -> Result<Candidate, String> {
    let text = |field: &str| skill[field].as_str().unwrap_or_default();
    let name = skill["name"].as_str().ok_or("the skill has no name")?;
    let tags = skill["tags"].as_array().into_iter().flatten();
    let tool = ToolDefinition {
        // Other kinds compare names and schemas of tools.
        name: format!("{name}@{}", text("version")).into(),
        description: text("description").into(),
        parameters: Arc::new(skill["inputSchema"].clone()),
    };
    Ok(Candidate {
        namespace: text("owner").into(),
        name: name.into(),
        version: text("version").into(),
        is_ready: true,
        has_program: true,
        builtin: None,
        description: text("description").into(),
        tags: tags.filter_map(Value::as_str).map(str::to_owned).collect(),
        examples: [].into(),
        mode,
        enabled: skill["enabled"].as_bool().unwrap_or(true),
        invocation: Invocation::Auto,
        install_count: skill["installCount"].as_u64().unwrap_or_default(),
        vector: None,
        registered,
        tool: tool.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_from_messages_of_every_role() {
        let check = |body: Value, expected: &[&str]| assert_eq!(texts(&body), expected, "{body}");
        let items = json!(["b", {"text": "c"}, {"text": 1}, {"image": "d"}, null, ["e"]]);
        check(
            json!({"messages": [{"role": "system", "content": "a"}, {"role": "tool", "content": items}]}),
            &["a", "b", "c"],
        );
        check(json!({"input": [{"content": "a"}], "messages": null}), &["a"]);
        check(json!({"messages": [], "input": [{"content": "a"}]}), &[]);
        check(json!({"messages": [1, null, {"content": {"text": "a"}}, {}]}), &[]);
        check(json!({"input": "a", "instructions": "b", "system": "c", "contents": [{"content": "d"}]}), &[]);
        check(json!(null), &[]);
    }
}

//! What of a request is looked at, and the text that the reference searches.

use serde_json::Value;

use super::ProviderFamily;

/// A model request as far as the choice of skills depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFacts<'a> {
    /// Whose model it is for; decides about tags that name a provider.
    pub provider: ProviderFamily,
    /// The model's id; empty where the request names none.
    pub model: &'a str,
    /// The form of the client's request, such as `openai`.
    pub source_format: &'a str,
    /// The form in which the provider is asked.
    pub target_format: &'a str,
    /// By what the request was taken for one in the background, see [`super::background::BackgroundReason::word`].
    pub background: Option<&'a str>,
    /// The client's own tools, as the request lists them.
    pub client_tools: &'a [&'a Value],
    /// What people and the model wrote, in order.
    pub texts: &'a [&'a str],
}

/// The text that the reference searches, in lower case: the client's tools as JSON, the model, both formats, the reason
/// for background and what was written, with a blank between each two that are not empty.
///
/// Keys of objects are in alphabetical order, not in the client's.
pub fn context_text(facts: &RequestFacts<'_>) -> String {
    let tools = serde_json::to_string(facts.client_tools).unwrap_or_default();
    let written = facts.texts.join(" ");
    let parts = [
        tools.as_str(),
        facts.model,
        facts.source_format,
        facts.target_format,
        facts.background.unwrap_or_default(),
        &written,
    ];
    let given: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    given.join(" ").to_lowercase()
}

/// The texts that the reference reads from a request body: of each message of `messages`, else of `input` where that is
/// a list, the `content` as text, or each text and each item's `text` in it.
///
/// It leaves out much that a dialect reads: a text as `input`, instructions beside the messages, Gemini's contents.
pub fn reference_texts(body: &Value) -> Vec<&str> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_parts_are_joined_in_their_order_and_empty_ones_left_out() {
        assert_eq!(context_text(&RequestFacts::default()), "[]");
        let tool = json!({"type": "function", "name": "Look Up", "n": 1.5});
        let facts = RequestFacts {
            model: "GPT-4.1",
            source_format: "openai",
            target_format: "claude",
            background: Some("header_background"),
            client_tools: &[&tool],
            texts: &["Hello", "World"],
            ..RequestFacts::default()
        };
        let expected = r#"[{"n":1.5,"name":"look up","type":"function"}] gpt-4.1 openai claude header_background hello world"#;
        assert_eq!(context_text(&facts), expected);
        let quiet = RequestFacts { texts: &["", ""], ..RequestFacts::default() };
        assert_eq!(context_text(&quiet), "[]  ");
    }

    #[test]
    fn texts_are_read_from_messages_of_every_role() {
        let check = |body: Value, expected: &[&str]| assert_eq!(reference_texts(&body), expected, "{body}");
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

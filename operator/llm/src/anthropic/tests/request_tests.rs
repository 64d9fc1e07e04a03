//! Requests: tools, texts, what is offered.

use serde_json::{Value, json};

use std::sync::Arc;

use crate::{Dialect as _, DialectName, ToolDefinition, anthropic::Anthropic, testing::fixtures};

fn skill(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: "Sums numbers.".into(),
        parameters: Arc::new(json!({"type": "object", "properties": {"a": {"type": "number"}}})),
    }
}

fn sum_definition() -> Value {
    json!({"name": "sum", "description": "Sums numbers.",
        "input_schema": {"type": "object", "properties": {"a": {"type": "number"}}}})
}

fn check_offer(request: Value, expected: &Value) {
    fixtures::check_offer(DialectName::Anthropic, skill("sum"), request, expected);
}

#[test]
fn skills_are_offered_after_the_clients_tools() {
    let search = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 2});
    let own = json!({"name": "lookup", "input_schema": {"type": "object"}});
    check_offer(json!({"tools": [search, own]}), &json!({"tools": [search, own, sum_definition()]}));
    check_offer(json!({"model": "m"}), &json!({"model": "m", "tools": [sum_definition()]}));
    check_offer(json!({"tools": null}), &json!({"tools": [sum_definition()]}));
}

#[test]
fn the_clients_tools_are_read_as_they_are_listed() {
    let request =
        json!({"tools": [{"type": "bash_20250124", "name": "bash"}, {"type": "mcp_toolset"}, {"name": 1}]});
    assert_eq!(Anthropic.client_tools(&request).len(), 3);
    assert_eq!(Anthropic.client_tool_names(&request), ["bash"]);
}

fn check_texts(request: &Value, expected: &[&str]) {
    assert_eq!(Anthropic.texts(request), expected, "{request}");
}

#[test]
fn texts_are_those_that_a_person_or_model_wrote_in_order() {
    let request = json!({
        "tools": [{"name": "not this", "description": "nor this"}],
        "system": [{"type": "text", "text": "system"}],
        "messages": [
            {"role": "user", "content": "question"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hidden", "signature": "s"},
                {"type": "text", "text": "response"},
                {"type": "tool_use", "id": "t", "name": "n", "input": {"text": "hidden"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": "result"},
                {"type": "tool_result", "tool_use_id": "u", "content": [{"type": "text", "text": "more"}]},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "page"}},
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "part"}]}},
                {"type": "document", "source": {"type": "base64", "data": "aGlkZGVu"}},
                {"type": "image", "source": {"type": "base64", "data": "aGlkZGVu"}},
            ]},
        ],
    });
    check_texts(&request, &["system", "question", "response", "result", "more", "page", "part"]);
    check_texts(&json!({"system": "s", "messages": [{"content": ["a", 1, null]}, 7]}), &["s", "a"]);
    check_texts(&json!("x"), &[]);
}

#[test]
fn a_request_says_whether_it_streams() {
    assert!(Anthropic.is_streaming(&json!({"stream": true})));
    for request in [json!({}), json!({"stream": false}), json!({"stream": "true"}), json!(null)] {
        assert!(!Anthropic.is_streaming(&request), "{request}");
    }
}

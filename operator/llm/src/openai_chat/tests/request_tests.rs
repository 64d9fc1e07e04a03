//! Requests: tools, texts and appended tools.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{Dialect as _, ToolDefinition, openai_chat::OpenAiChat};

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: "Says it".into(),
        parameters: Arc::new(json!({"type": "object", "properties": {}})),
    }
}

fn offered(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "Says it", "parameters": {"type": "object", "properties": {}}}})
}

#[test]
fn the_clients_tools_and_every_name_of_theirs_are_known() {
    let request = json!({
        "tools": [offered("a"), {"type": "custom", "custom": {"name": "b"}}, {"type": "function", "name": "c"}, 5],
        "functions": [{"name": "d"}],
    });
    assert_eq!(OpenAiChat.client_tools(&request).len(), 4);
    assert_eq!(OpenAiChat.client_tool_names(&request), ["a", "b", "c", "d"]);
}

#[test]
fn all_text_is_read_in_order() {
    let request = json!({"messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": ["u", {"type": "text", "text": "v"}, {"type": "image_url", "image_url": {"url": "x"}}]},
        {"role": "assistant", "content": null}, 7,
        {"role": "tool", "content": "t"},
    ], "tools": [offered("a")]});
    assert_eq!(OpenAiChat.texts(&request), ["s", "u", "v", "t"]);
    assert!(OpenAiChat.texts(&json!({"messages": {}})).is_empty());
}

#[test]
fn only_true_asks_for_a_stream() {
    assert!(OpenAiChat.is_streaming(&json!({"stream": true})));
    assert!(!OpenAiChat.is_streaming(&json!({"stream": "true"})));
    assert!(!OpenAiChat.is_streaming(&json!({})));
}

#[test]
fn tools_are_offered_after_the_clients_own() {
    let check = |given: Value, expected: Value| {
        let mut request = json!({"tools": given});
        OpenAiChat.append_tools(&mut request, &[tool("x"), tool("y")]).unwrap();
        assert_eq!(request["tools"], expected);
    };
    check(json!([offered("z"), 1]), json!([offered("z"), 1, offered("x"), offered("y")]));
    check(json!(null), json!([offered("x"), offered("y")]));
    let mut request = json!({});
    OpenAiChat.append_tools(&mut request, &[]).unwrap();
    assert_eq!(request, json!({}));
    OpenAiChat.append_tools(&mut request, &[tool("x")]).unwrap();
    assert_eq!(request, json!({"tools": [offered("x")]}));
}

//! Requests: tools, names, texts, and what offering skills changes.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    Dialect as _, DialectName, ToolDefinition, openai_responses::OpenAiResponses, testing::fixtures,
};

fn weather() -> ToolDefinition {
    ToolDefinition {
        name: "weather".into(),
        description: "Tells the weather".into(),
        parameters: Arc::new(json!({"type": "object", "properties": {"city": {"type": "string"}}})),
    }
}

fn ours() -> Value {
    json!({"type": "function", "name": "weather", "description": "Tells the weather", "strict": false,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}})
}

fn check_offer(request: Value, expected: &Value) {
    fixtures::check_offer(DialectName::OpenAiResponses, weather(), request, expected);
}

#[test]
fn skills_are_offered_flat_after_the_clients_own_tools() {
    let own = json!([
        {"type": "web_search"},
        {"type": "function", "name": "lookup", "parameters": {}, "strict": true},
        {"type": "mcp", "server_label": "docs", "server_url": "https://docs.example"},
        {"type": "custom", "name": "grammar"},
    ]);
    let mut all = own.as_array().unwrap().clone();
    all.push(ours());
    check_offer(json!({"model": "m", "tools": own}), &json!({"model": "m", "tools": all}));
}

#[test]
fn a_request_without_tools_gets_a_list() {
    for none in [json!({}), json!({"tools": null}), json!({"tools": []})] {
        check_offer(none, &json!({ "tools": [ours()] }));
    }
}

#[test]
fn a_tool_is_known_by_its_name_or_the_type_of_a_hosted_one() {
    let request = json!({"tools": [
        {"type": "function", "name": "lookup"}, {"type": "web_search"}, {"type": "custom", "name": "grammar"},
        {"type": "function", "function": {"name": "nested"}}, {"type": "function"}, {"type": "custom"}, 5,
    ]});
    let names = OpenAiResponses.client_tool_names(&request);
    assert_eq!(names, ["lookup", "web_search", "grammar", "nested"]);
    assert_eq!(OpenAiResponses.client_tools(&request).len(), 7);
}

fn check_texts(request: &Value, expected: &[&str]) {
    assert_eq!(OpenAiResponses.texts(request), expected, "{request}");
}

#[test]
fn texts_are_instructions_and_input() {
    check_texts(&json!({"instructions": "Be brief.", "input": "Hi"}), &["Be brief.", "Hi"]);
    check_texts(&json!({"input": [{"role": "user", "content": "Hi"}]}), &["Hi"]);
    check_texts(&json!({"prompt": {"id": "p", "variables": {"a": "x", "b": {"text": "y"}}}}), &["x", "y"]);
}

#[test]
fn texts_are_read_from_messages_parts_and_tool_results() {
    let input = json!([
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "u"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "not read"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "not read"},
        {"type": "function_call_output", "call_id": "c", "output": "c"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "d"}]},
    ]);
    check_texts(&json!({ "input": input }), &["a", "b", "c", "d"]);
}

#[test]
fn a_request_of_another_shape_has_no_texts() {
    for request in [json!(null), json!([]), json!({"input": 5}), json!({"input": [1, null, {"content": 7}]})]
    {
        check_texts(&request, &[]);
    }
}

#[test]
fn only_the_word_true_streams() {
    assert!(OpenAiResponses.is_streaming(&json!({"stream": true})));
    for request in [json!({}), json!({"stream": false}), json!({"stream": "true"}), json!(null)] {
        assert!(!OpenAiResponses.is_streaming(&request), "{request}");
    }
}

#[test]
fn a_request_without_store_includes_the_content_of_reasoning() {
    let reasoning = "reasoning.encrypted_content";
    for (request, include, is_hidden) in [
        (json!({"store": false, "reasoning": {}}), json!([reasoning]), true),
        (json!({"store": false, "reasoning": {}, "include": null}), json!([reasoning]), true),
        (json!({"store": false, "reasoning": {}, "include": ["x"]}), json!(["x", reasoning]), true),
        (json!({"store": false, "reasoning": {}, "include": [reasoning]}), json!([reasoning]), false),
        (json!({"store": false}), Value::Null, false),
        (json!({"reasoning": {}}), Value::Null, false),
    ] {
        let mut offered = request.clone();
        assert_eq!(OpenAiResponses.append_tools(&mut offered, &[weather()]), Ok(is_hidden), "{request}");
        assert_eq!(offered["include"], include, "{request}");
    }
}

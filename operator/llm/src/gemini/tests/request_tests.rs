//! Requests: tools, texts, what is offered.

// What json! makes is given away where it is written.
#![allow(clippy::needless_pass_by_value)]

use serde_json::{Value, json};

use std::sync::Arc;

use crate::{Dialect as _, DialectName, ToolDefinition, gemini::Gemini, testing::fixtures};

fn schema() -> Value {
    json!({"type": "object", "properties": {"a": {"type": ["number", "null"]}}, "additionalProperties": false})
}

fn skill() -> ToolDefinition {
    ToolDefinition { name: "sum".into(), description: "Sums numbers.".into(), parameters: Arc::new(schema()) }
}

fn offered() -> Value {
    let sum = json!({"name": "sum", "description": "Sums numbers.", "parametersJsonSchema": schema()});
    json!({"functionDeclarations": [sum]})
}

fn check_offer(request: Value, expected: &Value) {
    fixtures::check_offer(DialectName::Gemini, skill(), request, expected);
}

#[test]
fn skills_are_offered_in_an_entry_of_their_own_after_the_clients() {
    let own = json!({"function_declarations": [{"name": "lookup", "parameters": {"type": "OBJECT"}}]});
    check_offer(json!({"tools": [own]}), &json!({"tools": [own, offered()]}));
    check_offer(json!({"contents": []}), &json!({"contents": [], "tools": [offered()]}));
    check_offer(json!({"tools": null}), &json!({"tools": [offered()]}));
}

#[test]
fn the_clients_functions_are_named_in_camel_and_snake_case() {
    let request = json!({"tools": [
        {"googleSearch": {}},
        {"functionDeclarations": [{"name": "a"}, {"name": 1}]},
        {"function_declarations": [{"name": "b"}]},
    ]});
    assert_eq!(Gemini.client_tools(&request).len(), 3);
    assert_eq!(Gemini.client_tool_names(&request), ["a", "b"]);
    assert!(Gemini.client_tool_names(&json!({"tools": {"functionDeclarations": 1}})).is_empty());
    assert!(!Gemini.is_streaming(&json!({"stream": true})));
}

#[test]
fn texts_are_those_of_parts_and_of_what_functions_answered() {
    let request = json!({
        "system_instruction": {"parts": [{"text": "system"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "question"}, {"inlineData": {"data": "aGlkZGVu"}}]},
            {"role": "model", "parts": [
                {"text": "hidden", "thought": true},
                {"functionCall": {"name": "f", "args": {"q": "hidden"}}},
            ]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": ["found", 1]}}}]},
        ],
    });
    assert_eq!(Gemini.texts(&request), ["system", "question", "found"]);
    assert_eq!(Gemini.texts(&json!({"systemInstruction": "s", "contents": ["t", 1]})), ["s", "t"]);
    assert!(Gemini.texts(&json!(null)).is_empty());
}

//! Arguments of calls in whole responses, in every dialect.

use serde_json::{Value, json};

use super::fixtures::check_json_calls;
use crate::DialectName;

fn response(dialect: DialectName, arguments: &Value) -> Value {
    match dialect {
        DialectName::OpenAiChat => {
            json!({"choices": [{"message": {"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": arguments}}]}}]})
        }
        DialectName::OpenAiResponses => {
            json!({"output": [{"type": "function_call", "call_id": "1", "name": "f", "arguments": arguments}]})
        }
        DialectName::Anthropic => {
            json!({"content": [{"type": "tool_use", "id": "1", "name": "f", "input": arguments}]})
        }
        DialectName::Gemini => {
            json!({"candidates": [{"content": {"parts": [{"functionCall": {"id": "1", "name": "f", "args": arguments}}]}}]})
        }
    }
}

#[test]
fn arguments_that_are_json_but_no_object_are_the_empty_object() {
    for dialect in DialectName::ALL {
        let object = json!({"a": [1]});
        check_json_calls(dialect, &response(dialect, &object), &[("1", "f", object)]);
        for odd in [json!([1]), json!(5), json!(true), json!(null), json!(""), json!(" \n")] {
            check_json_calls(dialect, &response(dialect, &odd), &[("1", "f", json!({}))]);
        }
    }
    for dialect in [DialectName::OpenAiChat, DialectName::OpenAiResponses] {
        for odd in ["[1]", "5", "null", "\"text\""] {
            check_json_calls(dialect, &response(dialect, &json!(odd)), &[("1", "f", json!({}))]);
        }
    }
    for dialect in [DialectName::Anthropic, DialectName::Gemini] {
        check_json_calls(dialect, &response(dialect, &json!("text")), &[("1", "f", json!({}))]);
    }
}

//! One item of a response's `output`: its kind, its owner, and the items that this crate writes.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::{Arguments, OfferedNames, ToolCall, ToolResult, wire};
use skillet_core::text::truncate;

/// Items, beside function calls, whose output the client provides. The provider runs every other kind itself.
const WAITING: [&str; 6] = [
    "apply_patch_call",
    "computer_call",
    "custom_tool_call",
    "local_shell_call",
    "mcp_approval_request",
    "shell_call",
];

/// Longest identifier that the provider takes back, in bytes.
const ID_LIMIT: usize = 64;

pub(super) fn is_function_call(item: &Value) -> bool {
    item["type"] == "function_call"
}

/// Returns true for a call of a skill that runs in the gateway. A function inside a namespace is the client's.
pub(super) fn is_ours(item: &Value, offered: &OfferedNames) -> bool {
    plain_name(item).is_some_and(|name| offered.contains(name))
}

/// Returns true for a call that awaits confirmation.
pub(super) fn needs_confirmation(item: &Value, offered: &OfferedNames) -> bool {
    plain_name(item).is_some_and(|name| offered.needs_confirmation(name))
}

/// The name of a function that is in no namespace.
pub(super) fn plain_name(item: &Value) -> Option<&str> {
    item["name"].as_str().filter(|_| is_function_call(item) && namespace(item).is_none())
}

/// Ids of the calls whose output is in the same response: the provider has run them.
pub(super) struct Answered<'a>(HashSet<&'a str>);

impl<'a> Answered<'a> {
    pub(super) fn in_output(output: &'a [Value]) -> Self {
        let is_output = |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_output"));
        Self(output.iter().filter(is_output).filter_map(|item| item["call_id"].as_str()).collect())
    }

    /// Returns true if the model waits for the client's output of `item`.
    pub(super) fn is_waiting(&self, item: &Value) -> bool {
        let kind = item["type"].as_str().unwrap_or_default();
        let can_wait = kind == "function_call"
            || WAITING.contains(&kind)
            || (kind == "tool_search_call" && item["execution"] == "client");
        can_wait && !item["call_id"].as_str().is_some_and(|id| self.0.contains(id))
    }
}

/// The call's id: the provider's, or one made from the item's index in the response.
pub(super) fn call_id(item: &Value, place: usize, response_id: &str) -> String {
    // The response's id keeps the calls of two rounds apart.
    let made = || shorten(&format!("call_{place}_{response_id}"));
    provider_id(item).map_or_else(made, str::to_owned)
}

/// The provider's id of a call.
pub(super) fn provider_id(item: &Value) -> Option<&str> {
    let given = |field: &str| item[field].as_str().filter(|id| !id.is_empty());
    given("call_id").or_else(|| given("id"))
}

/// The call that an item makes.
///
/// Only a plain function call has its name alone. Every other gets its kind or namespace and a dot before it, which no
/// offered name has in it: so that it is never taken for a call of ours.
pub(super) fn call(item: &Value, place: usize, response_id: &str) -> ToolCall {
    let id = call_id(item, place, response_id);
    let name = item["name"].as_str().unwrap_or_default();
    if !is_function_call(item) {
        let kind = item["type"].as_str().unwrap_or_default();
        let input = item.get("input").or_else(|| item.get("action")).cloned().unwrap_or_default();
        return ToolCall { id, name: format!("{kind}.{name}"), arguments: Arguments::Json(input) };
    }
    let name = namespace(item).map_or_else(|| name.to_owned(), |namespace| format!("{namespace}.{name}"));
    ToolCall { id, name, arguments: arguments(&item["arguments"]) }
}

fn namespace(item: &Value) -> Option<&str> {
    item["namespace"].as_str().filter(|namespace| !namespace.is_empty())
}

fn arguments(value: &Value) -> Arguments {
    match value {
        Value::Null => Arguments::Json(Value::Object(Map::new())),
        Value::String(text) if text.trim().is_empty() => Arguments::Json(Value::Object(Map::new())),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(json) => Arguments::Json(json),
            Err(_) => Arguments::NotJson(text.clone()),
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Arguments::Json(value.clone())
        }
    }
}

/// An item of a response as an item of the next request. None if the request may not hold it.
pub(super) fn as_input(item: &Value, place: usize, response_id: &str, is_stored: bool) -> Option<Value> {
    let mut fields = item.as_object()?.clone();
    let kind = item["type"].as_str().unwrap_or_default();
    // Reasoning that is neither stored nor carried by the item is known to nobody, and its bare id is refused.
    if kind == "reasoning" && !is_stored && !item["encrypted_content"].is_string() {
        return None;
    }
    // Answers may say null where a request must leave the field out.
    for field in ["status", "content", "encrypted_content"] {
        if fields.get(field).is_some_and(Value::is_null) {
            fields.remove(field);
        }
    }
    for field in ["created_by", "parsed_arguments"] {
        fields.remove(field);
    }
    if kind == "image_generation_call" {
        // A response also says size, quality and more, which the item of a request has not.
        fields.retain(|field, _| matches!(field.as_str(), "type" | "id" | "status" | "result"));
    }
    if kind == "function_call" {
        fields.insert("call_id".to_owned(), Value::String(call_id(item, place, response_id)));
    }
    Some(Value::Object(fields))
}

pub(super) fn function_call_output(result: &ToolResult) -> Value {
    json!({"type": "function_call_output", "call_id": result.id, "output": result.content})
}

/// Results as a message of the model. None without results.
pub(crate) fn results_message(results: &[ToolResult]) -> Option<Value> {
    Some(message(&format!("msg_{}", results.first()?.id), &wire::results_text(results)))
}

/// A message of the model. The provider takes one back only with an id that begins with `msg_`.
pub(super) fn message(id: &str, text: &str) -> Value {
    json!({
        "type": "message", "id": shorten(id), "role": "assistant", "status": "completed", "content": [text_part(text)],
    })
}

pub(super) fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn shorten(id: &str) -> String {
    truncate(id, ID_LIMIT).0.to_owned()
}

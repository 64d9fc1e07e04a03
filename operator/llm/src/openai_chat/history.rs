//! Calls that a request sends back, in messages of the assistant, and their results in messages of role `tool`.

use serde_json::{Value, json};

use super::tool_call::{foreign_type, text};
use crate::{
    ToolResult,
    history::{CallPairing, HistoryCall, ResultLocation},
    wire::items,
};

pub(super) fn calls(request: &Value) -> Vec<HistoryCall<'_>> {
    let mut pairing = CallPairing::default();
    for (turn, message) in items(&request["messages"]).iter().enumerate() {
        match message["role"].as_str() {
            Some("assistant") => {
                pairing.begin_turn();
                for call in items(&message["tool_calls"]).iter().filter_map(Value::as_object) {
                    let id = ["call_id", "id"].into_iter().find_map(|field| text(call, field));
                    let function = call.get("function").filter(|_| foreign_type(call).is_none());
                    let name = function.and_then(|function| function.get("name")?.as_str());
                    let arguments = function.and_then(|function| function.get("arguments"));
                    pairing.call(id.unwrap_or_default(), name.unwrap_or_default(), arguments);
                }
            }
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let name = message["name"].as_str().unwrap_or_default();
                pairing.result(id, name, &message["content"], ResultLocation { turn, part: 0 });
            }
            Some(_) | None => {}
        }
    }
    pairing.into_calls()
}

pub(super) fn replace_result(request: &mut Value, place: ResultLocation, result: &ToolResult) {
    let message = request.get_mut("messages").and_then(|messages| messages.get_mut(place.turn));
    if let Some(message) = message.and_then(Value::as_object_mut) {
        message.insert("content".to_owned(), json!(result.content));
    }
}

//! Calls that a request sends back, in contents of the model, and their results. Calls may have no ids: then a result is
//! of the first call of its name that has none yet.

use serde_json::Value;

use super::{
    either,
    response::{call_of, response_object},
};
use crate::{
    ToolResult,
    history::{CallPairing, HistoryCall, ResultLocation},
    wire::items,
};

pub(super) fn calls(request: &Value) -> Vec<HistoryCall<'_>> {
    let mut pairing = CallPairing::default();
    for (turn, content) in items(&request["contents"]).iter().enumerate() {
        let parts = items(&content["parts"]).iter();
        if content["role"] == "model" {
            pairing.begin_turn();
            for call in parts.filter_map(call_of) {
                let text = |field: &str| call[field].as_str().unwrap_or_default();
                pairing.call(text("id"), text("name"), call.get("args"));
            }
        } else {
            for (part, value) in parts.enumerate() {
                let response = either(value, "functionResponse", "function_response");
                if response.is_object() {
                    let text = |field: &str| response[field].as_str().unwrap_or_default();
                    pairing.result(
                        text("id"),
                        text("name"),
                        &response["response"],
                        ResultLocation { turn, part },
                    );
                }
            }
        }
    }
    pairing.into_calls()
}

pub(super) fn replace_result(request: &mut Value, place: ResultLocation, result: &ToolResult) {
    let part = request
        .get_mut("contents")
        .and_then(|contents| contents.get_mut(place.turn)?.get_mut("parts")?.get_mut(place.part));
    let Some(part) = part.and_then(Value::as_object_mut) else { return };
    for name in ["functionResponse", "function_response"] {
        if let Some(response) = part.get_mut(name).and_then(Value::as_object_mut) {
            response.insert("response".to_owned(), response_object(result));
        }
    }
}

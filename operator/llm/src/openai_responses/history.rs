//! Calls that a request sends back as items of its input, and their results. Of a response that the provider has
//! stored (`previous_response_id`, `conversation`) the request holds the results alone.

use serde_json::{Value, json};

use super::item::{is_function_call, plain_name, provider_id};
use crate::{
    ToolResult,
    history::{CallPairing, HistoryCall, ResultLocation},
    wire::items,
};

pub(super) fn calls(request: &Value) -> Vec<HistoryCall<'_>> {
    let mut pairing = CallPairing::default();
    let mut is_answered = false;
    for (turn, item) in items(&request["input"]).iter().enumerate() {
        if item["type"] == "function_call_output" {
            let id = item["call_id"].as_str().unwrap_or_default();
            pairing.result(id, "", &item["output"], ResultLocation { turn, part: 0 });
            is_answered = true;
        } else if is_of_model(item) {
            // A response is several items. Calls and results of one may alternate, so none is dropped here.
            if std::mem::take(&mut is_answered) {
                pairing.go_on();
            }
            if is_function_call(item) {
                let id = provider_id(item).unwrap_or_default();
                pairing.call(id, plain_name(item).unwrap_or_default(), item.get("arguments"));
            }
        }
    }
    pairing.into_calls()
}

fn is_of_model(item: &Value) -> bool {
    match item["type"].as_str() {
        None | Some("message") => item["role"] == "assistant",
        // The client's reply to a call of the provider.
        Some("mcp_approval_response") => false,
        Some(kind) => !kind.ends_with("_output"),
    }
}

pub(super) fn replace_result(request: &mut Value, place: ResultLocation, result: &ToolResult) {
    let item = request.get_mut("input").and_then(|input| input.get_mut(place.turn));
    if let Some(item) = item.and_then(Value::as_object_mut) {
        item.insert("output".to_owned(), json!(result.content));
    }
}

//! A whole response: its calls, the next request, the client's response, and usage.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::item::{self, Answered};
use crate::{
    ToolCall, ToolResult, Usage,
    wire::{self, items},
};

/// The response itself. Some relays pass on the end event of a stream, which has it in `response`.
pub(super) fn inner(envelope: &Value) -> &Value {
    if envelope["output"].is_array() || !envelope["response"].is_object() {
        envelope
    } else {
        &envelope["response"]
    }
}

fn inner_mut(envelope: &mut Value) -> &mut Value {
    if envelope["output"].is_array() || !envelope["response"].is_object() {
        return envelope;
    }
    &mut envelope["response"]
}

fn id(response: &Value) -> &str {
    response["id"].as_str().unwrap_or_default()
}

/// Every call that waits for someone outside the provider, in order.
pub(super) fn tool_calls(envelope: &Value) -> Vec<ToolCall> {
    let response = inner(envelope);
    let output = items(&response["output"]);
    let answered = Answered::in_output(output);
    let items = output.iter().enumerate();
    items
        .filter(|(_, item)| item::is_function_call(item) || answered.is_waiting(item))
        .map(|(place, item)| item::call(item, place, id(response)))
        .collect()
}

pub(super) fn next_request(request: &Value, envelope: &Value, results: &[ToolResult]) -> Value {
    let mut next = request.clone();
    let Some(fields) = next.as_object_mut() else { return next };
    let mut input = Vec::new();
    // A conversation at the provider already has the input and the response; sent again, they would be duplicates.
    if request["conversation"].is_null() {
        input = input_items(fields.remove("input").unwrap_or_default());
        let (response, is_stored) = (inner(envelope), request["store"] != false);
        let turn = items(&response["output"]).iter().enumerate();
        input.extend(turn.filter_map(|(place, item)| item::as_input(item, place, id(response), is_stored)));
    }
    input.extend(results.iter().map(item::function_call_output));
    fields.insert("input".to_owned(), Value::Array(input));
    next
}

fn input_items(input: Value) -> Vec<Value> {
    match input {
        Value::Null => Vec::new(),
        Value::Array(items) => items,
        Value::String(text) => vec![json!({"type": "message", "role": "user", "content": text})],
        other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) => vec![other],
    }
}

pub(super) fn client_response(envelope: &Value, results: &[ToolResult]) -> Value {
    let mut mixed = envelope.clone();
    let response = inner_mut(&mut mixed);
    let response_id = id(response).to_owned();
    let Some(output) = response.get_mut("output").and_then(Value::as_array_mut) else { return mixed };
    let ours: HashSet<&str> = results.iter().map(|result| result.id.as_str()).collect();
    let mut place = 0;
    output.retain(|item| {
        let call_id = item::call_id(item, place, &response_id);
        place += 1;
        !(item::is_function_call(item) && ours.contains(call_id.as_str()))
    });
    if let Some(message) = item::results_message(results) {
        output.insert(first_call(output).unwrap_or(output.len()), message);
    }
    mixed
}

fn first_call(output: &[Value]) -> Option<usize> {
    let answered = Answered::in_output(output);
    output.iter().position(|item| answered.is_waiting(item))
}

pub(super) fn insert_text_before_calls(envelope: &mut Value, text: &str) -> bool {
    let response = inner_mut(envelope);
    let response_id = id(response).to_owned();
    let Some(output) = response.get_mut("output").and_then(Value::as_array_mut) else { return false };
    // A call that the provider has answered is read as a call too.
    let first = first_call(output).or_else(|| output.iter().position(item::is_function_call));
    let Some(first) = first else { return false };
    let call_id = output.get(first).map(|call| item::call_id(call, first, &response_id)).unwrap_or_default();
    output.insert(first, item::message(&format!("msg_confirm_{call_id}"), text));
    true
}

pub(super) fn usage(envelope: &Value) -> Usage {
    wire::read_usage(&inner(envelope)["usage"], "input_tokens", "output_tokens")
}

pub(super) fn set_usage(envelope: &mut Value, total: Usage) {
    wire::write_usage(inner_mut(envelope).get_mut("usage"), "input_tokens", "output_tokens", total);
}

#[cfg(test)]
mod tests;

//! A whole chat completion: its calls, the next request, the client's response, and usage.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::tool_call;
use crate::{
    ToolCall, ToolResult, Usage,
    wire::{self, items, results_text},
};

pub(super) fn tool_calls(response: &Value) -> Vec<ToolCall> {
    tool_call::of_first_choice(response)
}

pub(super) fn next_request(request: &Value, response: &Value, results: &[ToolResult]) -> Value {
    let mut next = request.clone();
    let Some(fields) = next.as_object_mut() else { return next };
    let mut messages = match fields.remove("messages") {
        Some(Value::Array(messages)) => messages,
        Some(_) | None => Vec::new(),
    };
    messages.push(assistant_message(response));
    messages.extend(results.iter().map(|ToolResult { id, content, name: _, is_error: _ }| {
        json!({"role": "tool", "tool_call_id": id, "content": content})
    }));
    fields.insert("messages".to_owned(), Value::Array(messages));
    // Of several choices one was continued; further ones would be continuations of no turn the client saw.
    fields.remove("n");
    next
}

/// The model's turn as it was, its calls with the ids under which they were read.
fn assistant_message(response: &Value) -> Value {
    let mut message = match items(&response["choices"]).first().and_then(|choice| choice.get("message")) {
        Some(Value::Object(message)) => message.clone(),
        Some(_) | None => Map::from_iter([("content".to_owned(), Value::Null)]),
    };
    message.entry("role").or_insert_with(|| json!("assistant"));
    let calls: Vec<Value> = calls_with_ids(response).map(|(id, call)| with_id(call, &id)).collect();
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    Value::Object(message)
}

/// The calls as the response has them, each with the id under which it was read.
fn calls_with_ids(response: &Value) -> impl Iterator<Item = (String, &Value)> {
    let calls = tool_call::first_list(response).iter().filter(|call| call.is_object());
    tool_call::of_first_choice(response).into_iter().map(|read| read.id).zip(calls)
}

fn with_id(call: &Value, id: &str) -> Value {
    let mut call = call.clone();
    if let Some(fields) = call.as_object_mut().filter(|fields| tool_call::text(fields, "id") != Some(id)) {
        fields.insert("id".to_owned(), json!(id));
    }
    call
}

pub(super) fn client_response(response: &Value, results: &[ToolResult]) -> Value {
    let ours: HashSet<&str> = results.iter().map(|result| result.id.as_str()).collect();
    let calls = calls_with_ids(response).filter(|(id, _)| !ours.contains(id.as_str()));
    let left: Vec<Value> = calls.map(|(_, call)| call.clone()).collect();
    let is_empty = left.is_empty();
    let mut mixed = response.clone();
    let is_at_top = !items(&response["tool_calls"]).is_empty();
    let holder = if is_at_top { Some(&mut mixed) } else { mixed.pointer_mut("/choices/0/message") };
    put_calls(holder.and_then(Value::as_object_mut), left);
    let Some(choice) = mixed.pointer_mut("/choices/0").and_then(Value::as_object_mut) else { return mixed };
    if is_empty && choice.get("finish_reason") == Some(&json!("tool_calls")) {
        choice.insert("finish_reason".to_owned(), json!("stop"));
    }
    let message = choice.get_mut("message").and_then(Value::as_object_mut);
    let Some(message) = message else { return mixed };
    if !results.is_empty() {
        let content = message.entry("content").or_insert(Value::Null);
        append_text(content, results_text(results));
    }
    mixed
}

/// Inserts into the message of every choice with calls. For calls at the top of the response, into the first choice,
/// which is created if there is none.
pub(super) fn insert_text_before_calls(response: &mut Value, text: &str) -> bool {
    let is_at_top = !items(&response["tool_calls"]).is_empty();
    let Some(fields) = response.as_object_mut() else { return false };
    let choices = fields.get_mut("choices").filter(|choices| !choices.is_null());
    if choices.is_none_or(|choices| choices.as_array().is_some_and(Vec::is_empty)) && is_at_top {
        let made = json!([{"index": 0, "message": {"role": "assistant"}, "finish_reason": "tool_calls"}]);
        fields.insert("choices".to_owned(), made);
    }
    let mut is_put = false;
    let choices = fields.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten().enumerate();
    for (place, choice) in choices {
        let is_of_top = is_at_top && place == 0;
        if let Some(choice) = choice.as_object_mut().filter(|_| is_of_top) {
            choice.entry("message").or_insert_with(|| json!({"role": "assistant"}));
        }
        let calls = choice.pointer("/message/tool_calls").and_then(Value::as_array);
        let has_calls = is_of_top || calls.is_some_and(|calls| !calls.is_empty());
        let message = choice.get_mut("message").and_then(Value::as_object_mut).filter(|_| has_calls);
        if let Some(message) = message {
            append_text(message.entry("content").or_insert(Value::Null), text.to_owned());
            is_put = true;
        }
    }
    is_put
}

fn put_calls(fields: Option<&mut Map<String, Value>>, left: Vec<Value>) {
    let Some(fields) = fields else { return };
    if left.is_empty() {
        fields.remove("tool_calls");
    } else {
        fields.insert("tool_calls".to_owned(), Value::Array(left));
    }
}

fn append_text(content: &mut Value, text: String) {
    match content {
        Value::String(own) if !own.is_empty() => *own = format!("{own}\n\n{text}"),
        Value::Array(parts) => parts.push(json!({"type": "text", "text": text})),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            *content = Value::String(text);
        }
    }
}

pub(super) fn usage(response: &Value) -> Usage {
    read_usage(&response["usage"])
}

/// From the object `usage` of a response or of a chunk.
pub(super) fn read_usage(usage: &Value) -> Usage {
    wire::read_usage(usage, "prompt_tokens", "completion_tokens")
}

/// Into a response or a chunk that has usage numbers. Details stay those of the last round.
pub(super) fn set_usage(response: &mut Value, total: Usage) {
    wire::write_usage(response.get_mut("usage"), "prompt_tokens", "completion_tokens", total);
}

#[cfg(test)]
mod tests;

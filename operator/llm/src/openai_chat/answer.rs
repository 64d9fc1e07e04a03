//! What is made of an answer that calls tools: the next request, or the answer for the client. And its usage.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{
    super::{ToolResult, Usage},
    calls, list,
};

pub(super) fn next_request(request: &Value, answer: &Value, results: &[ToolResult]) -> Value {
    let mut next = request.clone();
    let Some(fields) = next.as_object_mut() else { return next };
    let mut messages = match fields.remove("messages") {
        Some(Value::Array(messages)) => messages,
        Some(_) | None => Vec::new(),
    };
    messages.push(assistant_message(answer));
    messages.extend(results.iter().map(|ToolResult { id, content, name: _, is_error: _ }| {
        json!({"role": "tool", "tool_call_id": id, "content": content})
    }));
    fields.insert("messages".to_owned(), Value::Array(messages));
    // Of several choices one was continued; further ones would be continuations of no turn the client saw.
    fields.remove("n");
    next
}

/// The model's turn as it was, its calls with the ids under which they were read.
fn assistant_message(answer: &Value) -> Value {
    let mut message = match list(answer, "choices").first().and_then(|choice| choice.get("message")) {
        Some(Value::Object(message)) => message.clone(),
        Some(_) | None => Map::from_iter([("content".to_owned(), Value::Null)]),
    };
    message.entry("role").or_insert_with(|| json!("assistant"));
    let calls: Vec<Value> = identified(answer).map(|(id, call)| with_id(call, &id)).collect();
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    Value::Object(message)
}

/// The calls as the answer has them, each with the id under which it was read.
fn identified(answer: &Value) -> impl Iterator<Item = (String, &Value)> {
    let calls = calls::first_list(answer).iter().filter(|call| call.is_object());
    calls::of_first_choice(answer).into_iter().map(|read| read.id).zip(calls)
}

fn with_id(call: &Value, id: &str) -> Value {
    let mut call = call.clone();
    if let Some(fields) = call.as_object_mut().filter(|fields| calls::text(fields, "id") != Some(id)) {
        fields.insert("id".to_owned(), json!(id));
    }
    call
}

pub(super) fn mixed(answer: &Value, results: &[ToolResult]) -> Value {
    let ours: HashSet<&str> = results.iter().map(|result| result.id.as_str()).collect();
    let calls = identified(answer).filter(|(id, _)| !ours.contains(id.as_str()));
    let left: Vec<Value> = calls.map(|(_, call)| call.clone()).collect();
    let is_empty = left.is_empty();
    let mut mixed = answer.clone();
    let is_at_top = !list(answer, "tool_calls").is_empty();
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

/// Into the message of every choice that calls. Of calls at the answer's top, into the first, which is made where there
/// is none.
pub(super) fn put_text_before_calls(answer: &mut Value, text: &str) -> bool {
    let is_at_top = !list(answer, "tool_calls").is_empty();
    let Some(fields) = answer.as_object_mut() else { return false };
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

/// Results as text for whoever reads the answer; the client's next turn carries it as the model's own words.
pub(super) fn results_text(results: &[ToolResult]) -> String {
    results.iter().map(ToolResult::told).collect::<Vec<_>>().join("\n\n")
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

/// From the object `usage` of an answer or of a chunk.
pub(super) fn read_usage(usage: &Value) -> Usage {
    let count = |field: &str| usage.get(field).and_then(Value::as_u64).unwrap_or_default();
    Usage { input: count("prompt_tokens"), output: count("completion_tokens") }
}

/// Into an answer or a chunk that has usage numbers. Details stay those of the last round.
pub(super) fn put_usage(answer: &mut Value, total: Usage) {
    let Some(usage) = answer.get_mut("usage").and_then(Value::as_object_mut) else { return };
    usage.insert("prompt_tokens".to_owned(), json!(total.input));
    usage.insert("completion_tokens".to_owned(), json!(total.output));
    usage.insert("total_tokens".to_owned(), json!(total.input.saturating_add(total.output)));
}

pub(super) fn sum(one: Usage, other: Usage) -> Usage {
    Usage { input: one.input.saturating_add(other.input), output: one.output.saturating_add(other.output) }
}

//! Chat completions: a seal is the id of the first client call, a field of the message, or a marker in its text.

use serde_json::{Value, json};

use super::{
    Format, Seal,
    restore::{CoveredTexts, Seals, has_seal},
};
use crate::wire::items;

/// The field of a message for what is not the provider's, and the seal's field in it.
pub(crate) const FIELDS: &str = "provider_specific_fields";
pub(crate) const FIELD: &str = "skillet";

pub(super) const FORMAT: Format = Format { field: "messages", restore, results, insert };

fn restore(messages: Vec<Value>, seals: &mut Seals<'_>) -> Vec<Value> {
    let mut restored = Vec::with_capacity(messages.len());
    for mut message in messages {
        if message["role"] == "assistant" && has_seal(&message) {
            restore_message(message, seals, &mut restored);
            continue;
        }
        seals.put_id(&mut message, "tool_call_id");
        restored.push(message);
    }
    restored
}

fn restore_message(mut message: Value, seals: &mut Seals<'_>, restored: &mut Vec<Value>) {
    let calls = items(&message["tool_calls"]).iter();
    if let Some(turns) = seals.open_call(calls.filter_map(|call| call["id"].as_str())) {
        restored.extend(turns);
        return;
    }
    let continuation = seals.open_last(&message).unwrap_or_default();
    let mut covered = CoveredTexts::new(continuation.turns.iter().flat_map(texts));
    let has_content = cut(&mut message, &mut covered);
    restored.extend(continuation.turns);
    for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        seals.put_id(call, "id");
    }
    if has_content || !items(&message["tool_calls"]).is_empty() {
        restored.push(message);
    }
}

/// Removes seals and covered text. Returns false if no content is left.
fn cut(message: &mut Value, covered: &mut CoveredTexts) -> bool {
    if let Some(fields) = message.as_object_mut() {
        fields.retain(|name, value| matches!(name.as_str(), "content" | "tool_calls") || !has_seal(value));
    }
    match message.get_mut("content") {
        Some(Value::Array(parts)) => {
            parts.retain_mut(|part| covered.cut_field(part, "text"));
            !parts.is_empty()
        }
        Some(Value::Null) | None => false,
        Some(_) => covered.cut_field(message, "content"),
    }
}

fn results(message: &mut Value) -> Vec<&mut Value> {
    if message["role"] != "tool" {
        return Vec::new();
    }
    message.get_mut("content").into_iter().collect()
}

fn texts(message: &Value) -> Vec<&str> {
    if message["role"] != "assistant" {
        return Vec::new();
    }
    match &message["content"] {
        Value::String(text) => vec![text],
        parts => items(parts).iter().filter_map(|part| part["text"].as_str()).collect(),
    }
}

fn insert(response: &mut Value, seal: &Seal) -> bool {
    let message = response.pointer_mut("/choices/0/message").and_then(Value::as_object_mut);
    let Some(message) = message else { return false };
    let fields = message.entry(FIELDS).or_insert_with(|| json!({}));
    let Some(fields) = fields.as_object_mut() else { return false };
    fields.insert(FIELD.to_owned(), seal.as_str().into());
    true
}

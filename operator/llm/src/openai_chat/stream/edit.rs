//! The client's view of a chunk with skill calls.

use serde_json::{Value, json};

use super::accumulator::{CallSlots, ChatRound, index_of};
use crate::openai_chat;

/// The result of [`remove_skill_calls`].
pub(super) struct Edited {
    pub(super) is_changed: bool,
    /// A chunk with the finish reason and usage that were taken out.
    pub(super) end: Option<Value>,
}

/// Removes skill calls, renumbers the client's calls after them, and removes the end of a turn that is held back.
pub(super) fn remove_skill_calls(chunk: &mut Value, places: &CallSlots, round: &mut ChatRound) -> Edited {
    let mut is_changed = false;
    let mut ends = Vec::new();
    for (choice, slots) in choices_mut(chunk).zip(&places.0) {
        is_changed |= strip_calls(choice, slots, round);
        let index = index_of(choice);
        if index > 0 && round.has_only_ours(index) {
            // What is called in a choice that is not continued is not run; that choice just ends.
            is_changed |= choice.get_mut("finish_reason").is_some_and(openai_chat::end_turn);
        }
        let reason = choice.get_mut("finish_reason").filter(|reason| !reason.is_null());
        if let Some(reason) = reason.filter(|_| index == 0 && round.is_end_held()) {
            ends.push(json!({"index": 0, "delta": {}, "finish_reason": reason.take()}));
        }
    }
    let is_end = !ends.is_empty();
    let end = is_end.then(|| {
        let mut end = chunk.clone();
        put(&mut end, "choices", Value::Array(ends));
        end
    });
    if is_end && has_usage(chunk) {
        put(chunk, "usage", Value::Null);
    }
    if let Some(choices) =
        chunk.get_mut("choices").and_then(Value::as_array_mut).filter(|_| is_changed || is_end)
    {
        choices.retain(|choice| !is_blank(choice));
    }
    Edited { is_changed: is_changed || is_end, end }
}

/// Returns true if a call was removed or renumbered.
fn strip_calls(choice: &mut Value, slots: &[Option<usize>], round: &mut ChatRound) -> bool {
    let index = index_of(choice);
    let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) else { return false };
    let Some(Value::Array(calls)) = delta.get_mut("tool_calls") else { return false };
    let number = calls.len();
    let mut is_renumbered = false;
    let mut slots = slots.iter();
    calls.retain_mut(|call| {
        let Some(slot) = slots.next().copied().flatten() else { return true };
        if round.is_ours(index, slot) {
            return false;
        }
        let place = round.client_place(index, slot);
        if place.is_some_and(|place| call.get("index").and_then(Value::as_u64) != Some(place)) {
            put(call, "index", json!(place));
            is_renumbered = true;
        }
        true
    });
    let is_stripped = calls.len() < number;
    if calls.is_empty() && is_stripped {
        delta.remove("tool_calls");
    }
    is_stripped || is_renumbered
}

fn put(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

fn choices(chunk: &Value) -> impl Iterator<Item = &Value> {
    chunk.get("choices").and_then(Value::as_array).into_iter().flatten()
}

fn choices_mut(chunk: &mut Value) -> impl Iterator<Item = &mut Value> {
    chunk.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten()
}

/// Returns true if the choice has no content for a client.
fn is_blank(choice: &Value) -> bool {
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    let delta = choice.get("delta").and_then(Value::as_object);
    delta.is_none_or(|delta| delta.values().all(is_nothing))
        && choice.get("finish_reason").is_none_or(Value::is_null)
}

pub(super) fn is_empty(chunk: &Value) -> bool {
    choices(chunk).all(is_blank) && !has_usage(chunk)
}

fn has_usage(chunk: &Value) -> bool {
    chunk.get("usage").is_some_and(Value::is_object)
}

pub(super) fn is_usage_only(chunk: &Value) -> bool {
    choices(chunk).next().is_none() && has_usage(chunk)
}

pub(super) fn is_finish(chunk: &Value) -> bool {
    choices(chunk).any(|choice| choice.get("finish_reason").is_some_and(|reason| !reason.is_null()))
}

/// Returns true if the first choice's delta has text in a field.
pub(super) fn has_text(chunk: &Value, field: &str) -> bool {
    let mut first = choices(chunk).filter(|choice| index_of(choice) == 0);
    first.any(|choice| {
        let text = choice.get("delta").and_then(|delta| delta.get(field)?.as_str());
        text.is_some_and(|text| !text.is_empty())
    })
}

/// Puts a blank line before the text of the first choice: an earlier round had text too.
pub(super) fn separate_text(chunk: &mut Value) {
    for choice in choices_mut(chunk).filter(|choice| index_of(choice) == 0) {
        if let Some(Value::String(text)) = choice.pointer_mut("/delta/content").filter(|text| *text != "") {
            text.insert_str(0, "\n\n");
        }
    }
}

pub(super) fn remove_role(chunk: &mut Value) {
    for choice in choices_mut(chunk).filter(|choice| index_of(choice) == 0) {
        if let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) {
            delta.remove("role");
        }
    }
}

/// Ends a turn whose calls were all removed.
pub(super) fn end_turn(chunk: &mut Value) {
    choices_mut(chunk)
        .filter_map(|choice| choice.get_mut("finish_reason"))
        .for_each(|reason| _ = openai_chat::end_turn(reason));
}

//! A whole Anthropic response: its calls, the turns that continue it, and the form that a client gets.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::{
    Arguments, ToolCall, ToolResult, Usage,
    history::ResultsById,
    wire::{self, items},
};

pub(super) fn tool_calls(response: &Value) -> Vec<ToolCall> {
    placed_calls(response).into_iter().map(|placed| placed.call).collect()
}

/// A call, and the index of its block in the content.
#[derive(Debug)]
pub(super) struct PlacedCall {
    pub(super) place: usize,
    pub(super) call: ToolCall,
}

/// Every `tool_use` block of a response, in order. A block without an id gets an id that no other block has.
pub(super) fn placed_calls(response: &Value) -> Vec<PlacedCall> {
    let blocks = items(&response["content"]);
    let given: HashSet<&str> = blocks.iter().filter_map(own_id).collect();
    let read = |(place, block): (usize, &Value)| {
        let id = own_id(block).map_or_else(|| generate_id(place, blocks.len(), &given), str::to_owned);
        let name = block["name"].as_str().unwrap_or_default().to_owned();
        PlacedCall { place, call: ToolCall { id, name, arguments: Arguments::Json(arguments(block)) } }
    };
    blocks.iter().enumerate().filter(|(_, block)| is_call(block)).map(read).collect()
}

pub(super) fn is_call(block: &Value) -> bool {
    block["type"] == "tool_use"
}

/// As a block of its own, before the first call.
pub(super) fn insert_text_before_calls(response: &mut Value, text: &str) -> bool {
    let Some(blocks) = response.get_mut("content").and_then(Value::as_array_mut) else { return false };
    let Some(first) = blocks.iter().position(is_call) else { return false };
    blocks.insert(first, json!({"type": "text", "text": text}));
    true
}

fn own_id(block: &Value) -> Option<&str> {
    block["id"].as_str().filter(|id| !id.is_empty())
}

/// Returns the same ids each time the same response is read.
fn generate_id(place: usize, step: usize, given: &HashSet<&str>) -> String {
    let ids = (0..).map(|round: usize| format!("toolu_skillet_{}", place + round * step));
    ids.into_iter().find(|id| !given.contains(id.as_str())).unwrap_or_default()
}

/// A call of a tool without parameters may say so by leaving them out.
fn arguments(block: &Value) -> Value {
    match &block["input"] {
        Value::Null => json!({}),
        input => input.clone(),
    }
}

pub(super) fn next_request(request: &Value, response: &Value, results: &[ToolResult]) -> Value {
    let mut next = request.clone();
    let calls = placed_calls(response);
    let mut turns: Vec<Value> = model_turn(response, &calls).into_iter().collect();
    let mut left = ResultsById::of(results);
    let blocks: Vec<Value> =
        calls.iter().filter_map(|placed| left.take(&placed.call.id).map(result_block)).collect();
    if !blocks.is_empty() {
        turns.push(json!({"role": "user", "content": blocks}));
    }
    if let Some(next) = next.as_object_mut() {
        let messages = next.entry("messages").or_insert_with(|| json!([]));
        if let Some(messages) = messages.as_array_mut() {
            messages.extend(turns);
        }
        keep_container(next, response);
    }
    next
}

/// The model's turn as it was: thinking and its signatures unchanged, or the provider refuses it. What the provider
/// does not take back is mended: text after a call and text of blanks only are left out, ids and inputs are given
/// where they lack. None where nothing is left: an empty turn is refused too.
fn model_turn(response: &Value, calls: &[PlacedCall]) -> Option<Value> {
    let mut made: HashMap<usize, &str> =
        calls.iter().map(|placed| (placed.place, placed.call.id.as_str())).collect();
    let first_call = calls.first().map_or(usize::MAX, |placed| placed.place);
    let mut content = response["content"].clone();
    if let Some(blocks) = content.as_array_mut() {
        let mut place = 0;
        blocks.retain_mut(|block| {
            let id = made.remove(&place);
            let is_late = place > first_call;
            place += 1;
            if let (Some(id), Some(block)) = (id, block.as_object_mut()) {
                block.insert("id".to_owned(), id.into());
                if !block.get("input").is_some_and(Value::is_object) {
                    block.insert("input".to_owned(), json!({}));
                }
            }
            let is_blank = block["text"].as_str().is_some_and(|text| text.trim().is_empty());
            block["type"] != "text" || !(is_late || is_blank)
        });
    }
    let is_empty = content.is_null() || content == "" || content.as_array().is_some_and(Vec::is_empty);
    (!is_empty).then(|| json!({"role": "assistant", "content": content}))
}

fn result_block(result: &ToolResult) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": result.id, "content": result.content});
    if result.is_error
        && let Some(block) = block.as_object_mut()
    {
        block.insert("is_error".to_owned(), true.into());
    }
    block
}

/// Names the provider's code container in the next request: it holds the files that the model made.
fn keep_container(next: &mut Map<String, Value>, response: &Value) {
    let Some(id) = response["container"]["id"].as_str() else { return };
    match next.get_mut("container") {
        None | Some(Value::Null) => {
            next.insert("container".to_owned(), id.into());
        }
        Some(Value::Object(container)) => {
            container.insert("id".to_owned(), id.into());
        }
        Some(_) => {}
    }
}

pub(super) fn client_response(response: &Value, results: &[ToolResult]) -> Value {
    let mut mixed = response.clone();
    let mut left = ResultsById::of(results);
    let mut ours: HashMap<usize, &ToolResult> = HashMap::new();
    for placed in placed_calls(response) {
        if let Some(result) = left.take(&placed.call.id) {
            ours.insert(placed.place, result);
        }
    }
    let Some(message) = mixed.as_object_mut().filter(|_| !ours.is_empty()) else { return mixed };
    let mut texts = Vec::new();
    let mut kept = Vec::new();
    let mut first_call = None;
    for (place, block) in items(&response["content"]).iter().enumerate() {
        if let Some(result) = ours.get(&place) {
            texts.push(json!({"type": "text", "text": result.to_text()}));
            continue;
        }
        if is_call(block) && first_call.is_none() {
            first_call = Some(kept.len());
        }
        kept.push(block.clone());
    }
    let at = first_call.unwrap_or(kept.len());
    kept.splice(at..at, texts);
    message.insert("content".to_owned(), kept.into());
    if first_call.is_none() {
        end_turn(message);
    }
    mixed
}

/// Ends a turn without calls. A reason that says more than that there were calls (a limit, a refusal) stays.
pub(super) fn end_turn(fields: &mut Map<String, Value>) {
    if matches!(fields.get("stop_reason").and_then(Value::as_str), None | Some("tool_use")) {
        fields.insert("stop_reason".to_owned(), "end_turn".into());
        fields.insert("stop_sequence".to_owned(), Value::Null);
    }
}

pub(super) fn usage(response: &Value) -> Usage {
    read_usage(&response["usage"])
}

/// Tokens of the `usage` of a message.
pub(super) fn read_usage(usage: &Value) -> Usage {
    wire::read_usage(usage, "input_tokens", "output_tokens")
}

/// Sets input and output tokens only: the cached part of the input stays that of the last round.
pub(super) fn set_usage(response: &mut Value, total: Usage) {
    let Some(usage) = response.get_mut("usage") else { return };
    for (field, tokens) in [("input_tokens", total.input), ("output_tokens", total.output)] {
        if let Some(number @ Value::Number(_)) = usage.get_mut(field) {
            *number = tokens.into();
        }
    }
}

#[cfg(test)]
mod tests;

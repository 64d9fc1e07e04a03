//! Messages: a seal is the signature of an empty thinking block before the answer, or the id of the first client call.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    Continuation, Format, SEAL_THOUGHT, Seal, is_seal,
    restore::{CoveredTexts, Seals, has_seal, push_merged},
};
use crate::wire::items;

pub(super) const FORMAT: Format = Format { field: "messages", restore, results, insert };

fn restore(messages: Vec<Value>, seals: &mut Seals<'_>) -> Vec<Value> {
    let mut restored = Vec::with_capacity(messages.len());
    for mut message in messages {
        if message["role"] == "assistant" && has_seal(&message) {
            restore_message(message, seals, &mut restored);
            continue;
        }
        for block in message.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
            seals.put_id(block, "tool_use_id");
        }
        push_merged(&mut restored, message, "content", |text| json!({"type": "text", "text": text}));
    }
    restored
}

fn restore_message(mut message: Value, seals: &mut Seals<'_>, restored: &mut Vec<Value>) {
    let blocks = match message["content"].take() {
        Value::Array(blocks) => blocks,
        other => vec![json!({"type": "text", "text": other})],
    };
    let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
    if let Some(turns) = seals.open_call(calls.filter_map(|call| call["id"].as_str())) {
        restored.extend(turns);
        return;
    }
    let mut places = blocks.iter().enumerate().rev();
    let opened = places.find_map(|(place, block)| Some((place + 1, seals.open_last(block)?)));
    let is_restored = opened.is_some();
    // A carried turn begins with what the client has before the seal.
    let (begin, continuation) = opened.unwrap_or_default();
    let blocks = remaining(blocks.into_iter().skip(begin), &continuation, is_restored, seals);
    restored.extend(continuation.turns);
    if !blocks.is_empty() {
        message["content"] = blocks.into();
        restored.push(message);
    }
}

fn remaining(
    blocks: impl Iterator<Item = Value>,
    continuation: &Continuation,
    is_restored: bool,
    seals: &Seals<'_>,
) -> Vec<Value> {
    let carried = || continuation.turns.iter().filter(|turn| turn["role"] == "assistant");
    let carried_blocks = || carried().flat_map(|turn| items(&turn["content"]));
    let mut covered = CoveredTexts::new(carried_blocks().filter_map(|block| block["text"].as_str()));
    let signatures: HashSet<&str> = carried_blocks().filter_map(signature).collect();
    let mut left = Vec::new();
    for mut block in blocks {
        if signature(&block).is_some_and(|text| is_seal(text) || signatures.contains(text)) {
            continue;
        }
        seals.put_id(&mut block, "id");
        if block["type"] == "text" && !covered.cut_field(&mut block, "text") && is_restored {
            continue;
        }
        left.push(block);
    }
    left
}

/// The field by which a thinking block is known.
fn signature(block: &Value) -> Option<&str> {
    match block["type"].as_str()? {
        "thinking" => block["signature"].as_str(),
        "redacted_thinking" => block["data"].as_str(),
        _ => None,
    }
}

fn results(message: &mut Value) -> Vec<&mut Value> {
    let blocks = message.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results.filter_map(|block| block.get_mut("content")).collect()
}

fn insert(response: &mut Value, seal: &Seal) -> bool {
    let Some(blocks) = response.get_mut("content").and_then(Value::as_array_mut) else { return false };
    blocks.insert(0, json!({"type": "thinking", "thinking": SEAL_THOUGHT, "signature": seal.as_str()}));
    true
}

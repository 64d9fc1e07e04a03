//! Turns that a client sends back after a stream.

use serde_json::Value;

use super::Anthropic;
use crate::{codec::Codec as _, dialect::is_gateway_text};

/// In a stream, results and confirmation prompts came after the calls, where the provider takes no text back. Returns
/// true if it changed a turn.
pub(super) fn move_texts_first(request: &mut Value) -> bool {
    let messages = request.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten();
    let turns = messages.filter(|message| Anthropic::is_model_turn(message));
    let contents = turns.filter_map(|message| message.get_mut("content")?.as_array_mut());
    let mut is_changed = false;
    for blocks in contents {
        is_changed |= move_text_first(blocks);
    }
    is_changed
}

fn move_text_first(blocks: &mut Vec<Value>) -> bool {
    let Some(first) = Anthropic::first_call(blocks) else { return false };
    let is_text = |block: &Value| block["type"] == "text";
    let is_ours = |block: &Value| is_text(block) && block["text"].as_str().is_some_and(is_gateway_text);
    if !blocks.iter().skip(first).any(is_ours) {
        return false;
    }
    let (texts, rest): (Vec<Value>, Vec<Value>) = blocks.drain(first..).partition(is_text);
    blocks.extend(texts);
    blocks.extend(rest);
    true
}

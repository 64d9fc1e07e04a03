//! Calls that a request sends back, in turns of the assistant, and their results in the user's.

use serde_json::{Value, json};

use super::response::is_call;
use crate::{
    ToolResult,
    dialect::is_gateway_text,
    history::{CallPairing, HistoryCall, ResultLocation},
    wire::items,
};

pub(super) fn calls(request: &Value) -> Vec<HistoryCall<'_>> {
    let mut pairing = CallPairing::default();
    for (turn, message) in items(&request["messages"]).iter().enumerate() {
        let blocks = items(&message["content"]).iter().enumerate();
        if message["role"] == "assistant" {
            pairing.begin_turn();
            for (_, block) in blocks.filter(|(_, block)| is_call(block)) {
                let text = |field: &str| block[field].as_str().unwrap_or_default();
                pairing.call(text("id"), text("name"), block.get("input"));
            }
        } else {
            for (part, block) in blocks.filter(|(_, block)| block["type"] == "tool_result") {
                let id = block["tool_use_id"].as_str().unwrap_or_default();
                pairing.result(id, "", &block["content"], ResultLocation { turn, part });
            }
        }
    }
    pairing.into_calls()
}

pub(super) fn replace_result(request: &mut Value, place: ResultLocation, result: &ToolResult) {
    let block = request.get_mut("messages").and_then(|messages| {
        messages.get_mut(place.turn)?.get_mut("content")?.get_mut(place.part)?.as_object_mut()
    });
    let Some(block) = block else { return };
    block.insert("content".to_owned(), json!(result.content));
    block.remove("is_error");
    if result.is_error {
        block.insert("is_error".to_owned(), json!(true));
    }
}

/// In a stream, what skills gave and what a person is asked came after the calls, where the provider takes no text back.
/// Whether a turn was changed.
pub(super) fn move_texts_first(request: &mut Value) -> bool {
    let messages = request.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten();
    let turns = messages.filter(|message| message["role"] == "assistant");
    let contents = turns.filter_map(|message| message.get_mut("content")?.as_array_mut());
    let mut is_changed = false;
    for blocks in contents {
        is_changed |= move_text_first(blocks);
    }
    is_changed
}

fn move_text_first(blocks: &mut Vec<Value>) -> bool {
    let Some(first) = blocks.iter().position(is_call) else { return false };
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

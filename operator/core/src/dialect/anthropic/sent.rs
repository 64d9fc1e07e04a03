//! Calls that a request sends back, in turns of the assistant, and their results in the user's.

use serde_json::{Value, json};

use super::{answer::is_call, items};
use crate::dialect::{
    ToolResult,
    sent::{Pairing, Place, SentCall},
};

pub(super) fn calls(request: &Value) -> Vec<SentCall<'_>> {
    let mut pairing = Pairing::default();
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
                pairing.result(id, "", &block["content"], Place { turn, part });
            }
        }
    }
    pairing.into_sent()
}

pub(super) fn put_result(request: &mut Value, place: Place, result: &ToolResult) {
    let Some(messages) = request.get_mut("messages").and_then(Value::as_array_mut) else { return };
    let blocks =
        |message: &'_ mut Value| message.get_mut("content").and_then(Value::as_array_mut).map(std::mem::take);
    let before = place.turn.checked_sub(1).and_then(|turn| messages.get_mut(turn));
    if let Some(before) = before.filter(|before| before["role"] == "assistant")
        && let Some(content) = blocks(before)
    {
        before["content"] = with_text_first(content).into();
    }
    let block =
        messages.get_mut(place.turn).and_then(|message| message.get_mut("content")?.get_mut(place.part));
    if let Some(block) = block.and_then(Value::as_object_mut) {
        block.insert("content".to_owned(), json!(result.content));
        block.remove("is_error");
        if result.is_error {
            block.insert("is_error".to_owned(), json!(true));
        }
    }
}

/// In a stream the question came after the calls, where the provider takes no text back.
fn with_text_first(blocks: Vec<Value>) -> Vec<Value> {
    let Some(first) = blocks.iter().position(is_call) else { return blocks };
    let mut ordered = blocks;
    let called = ordered.split_off(first);
    let (text, rest): (Vec<Value>, Vec<Value>) =
        called.into_iter().partition(|block| block["type"] == "text");
    ordered.extend(text);
    ordered.extend(rest);
    ordered
}

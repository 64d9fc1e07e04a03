//! Anthropic messages: `POST /v1/messages`.
//!
//! The provider's own tools (those with a `type`, such as a dated web search) stay as they are. Calls that the provider
//! runs itself (`server_tool_use`, `mcp_tool_use`) are not tool calls.

mod history;
mod stream;

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::{
    ToolDefinition, ToolResult,
    codec::{ClientText, Codec, PlacedCall, RawCall, RawResult},
    wire::{items, object, text},
};

/// The dialect of Anthropic messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anthropic;

impl Codec for Anthropic {
    type Stream = stream::MessageEvents;

    const TURNS: &'static str = "messages";
    const PARTS: &'static str = "/content";

    fn client_tool_names(request: &Value) -> Vec<&str> {
        items(&request["tools"]).iter().filter_map(|tool| tool["name"].as_str()).collect()
    }

    fn texts(request: &Value) -> Vec<&str> {
        let mut texts = Vec::new();
        add_texts(&request["system"], &mut texts);
        for message in items(&request["messages"]) {
            add_texts(&message["content"], &mut texts);
        }
        texts
    }

    fn tool_entries(tools: &[ToolDefinition]) -> Vec<Value> {
        let entry = |tool: &ToolDefinition| json!({"name": *tool.name, "description": *tool.description, "input_schema": *tool.parameters});
        tools.iter().map(entry).collect()
    }

    fn is_model_turn(turn: &Value) -> bool {
        turn["role"] == "assistant"
    }

    fn read_call(block: &Value) -> Option<RawCall<'_>> {
        let (id, name, arguments) = (text(&block["id"]), text(&block["name"]), object(&block["input"]));
        (block["type"] == "tool_use").then_some(RawCall { id, kind: None, name, arguments })
    }

    fn read_result(block: &Value) -> Option<RawResult<'_>> {
        let result = RawResult { id: text(&block["tool_use_id"]), name: "", content: &block["content"] };
        (block["type"] == "tool_result").then_some(result)
    }

    fn write_result(block: &mut Map<String, Value>, result: &ToolResult) {
        block.insert("content".to_owned(), json!(result.content));
        block.remove("is_error");
        if result.is_error {
            block.insert("is_error".to_owned(), json!(true));
        }
    }

    fn repair_history(request: &mut Value) -> bool {
        history::move_texts_first(request)
    }

    fn call_lists(_response: &Value) -> Vec<String> {
        vec!["/content".to_owned()]
    }

    fn is_cut(response: &Value) -> bool {
        matches!(text(&response["stop_reason"]), "max_tokens" | "model_context_window_exceeded")
    }

    fn wants_json(request: &Value) -> bool {
        let formats = [&request["output_format"], &request["output_config"]["format"]];
        formats.into_iter().any(|format| format["type"] == "json_schema")
    }

    /// The model's turn as it was: thinking and its signatures unchanged, or the provider refuses it. What the provider
    /// does not take back is repaired: text after a call and text of blanks only are left out, ids and inputs are given
    /// where they lack. Without content there is no turn: an empty one is refused too.
    fn model_turn(_request: &Map<String, Value>, response: &Value, calls: &[PlacedCall]) -> Vec<Value> {
        let ids: HashMap<usize, &str> = calls.iter().map(|placed| (placed.index, &*placed.call.id)).collect();
        let first_call = calls.first().map_or(usize::MAX, |placed| placed.index);
        let mut content = response["content"].clone();
        if let Some(blocks) = content.as_array_mut() {
            let mut index = 0..;
            blocks.retain_mut(|block| {
                let index = index.next().unwrap_or_default();
                if let (Some(id), Some(block)) = (ids.get(&index), block.as_object_mut()) {
                    block.insert("id".to_owned(), (*id).into());
                    if !block.get("input").is_some_and(Value::is_object) {
                        block.insert("input".to_owned(), json!({}));
                    }
                }
                let is_blank = block["text"].as_str().is_some_and(|text| text.trim().is_empty());
                block["type"] != "text" || !(index > first_call || is_blank)
            });
        }
        let is_empty = content.is_null() || content == "" || content.as_array().is_some_and(Vec::is_empty);
        if is_empty { Vec::new() } else { vec![json!({"role": "assistant", "content": content})] }
    }

    fn result_turns(results: &[(&PlacedCall, &ToolResult)]) -> Vec<Value> {
        let block = |(_, result): &(&PlacedCall, &ToolResult)| {
            let mut block = Map::new();
            block.insert("type".to_owned(), "tool_result".into());
            block.insert("tool_use_id".to_owned(), result.id.as_str().into());
            Self::write_result(&mut block, result);
            Value::from(block)
        };
        let blocks: Vec<Value> = results.iter().map(block).collect();
        if blocks.is_empty() { blocks } else { vec![json!({"role": "user", "content": blocks})] }
    }

    /// Names the provider's code container in the next request: it holds the files that the model made.
    fn continue_request(next: &mut Map<String, Value>, response: &Value) {
        let Some(id) = response["container"]["id"].as_str() else { return };
        match next.entry("container").or_insert(Value::Null) {
            container @ Value::Null => *container = id.into(),
            Value::Object(container) => _ = container.insert("id".to_owned(), id.into()),
            _ => {}
        }
    }

    fn text_parts(texts: &[ClientText]) -> Vec<Value> {
        texts.iter().map(|text| json!({"type": "text", "text": text.text})).collect()
    }

    fn round_texts(response: &Value) -> Vec<Value> {
        let is_said = |block: &&Value| block["type"] == "text" && !text(&block["text"]).trim().is_empty();
        items(&response["content"]).iter().filter(is_said).cloned().collect()
    }

    /// A turn that begins with thinking still does.
    fn prepend_texts(response: &mut Value, texts: Vec<Value>) {
        let Some(blocks) = response.get_mut("content").and_then(Value::as_array_mut) else { return };
        let is_thinking = |block: &Value| text(&block["type"]).ends_with("thinking");
        let at = blocks.iter().position(|block| !is_thinking(block)).unwrap_or(blocks.len());
        blocks.splice(at..at, texts);
    }

    fn settle(response: &mut Value, _removed: &[(&PlacedCall, &ToolResult)]) {
        let has_calls = Self::first_call(items(&response["content"])).is_some();
        if let Some(message) = response.as_object_mut().filter(|_| !has_calls) {
            end_turn(message);
        }
    }
}

/// Content is a text or a list of blocks. A block's text stands in `text`, in the `content` of a result, or in the
/// `source` of a document; thinking has none of these and is left out.
fn add_texts<'a>(content: &'a Value, texts: &mut Vec<&'a str>) {
    if let Some(text) = content.as_str() {
        texts.push(text);
    }
    for block in items(content) {
        texts.extend(block.as_str().or_else(|| block["text"].as_str()));
        let source = &block["source"];
        texts.extend(source["data"].as_str().filter(|_| source["type"] == "text"));
        add_texts(&source["content"], texts);
        add_texts(&block["content"], texts);
    }
}

/// Ends a turn without calls. A reason that says more than that there were calls (a limit, a refusal) stays.
fn end_turn(fields: &mut Map<String, Value>) {
    if matches!(fields.get("stop_reason").and_then(Value::as_str), None | Some("tool_use")) {
        fields.insert("stop_reason".to_owned(), "end_turn".into());
        fields.insert("stop_sequence".to_owned(), Value::Null);
    }
}

#[cfg(test)]
mod tests;

//! OpenAI's Responses API: `POST /v1/responses`, whole and streamed.
//!
//! Items of hosted tools are the provider's and pass unread. Of a response that the provider has stored
//! (`previous_response_id`, `conversation`) a request holds the results alone.

pub mod bound_id;
pub(crate) mod item;
pub mod stored_history;
mod stream;

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::{
    ToolDefinition, ToolResult,
    codec::{ClientText, Codec, PlacedCall, RawCall, RawResult, join_texts},
    wire::{items, text},
};
use item::Answered;

/// The value of `include` that asks for the content of reasoning.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// The dialect of `/v1/responses`.
///
/// The next request repeats the conversation's items, even if the provider stores responses: then the client needs to
/// know only the response that it gets. If the request names a `conversation`, the provider has added every
/// response's items to it, and only the results are sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiResponses;

impl Codec for OpenAiResponses {
    type Stream = stream::ResponseEvents;

    const TURNS: &'static str = "input";
    const PARTS: &'static str = "";
    const HAS_SPLIT_TURNS: bool = true;

    /// Hosted tools have no name of their own: the model knows them by their type.
    fn client_tool_names(request: &Value) -> Vec<&str> {
        items(&request["tools"]).iter().filter_map(tool_name).collect()
    }

    fn texts(request: &Value) -> Vec<&str> {
        let mut texts: Vec<&str> = request["instructions"].as_str().into_iter().collect();
        for variable in request["prompt"]["variables"].as_object().into_iter().flat_map(Map::values) {
            push_content(variable, &mut texts);
        }
        texts.extend(request["input"].as_str());
        items(&request["input"]).iter().for_each(|item| push_item(item, &mut texts));
        texts
    }

    /// The flat form. Without `strict` the provider assumes true, and refuses most schemas.
    fn tool_entries(tools: &[ToolDefinition]) -> Vec<Value> {
        let entry = |tool: &ToolDefinition| {
            json!({
                "type": "function", "name": &*tool.name, "description": &*tool.description,
                "parameters": &*tool.parameters, "strict": false,
            })
        };
        tools.iter().map(entry).collect()
    }

    /// Without its content, the reasoning of a response that is not stored cannot be sent back. Models without reasoning
    /// refuse to give it.
    fn prepare_rounds(request: &mut Value) -> bool {
        if request["store"] != false || !request["reasoning"].is_object() {
            return false;
        }
        let Some(fields) = request.as_object_mut() else { return false };
        let include = fields.entry("include").or_insert(Value::Null);
        if include.is_null() {
            *include = json!([]);
        }
        let Some(list) = include.as_array_mut() else { return false };
        let is_missing = list.iter().all(|own| own != ENCRYPTED_REASONING);
        if is_missing {
            list.push(ENCRYPTED_REASONING.into());
        }
        is_missing
    }

    fn hide_reasoning(response: &mut Value) {
        let response = if is_wrapped(response) { &mut response["response"] } else { response };
        for item in response.get_mut("output").and_then(Value::as_array_mut).into_iter().flatten() {
            item::hide_reasoning(item);
        }
    }

    fn is_model_turn(item: &Value) -> bool {
        match item["type"].as_str() {
            None | Some("message") => item["role"] == "assistant",
            // The client's reply to a call of the provider.
            Some("mcp_approval_response") => false,
            Some(kind) => !kind.ends_with("_output"),
        }
    }

    fn read_call(item: &Value) -> Option<RawCall<'_>> {
        item::read_call(item)
    }

    fn read_result(item: &Value) -> Option<RawResult<'_>> {
        let result = RawResult { id: text(&item["call_id"]), name: "", content: &item["output"] };
        (item["type"] == "function_call_output").then_some(result)
    }

    fn write_result(item: &mut Map<String, Value>, result: &ToolResult) {
        item.insert("output".to_owned(), json!(result.content));
    }

    fn needs_follower(item: &Value) -> bool {
        item["type"] == "reasoning"
    }

    fn call_lists(response: &Value) -> Vec<String> {
        vec![if is_wrapped(response) { "/response/output" } else { "/output" }.to_owned()]
    }

    /// Every call that waits for someone outside the provider, and every function call.
    fn calls(output: &[Value]) -> Vec<(usize, RawCall<'_>)> {
        let answered = Answered::in_output(output);
        let calls = output.iter().enumerate();
        calls
            .filter(|(_, item)| item::is_function_call(item) || answered.is_waiting(item))
            .filter_map(|(index, item)| Some((index, Self::read_call(item)?)))
            .collect()
    }

    fn first_call(output: &[Value]) -> Option<usize> {
        let answered = Answered::in_output(output);
        // A call that the provider has answered is read as a call too.
        let waiting = output.iter().position(|item| answered.is_waiting(item));
        waiting.or_else(|| output.iter().position(item::is_function_call))
    }

    fn is_cut(response: &Value) -> bool {
        inner(response)["status"] == "incomplete"
    }

    fn wants_json(request: &Value) -> bool {
        matches!(text(&request["text"]["format"]["type"]), "json_object" | "json_schema")
    }

    fn usage_pointer(response: &Value) -> &'static str {
        if is_wrapped(response) { "/response/usage" } else { "/usage" }
    }

    fn take_turns(request: &mut Map<String, Value>) -> Option<Vec<Value>> {
        let input = request.remove(Self::TURNS).unwrap_or_default();
        Some(match input {
            // A conversation at the provider already has the input; sent again, it would be a duplicate.
            _ if is_in_conversation(request) => Vec::new(),
            Value::Null => Vec::new(),
            Value::Array(items) => items,
            Value::String(text) => vec![json!({"type": "message", "role": "user", "content": text})],
            other => vec![other],
        })
    }

    fn model_turn(request: &Map<String, Value>, response: &Value, calls: &[PlacedCall]) -> Vec<Value> {
        if is_in_conversation(request) {
            return Vec::new();
        }
        // An organization may forbid what the request asks for.
        let is_stored = match inner(response)["store"].as_bool() {
            Some(is_stored) => is_stored,
            None => request.get("store") != Some(&Value::Bool(false)),
        };
        let output = items(&inner(response)["output"]).iter().enumerate();
        let ids: HashMap<usize, &str> = calls.iter().map(|placed| (placed.index, &*placed.call.id)).collect();
        output.filter_map(|(index, item)| item::as_input(item, ids.get(&index).copied(), is_stored)).collect()
    }

    fn result_turns(results: &[(&PlacedCall, &ToolResult)]) -> Vec<Value> {
        let output = |(_, result): &(&PlacedCall, &ToolResult)| json!({"type": "function_call_output", "call_id": result.id, "output": result.content});
        results.iter().map(output).collect()
    }

    fn round_texts(response: &Value) -> Vec<Value> {
        items(&inner(response)["output"]).iter().filter(|item| item["type"] == "message").cloned().collect()
    }

    fn prepend_texts(response: &mut Value, texts: Vec<Value>) {
        let output =
            Self::call_lists(response).first().and_then(|list| response.pointer_mut(list)?.as_array_mut());
        output.into_iter().for_each(|output| _ = output.splice(0..0, texts.clone()));
    }

    /// Texts as one message of the model.
    fn text_parts(texts: &[ClientText]) -> Vec<Value> {
        let message = |first: &ClientText| item::message(&first.id, &join_texts(texts));
        texts.first().map(message).into_iter().collect()
    }
}

/// Returns true for the end event of a stream, which some relays pass on: the response is in `response`.
fn is_wrapped(envelope: &Value) -> bool {
    !envelope["output"].is_array() && envelope["response"].is_object()
}

/// The response itself.
fn inner(envelope: &Value) -> &Value {
    if is_wrapped(envelope) { &envelope["response"] } else { envelope }
}

fn is_in_conversation(request: &Map<String, Value>) -> bool {
    request.get("conversation").is_some_and(|conversation| !conversation.is_null())
}

fn tool_name(tool: &Value) -> Option<&str> {
    // Some clients send the nested form of chat completions, and some providers take it.
    let name = tool["name"].as_str().or_else(|| tool["function"]["name"].as_str());
    name.or_else(|| tool["type"].as_str().filter(|kind| !matches!(*kind, "function" | "custom")))
}

fn push_item<'a>(item: &'a Value, texts: &mut Vec<&'a str>) {
    match item["type"].as_str() {
        None | Some("message") => push_content(&item["content"], texts),
        Some(kind) if kind.ends_with("_output") => push_content(&item["output"], texts),
        Some(_) => {}
    }
}

/// Text, a part with text, or a list of parts.
fn push_content<'a>(content: &'a Value, texts: &mut Vec<&'a str>) {
    match content {
        Value::String(text) => texts.push(text),
        Value::Array(parts) => {
            texts.extend(parts.iter().filter_map(|part| part.as_str().or_else(|| part["text"].as_str())));
        }
        Value::Object(part) => texts.extend(part.get("text").and_then(Value::as_str)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;

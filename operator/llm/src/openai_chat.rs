//! OpenAI chat completions, `POST /v1/chat/completions`, as OpenAI and the many compatible providers speak it.
//!
//! If a response has several choices (`n` above 1), only the first is read and continued: a conversation has one next
//! turn. Calls of custom tools (`type: custom`) are always the client's. Some routers write `tool_calls` at the top of
//! a response; these come before those of its choices.

mod stream;

use serde_json::{Map, Value, json};

use crate::{
    ToolCall, ToolDefinition, ToolResult,
    codec::{ClientText, Codec, PlacedCall, RawCall, RawResult, join_texts, place},
    wire::{items, text},
};

/// The dialect of chat completions.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiChat;

/// The pointer of calls at the top of a response.
const TOP: &str = "/tool_calls";

impl Codec for OpenAiChat {
    type Stream = stream::ChatChunks;

    const TURNS: &'static str = "messages";
    const PARTS: &'static str = "";
    const HAS_OBJECT_TOOLS: bool = false;

    fn client_tool_names(request: &Value) -> Vec<&str> {
        let tools = items(&request["tools"]).iter().flat_map(|tool| {
            [tool.pointer("/function/name"), tool.pointer("/custom/name"), tool.get("name")]
        });
        // `functions` is the older form of tools; both share one space of names.
        let functions = items(&request["functions"]).iter().map(|function| function.get("name"));
        tools.chain(functions).flatten().filter_map(Value::as_str).collect()
    }

    fn texts(request: &Value) -> Vec<&str> {
        items(&request["messages"]).iter().flat_map(|message| content_texts(&message["content"])).collect()
    }

    fn tool_entries(tools: &[ToolDefinition]) -> Vec<Value> {
        let entry = |ToolDefinition { name, description, parameters }: &ToolDefinition| {
            json!({"type": "function", "function": {
                "name": &**name, "description": &**description, "parameters": &**parameters,
            }})
        };
        tools.iter().map(entry).collect()
    }

    fn is_model_turn(turn: &Value) -> bool {
        turn["role"] == "assistant"
    }

    fn parts(turn: &Value) -> &[Value] {
        if Self::is_model_turn(turn) { items(&turn["tool_calls"]) } else { std::slice::from_ref(turn) }
    }

    /// A call of a function, also in the flat form of some providers. A missing type means a function.
    fn read_call(call: &Value) -> Option<RawCall<'_>> {
        let ids = [text(&call["call_id"]), text(&call["id"])];
        let id = ids.into_iter().find(|id| !id.is_empty()).unwrap_or_default();
        let kind = foreign_type(call.get("type"));
        let function = call.get("function").filter(|function| function.is_object()).unwrap_or(call);
        let part = kind.map_or(function, |kind| &call[kind]);
        let arguments = &part[if kind.is_some() { "input" } else { "arguments" }];
        call.is_object().then(|| RawCall { id, kind, name: text(&part["name"]), arguments })
    }

    fn read_result(message: &Value) -> Option<RawResult<'_>> {
        let (id, name) = (text(&message["tool_call_id"]), text(&message["name"]));
        (message["role"] == "tool").then_some(RawResult { id, name, content: &message["content"] })
    }

    fn write_result(message: &mut Map<String, Value>, result: &ToolResult) {
        message.insert("content".to_owned(), json!(result.content));
    }

    fn call_lists(response: &Value) -> Vec<String> {
        let is_at_top = !items(&response["tool_calls"]).is_empty();
        vec![if is_at_top { TOP.to_owned() } else { "/choices/0/message/tool_calls".to_owned() }]
    }

    /// Some compatible providers pass Anthropic's word on.
    fn is_cut(response: &Value) -> bool {
        let reason = response.pointer("/choices/0/finish_reason");
        reason.is_some_and(|reason| reason == "length" || reason == "max_tokens")
    }

    fn wants_json(request: &Value) -> bool {
        matches!(text(&request["response_format"]["type"]), "json_object" | "json_schema")
    }

    /// The model's turn as it was, its calls with the ids under which they were read.
    fn model_turn(_request: &Map<String, Value>, response: &Value, calls: &[PlacedCall]) -> Vec<Value> {
        let mut message = response.pointer("/choices/0/message").and_then(Value::as_object).cloned();
        let message = message.get_or_insert_with(|| Map::from_iter([("content".to_owned(), Value::Null)]));
        message.entry("role").or_insert_with(|| json!("assistant"));
        let with_id = |placed: &PlacedCall| {
            let mut call = response.pointer(&placed.list)?.get(placed.index)?.clone();
            if text(&call["id"]) != placed.call.id {
                call.as_object_mut()?.insert("id".to_owned(), json!(placed.call.id));
            }
            Some(call)
        };
        let calls: Vec<Value> = calls.iter().filter_map(with_id).collect();
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), calls.into());
        }
        vec![std::mem::take(message).into()]
    }

    fn result_turns(results: &[(&PlacedCall, &ToolResult)]) -> Vec<Value> {
        let turn = |(_, result): &(&PlacedCall, &ToolResult)| json!({"role": "tool", "tool_call_id": result.id, "content": result.content});
        results.iter().map(turn).collect()
    }

    /// Of several choices one was continued; further ones would be continuations of no turn the client saw.
    fn continue_request(next: &mut Map<String, Value>, _response: &Value) {
        next.remove("n");
    }

    /// Appends the texts to the content of the message that calls, which is created for calls at the top.
    fn insert_texts(response: &mut Value, list: &str, texts: &[ClientText]) -> bool {
        let Some(fields) = response.as_object_mut() else { return false };
        let choices = fields.entry("choices").or_insert(Value::Null);
        if choices.is_null() || choices.as_array().is_some_and(Vec::is_empty) {
            *choices = json!([{"index": 0, "finish_reason": "tool_calls"}]);
        }
        let choice = choices.get_mut(0).and_then(Value::as_object_mut);
        let is_created = list == TOP;
        let message = choice.and_then(|choice| {
            if is_created {
                choice.entry("message").or_insert_with(|| json!({"role": "assistant"}));
            }
            choice.get_mut("message")?.as_object_mut()
        });
        message
            .map(|message| append_text(message.entry("content").or_insert(Value::Null), join_texts(texts)))
            .is_some()
    }

    fn text_parts(texts: &[ClientText]) -> Vec<Value> {
        vec![json!({"type": "text", "text": join_texts(texts)})]
    }

    fn round_texts(response: &Value) -> Vec<Value> {
        let content = response.pointer("/choices/0/message/content").unwrap_or(&Value::Null);
        let texts = content_texts(content).into_iter().filter(|text| !text.is_empty());
        texts.map(|text| json!({"type": "text", "text": text})).collect()
    }

    fn prepend_texts(response: &mut Value, mut texts: Vec<Value>) {
        let Some(message) = response.pointer_mut("/choices/0/message").and_then(Value::as_object_mut) else {
            return;
        };
        match message.entry("content").or_insert(Value::Null) {
            Value::Array(parts) => _ = parts.splice(0..0, texts),
            content => {
                texts
                    .extend(content.as_str().filter(|own| !own.is_empty()).map(|own| json!({ "text": own })));
                *content =
                    texts.iter().map(|part| text(&part["text"])).collect::<Vec<_>>().join("\n\n").into();
            }
        }
    }

    fn settle(response: &mut Value, _removed: &[(&PlacedCall, &ToolResult)]) {
        let has_calls = Self::call_lists(response)
            .iter()
            .any(|list| items(response.pointer(list).unwrap_or(&Value::Null)).iter().any(Value::is_object));
        for holder in ["", "/choices/0/message"] {
            let holder = response.pointer_mut(holder).and_then(Value::as_object_mut);
            let is_empty = |fields: &&mut Map<String, Value>| fields.get("tool_calls") == Some(&json!([]));
            if let Some(fields) = holder.filter(is_empty) {
                fields.remove("tool_calls");
            }
        }
        if let Some(reason) = response.pointer_mut("/choices/0/finish_reason").filter(|_| !has_calls) {
            end_turn(reason);
        }
    }
}

/// All calls of a response, in order: of a `tool_calls` at its top, else of every choice.
///
/// [`OpenAiChat`] itself reads the first choice only, which is the one that can be continued.
pub fn read_calls(response: &Value) -> Vec<ToolCall> {
    let top = items(&response["tool_calls"]);
    let choices = items(&response["choices"]).iter().map(|choice| items(&choice["message"]["tool_calls"]));
    let lists = if top.is_empty() { choices.collect() } else { vec![top] };
    let calls = lists.into_iter().flat_map(OpenAiChat::calls).map(|call| ("", call));
    place(response, calls).into_iter().map(|placed| placed.call).collect()
}

/// The type of a call that is not a function call. A missing type means a function.
fn foreign_type(kind: Option<&Value>) -> Option<&str> {
    kind.map(text).filter(|kind| !matches!(*kind, "" | "function"))
}

/// Ends a turn whose calls were all removed. Returns true if that changed its reason.
fn end_turn(finish_reason: &mut Value) -> bool {
    let is_for_calls = finish_reason == "tool_calls";
    if is_for_calls {
        *finish_reason = json!("stop");
    }
    is_for_calls
}

/// A content's text: a string, or a list of strings and of parts with text.
fn content_texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str())).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
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

#[cfg(test)]
mod tests;

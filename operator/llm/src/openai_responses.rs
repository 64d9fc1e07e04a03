//! OpenAI's Responses API: `POST /v1/responses`, whole and streamed.
//!
//! Requests are read here, answers in `answer`, single output items in `item`, streams in `stream`. Nothing here knows
//! what the hosted tools do: their items are the provider's, and go through.

mod answer;
mod item;
mod sent;
mod stream;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    Dialect, DialectError, Offered, StreamFilter, ToolCall, ToolDefinition, ToolResult, Usage,
    sent::{Place, SentCall},
};

/// The dialect of `/v1/responses`.
///
/// A conversation goes on by sending its items again, also where the provider stores answers: an answer that the
/// client gets is then the only one it has to know of. Where the request names a `conversation` the provider has added
/// the items of every answer to it, and only the results are sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiResponses;

impl Dialect for OpenAiResponses {
    fn client_tools<'a>(&self, request: &'a Value) -> Vec<&'a Value> {
        request["tools"].as_array().into_iter().flatten().collect()
    }

    /// Hosted tools have no name of their own: their type is what the model knows them by.
    fn client_tool_names<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        request["tools"].as_array().into_iter().flatten().filter_map(tool_name).collect()
    }

    fn texts<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        let mut texts: Vec<&str> = request["instructions"].as_str().into_iter().collect();
        for variable in request["prompt"]["variables"].as_object().into_iter().flat_map(Map::values) {
            push_content(variable, &mut texts);
        }
        match &request["input"] {
            Value::String(text) => texts.push(text),
            Value::Array(items) => items.iter().for_each(|item| push_item(item, &mut texts)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
        texts
    }

    fn is_streaming(&self, request: &Value) -> bool {
        request["stream"] == true
    }

    fn offer(&self, request: &mut Value, tools: &[ToolDefinition]) -> Result<(), DialectError> {
        let problem =
            |field: &str, message: &str| DialectError { field: field.into(), message: message.into() };
        let fields = request.as_object_mut().ok_or_else(|| problem("", "the request must be an object"))?;
        let is_list = fields.get("tools").is_none_or(|own| own.is_array() || own.is_null());
        if !is_list {
            return Err(problem("/tools", "must be a list"));
        }
        let own = fields.get("tools").and_then(Value::as_array).into_iter().flatten();
        if let Some(place) = own.into_iter().position(|tool| !tool.is_object()) {
            return Err(problem(&format!("/tools/{place}"), "must be an object"));
        }
        if tools.is_empty() {
            return Ok(());
        }
        let ours = tools.iter().map(definition);
        match fields.get_mut("tools") {
            Some(Value::Array(list)) => list.extend(ours),
            _ => {
                fields.insert("tools".to_owned(), ours.collect());
            }
        }
        Ok(())
    }

    fn calls(&self, answer: &Value) -> Vec<ToolCall> {
        answer::calls(answer)
    }

    fn next_request(&self, request: &Value, answer: &Value, results: &[ToolResult]) -> Value {
        answer::next_request(request, answer, results)
    }

    fn mixed_answer(&self, answer: &Value, results: &[ToolResult]) -> Value {
        answer::mixed(answer, results)
    }

    fn sent_calls<'a>(&self, request: &'a Value) -> Vec<SentCall<'a>> {
        sent::calls(request)
    }

    fn put_result(&self, request: &mut Value, place: Place, result: &ToolResult) {
        sent::put_result(request, place, result);
    }

    fn put_text_before_calls(&self, answer: &mut Value, text: &str) -> bool {
        answer::put_text_before_calls(answer, text)
    }

    fn usage(&self, answer: &Value) -> Usage {
        answer::usage(answer)
    }

    fn put_usage(&self, answer: &mut Value, total: Usage) {
        answer::put_usage(answer, total);
    }

    fn stream(&self, offered: Arc<Offered>) -> Box<dyn StreamFilter> {
        Box::new(stream::ResponsesFilter::new(offered))
    }
}

/// The flat form. Without `strict` the provider assumes true, and refuses most schemas.
fn definition(tool: &ToolDefinition) -> Value {
    json!({
        "type": "function", "name": &*tool.name, "description": &*tool.description,
        "parameters": &*tool.parameters, "strict": false,
    })
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
#[path = "openai_responses/request_tests.rs"]
mod request_tests;

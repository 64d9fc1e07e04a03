//! OpenAI chat completions, `POST /v1/chat/completions`, as OpenAI and the many that follow it speak it.
//!
//! Where an answer has several choices (`n` above 1) only the first is read and continued, and continued alone: a
//! conversation has one next turn. Calls of custom tools (`type: custom`) are always the client's.

mod answer;
mod calls;
mod sent;
mod stream;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Dialect, DialectError, Offered, StreamFilter, ToolCall, ToolDefinition, ToolResult, Usage,
    sent::{Place, SentCall},
};
pub use calls::read_calls;

/// The dialect; it has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiChat;

impl Dialect for OpenAiChat {
    fn client_tools<'a>(&self, request: &'a Value) -> Vec<&'a Value> {
        list(request, "tools").iter().collect()
    }

    fn client_tool_names<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        let tools = list(request, "tools").iter().flat_map(|tool| {
            [tool.pointer("/function/name"), tool.pointer("/custom/name"), tool.get("name")]
        });
        // `functions` is what tools were before; both share one space of names.
        let functions = list(request, "functions").iter().map(|function| function.get("name"));
        tools.chain(functions).flatten().filter_map(Value::as_str).collect()
    }

    fn texts<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        list(request, "messages")
            .iter()
            .filter_map(|message| message.get("content"))
            .flat_map(texts)
            .collect()
    }

    fn is_streaming(&self, request: &Value) -> bool {
        request.get("stream") == Some(&Value::Bool(true))
    }

    fn offer(&self, request: &mut Value, tools: &[ToolDefinition]) -> Result<(), DialectError> {
        let problem = |field: &str, message: &str| DialectError {
            field: field.to_owned(),
            message: message.to_owned(),
        };
        let request = request.as_object_mut().ok_or_else(|| problem("", "a request is an object"))?;
        let offered = tools.iter().map(definition);
        match request.get_mut("tools") {
            Some(Value::Array(own)) => own.extend(offered),
            Some(other) if !other.is_null() => return Err(problem("/tools", "the tools are a list")),
            Some(_) | None if tools.is_empty() => (),
            Some(_) | None => {
                request.insert("tools".to_owned(), offered.collect());
            }
        }
        Ok(())
    }

    fn calls(&self, answer: &Value) -> Vec<ToolCall> {
        calls::of_first_choice(answer)
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
        answer.get("usage").map_or_else(Usage::default, answer::read_usage)
    }

    fn put_usage(&self, answer: &mut Value, total: Usage) {
        answer::put_usage(answer, total);
    }

    fn stream(&self, offered: Arc<Offered>) -> Box<dyn StreamFilter> {
        Box::new(stream::ChatStream::new(offered))
    }
}

fn definition(tool: &ToolDefinition) -> Value {
    let ToolDefinition { name, description, parameters } = tool;
    json!({"type": "function", "function": {
        "name": &**name, "description": &**description, "parameters": &**parameters,
    }})
}

/// A field that is a list; empty where it is not.
fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A content's text: a string, or a list of strings and of parts with text.
fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str())).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

#[cfg(test)]
#[path = "openai_chat/tests.rs"]
mod tests;

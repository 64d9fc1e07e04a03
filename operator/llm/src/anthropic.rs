//! Anthropic messages: `POST /v1/messages`.
//!
//! Here is the request: where its tools and its text are. The answer is in `answer`, the stream in `stream`. The
//! provider's own tools (those with a `type`, such as a dated web search) stay as they are, and calls of them that the
//! provider runs itself (`server_tool_use`, `mcp_tool_use`) are not calls.

mod answer;
mod round;
mod sent;
mod stream;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Dialect, DialectError, Offered, StreamFilter, ToolCall, ToolDefinition, ToolResult, Usage,
    sent::{Place, SentCall},
};

/// The dialect of Anthropic messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anthropic;

impl Dialect for Anthropic {
    fn client_tools<'a>(&self, request: &'a Value) -> Vec<&'a Value> {
        items(&request["tools"]).iter().collect()
    }

    fn client_tool_names<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        items(&request["tools"]).iter().filter_map(|tool| tool["name"].as_str()).collect()
    }

    fn texts<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        let mut texts = Vec::new();
        add_texts(&request["system"], &mut texts);
        for message in items(&request["messages"]) {
            add_texts(&message["content"], &mut texts);
        }
        texts
    }

    fn is_streaming(&self, request: &Value) -> bool {
        request["stream"] == true
    }

    fn offer(&self, request: &mut Value, tools: &[ToolDefinition]) -> Result<(), DialectError> {
        if tools.is_empty() {
            return Ok(());
        }
        let refused = |field: &str, message: &str| DialectError {
            field: field.to_owned(),
            message: message.to_owned(),
        };
        let Some(request) = request.as_object_mut() else {
            return Err(refused("", "the request must be an object"));
        };
        let ours = tools.iter().map(definition);
        match request.get_mut("tools") {
            None | Some(Value::Null) => {
                request.insert("tools".to_owned(), ours.collect());
            }
            Some(Value::Array(list)) => match list.iter().position(|tool| !tool.is_object()) {
                Some(place) => return Err(refused(&format!("/tools/{place}"), "a tool must be an object")),
                None => list.extend(ours),
            },
            Some(_) => return Err(refused("/tools", "tools must be a list")),
        }
        Ok(())
    }

    fn calls(&self, answer: &Value) -> Vec<ToolCall> {
        answer::placed_calls(answer).into_iter().map(|placed| placed.call).collect()
    }

    fn next_request(&self, request: &Value, answer: &Value, results: &[ToolResult]) -> Value {
        answer::next_request(request, answer, results)
    }

    fn mixed_answer(&self, answer: &Value, results: &[ToolResult]) -> Value {
        answer::mixed_answer(answer, results)
    }

    fn sent_calls<'a>(&self, request: &'a Value) -> Vec<SentCall<'a>> {
        sent::calls(request)
    }

    fn put_result(&self, request: &mut Value, place: Place, result: &ToolResult) {
        sent::put_result(request, place, result);
    }

    fn mend_sent(&self, request: &mut Value) -> bool {
        sent::put_texts_first(request)
    }

    fn put_text_before_calls(&self, answer: &mut Value, text: &str) -> bool {
        answer::put_text_before_calls(answer, text)
    }

    fn usage(&self, answer: &Value) -> Usage {
        answer::usage(&answer["usage"])
    }

    /// Only input and output tokens are summed: what of the input came from a cache is told of the last round.
    fn put_usage(&self, answer: &mut Value, total: Usage) {
        let Some(usage) = answer.get_mut("usage") else { return };
        for (field, tokens) in [("input_tokens", total.input), ("output_tokens", total.output)] {
            if let Some(number @ Value::Number(_)) = usage.get_mut(field) {
                *number = tokens.into();
            }
        }
    }

    fn stream(&self, offered: Arc<Offered>) -> Box<dyn StreamFilter> {
        Box::new(stream::Filter::new(offered))
    }
}

fn definition(tool: &ToolDefinition) -> Value {
    json!({"name": *tool.name, "description": *tool.description, "input_schema": *tool.parameters})
}

/// The items of a list; none where it is something else.
fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
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

#[cfg(test)]
#[path = "anthropic/request_tests.rs"]
mod tests;

//! Gemini: `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`.
//!
//! Google's JSON has camel case. Snake case is read too, as Google's servers do; camel case is written.

mod history;
mod request;
mod response;
mod stream;

use std::sync::Arc;

use serde_json::Value;

use crate::{
    Dialect, DialectError, OfferedNames, StreamFilter, ToolCall, ToolDefinition, ToolResult, Usage,
    history::{HistoryCall, ResultLocation},
    wire,
};

/// The dialect of Gemini's generateContent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemini;

impl Dialect for Gemini {
    fn client_tool_names<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        request::client_tool_names(request)
    }

    fn texts<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        request::texts(request)
    }

    fn is_streaming(&self, _request: &Value) -> bool {
        false
    }

    fn append_tools(&self, request: &mut Value, tools: &[ToolDefinition]) -> Result<(), DialectError> {
        if tools.is_empty() {
            return Ok(());
        }
        wire::append_to_tool_objects(request, vec![request::function_declarations(tools)])
    }

    fn tool_calls(&self, response: &Value) -> Vec<ToolCall> {
        response::tool_calls(response)
    }

    fn next_request(&self, request: &Value, response: &Value, results: &[ToolResult]) -> Value {
        response::next_request(request, response, results)
    }

    fn client_response(&self, response: &Value, results: &[ToolResult]) -> Value {
        response::client_response(response, results)
    }

    fn insert_text_before_calls(&self, response: &mut Value, text: &str) -> bool {
        response::insert_text_before_calls(response, text)
    }

    fn usage(&self, response: &Value) -> Usage {
        response::usage(response)
    }

    fn set_usage(&self, response: &mut Value, total: Usage) {
        response::set_usage(response, total);
    }

    fn history_calls<'a>(&self, request: &'a Value) -> Vec<HistoryCall<'a>> {
        history::calls(request)
    }

    fn replace_result(&self, request: &mut Value, location: ResultLocation, result: &ToolResult) {
        history::replace_result(request, location, result);
    }

    fn stream_filter(&self, offered: Arc<OfferedNames>) -> Box<dyn StreamFilter> {
        Box::new(stream::GeminiFilter::new(offered))
    }
}

/// A field by its camel case name, else by its snake case name.
fn either<'a>(value: &'a Value, camel: &str, snake: &str) -> &'a Value {
    value.get(camel).unwrap_or_else(|| &value[snake])
}

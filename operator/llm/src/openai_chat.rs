//! OpenAI chat completions, `POST /v1/chat/completions`, as OpenAI and the many compatible providers speak it.
//!
//! If a response has several choices (`n` above 1), only the first is read and continued: a conversation has one next
//! turn. Calls of custom tools (`type: custom`) are always the client's.

mod history;
mod request;
mod response;
mod stream;
mod tool_call;

use std::sync::Arc;

use serde_json::Value;

use crate::{
    Dialect, DialectError, OfferedNames, StreamFilter, ToolCall, ToolDefinition, ToolResult, Usage,
    history::{HistoryCall, ResultLocation},
    wire,
};
pub use tool_call::read_calls;

/// The dialect of chat completions.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiChat;

impl Dialect for OpenAiChat {
    fn client_tool_names<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        request::client_tool_names(request)
    }

    fn texts<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        request::texts(request)
    }

    fn append_tools(&self, request: &mut Value, tools: &[ToolDefinition]) -> Result<(), DialectError> {
        wire::append_tools(request, tools.iter().map(request::definition).collect())
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
        Box::new(stream::ChatFilter::new(offered))
    }
}

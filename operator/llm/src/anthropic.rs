//! Anthropic messages: `POST /v1/messages`.
//!
//! The provider's own tools (those with a `type`, such as a dated web search) stay as they are. Calls that the provider
//! runs itself (`server_tool_use`, `mcp_tool_use`) are not tool calls.

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

/// The dialect of Anthropic messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anthropic;

impl Dialect for Anthropic {
    fn client_tool_names<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        request::client_tool_names(request)
    }

    fn texts<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        request::texts(request)
    }

    fn append_tools(&self, request: &mut Value, tools: &[ToolDefinition]) -> Result<(), DialectError> {
        wire::append_to_tool_objects(request, tools.iter().map(request::definition).collect())
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

    fn repair_history(&self, request: &mut Value) -> bool {
        history::move_texts_first(request)
    }

    fn stream_filter(&self, offered: Arc<OfferedNames>) -> Box<dyn StreamFilter> {
        Box::new(stream::AnthropicFilter::new(offered))
    }
}

//! OpenAI's Responses API: `POST /v1/responses`, whole and streamed.
//!
//! Items of hosted tools are the provider's and pass unread.

mod history;
pub(crate) mod item;
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

/// The dialect of `/v1/responses`.
///
/// The next request repeats the conversation's items, even if the provider stores responses: then the client needs to
/// know only the response that it gets. If the request names a `conversation`, the provider has added every
/// response's items to it, and only the results are sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiResponses;

impl Dialect for OpenAiResponses {
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

    fn stream_filter(&self, offered: Arc<OfferedNames>) -> Box<dyn StreamFilter> {
        Box::new(stream::ResponsesFilter::new(offered))
    }
}

//! One provider's form of requests and responses, behind one trait.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use crate::{
    OfferedNames, StreamFilter, anthropic, confirmation, gemini,
    history::{HistoryCall, ResultLocation},
    openai_chat, openai_responses, wire,
};

/// Which provider's form a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DialectName {
    /// `POST /v1/chat/completions`
    OpenAiChat,
    /// `POST /v1/responses`
    OpenAiResponses,
    /// `POST /v1/messages`
    Anthropic,
    /// `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`
    Gemini,
}

/// A skill as one request offers it: legal name, description, parameters as a JSON Schema of type object.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    pub name: Arc<str>,
    pub description: Arc<str>,
    pub parameters: Arc<Value>,
}

/// A call that a model makes of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The provider's id of the call; made here, unique within the answer, where the provider gives none.
    pub id: String,
    pub name: String,
    pub arguments: Arguments,
}

/// What a model passes to a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    Json(Value),
    /// Text that is not JSON. The model is told, nothing is run.
    NotJson(String),
}

/// What a call of ours gave, as the model reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The call's id.
    pub id: String,
    /// The tool's name as the model called it.
    pub name: String,
    /// JSON text, already within the byte budget.
    pub content: String,
    pub is_error: bool,
}

/// How a result begins as text.
const RESULT_TEXT_PREFIX: &str = "[Skill result: ";

impl ToolResult {
    /// The result as text for a client, which did not make the call and cannot be shown it.
    pub fn to_text(&self) -> String {
        format!("{RESULT_TEXT_PREFIX}{}]\n{}", self.name, self.content)
    }
}

/// Whether a text of a conversation was written here: a result as text, or a question.
pub(crate) fn is_gateway_text(text: &str) -> bool {
    text.starts_with(RESULT_TEXT_PREFIX) || confirmation::prompt::is_prompt(text)
}

/// Tokens that the provider counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
}

impl Usage {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
        }
    }
}

/// Why a request cannot be worked on. The field is a JSON pointer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{field}: {message}")]
pub struct DialectError {
    pub field: String,
    pub message: String,
}

/// One provider's form of requests and answers.
pub trait Dialect: Send + Sync {
    /// The client's own tools as the request lists them, for scoring. Empty where it has none.
    fn client_tools<'a>(&self, request: &'a Value) -> Vec<&'a Value> {
        wire::items(&request["tools"]).iter().collect()
    }

    /// Names of the client's own tools: a skill never takes one of these.
    fn client_tool_names<'a>(&self, request: &'a Value) -> Vec<&'a str>;

    /// All text of the request that a person or model wrote, in order, for scoring: system and user text, tool results
    /// included. Not the tools.
    fn texts<'a>(&self, request: &'a Value) -> Vec<&'a str>;

    /// Whether the request asks for a streamed answer. For Gemini the route tells, not the body: then false.
    fn is_streaming(&self, request: &Value) -> bool {
        request["stream"] == true
    }

    /// Adds `tools` after the client's own, each in the provider's own place and shape. The client's tools keep place
    /// and order. A request whose tools are not of the provider's shape is refused and stays as it was.
    fn append_tools(&self, request: &mut Value, tools: &[ToolDefinition]) -> Result<(), DialectError>;

    /// Calls in a whole answer, in order, of any tool.
    fn tool_calls(&self, response: &Value) -> Vec<ToolCall>;

    /// The request that continues the conversation: `request` as it was sent to the provider, the model's turn from
    /// `answer`, and the results in the provider's own turn form, one for each call of the answer.
    fn next_request(&self, request: &Value, response: &Value, results: &[ToolResult]) -> Value;

    /// The answer for a client whose own tools are called beside ours: our calls are taken out, their results stand as
    /// text before the client's calls, and the client's calls stay as they were. With no call of the client's left the
    /// answer ends its turn.
    fn client_response(&self, response: &Value, results: &[ToolResult]) -> Value;

    /// Calls of earlier answers in a request, with the results that the client gives for them, in order.
    fn history_calls<'a>(&self, request: &'a Value) -> Vec<HistoryCall<'a>>;

    /// Puts a result in the place of the client's. The rest of the request stays.
    fn replace_result(&self, request: &mut Value, location: ResultLocation, result: &ToolResult);

    /// Puts in order what the provider would not take back of a streamed answer that went through here. Whether it
    /// changed anything.
    fn repair_history(&self, _request: &mut Value) -> bool {
        false
    }

    /// Puts a text into a whole answer, before its calls. False where it has no call or is of another shape: then it is
    /// as it was.
    fn insert_text_before_calls(&self, response: &mut Value, text: &str) -> bool;

    /// Tokens counted in a whole answer.
    fn usage(&self, response: &Value) -> Usage;

    /// Puts the sum over all rounds into an answer, where the answer has usage numbers.
    fn set_usage(&self, response: &mut Value, total: Usage);

    /// A filter for one streamed conversation, over all its rounds, of a request that was offered something.
    fn stream_filter(&self, offered: Arc<OfferedNames>) -> Box<dyn StreamFilter>;
}

impl DialectName {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// The dialect's module.
    pub fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::OpenAiChat => &openai_chat::OpenAiChat,
            Self::OpenAiResponses => &openai_responses::OpenAiResponses,
            Self::Anthropic => &anthropic::Anthropic,
            Self::Gemini => &gemini::Gemini,
        }
    }
}

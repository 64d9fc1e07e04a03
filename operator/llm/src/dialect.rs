//! One provider's form of requests and responses, behind one trait.
//!
//! A dialect reads and edits JSON. It has no state, sends nothing, and does not decide whose a tool call is: the caller
//! compares the call's name with the names that the same request offered.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::{
    OfferedNames, StreamFilter, Usage, anthropic, confirmation, gemini,
    history::{HistoryCall, ResultLocation},
    openai_chat, openai_responses, wire,
};

/// The provider's form of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum DialectName {
    /// `POST /v1/chat/completions`
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// `POST /v1/responses`
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// `POST /v1/messages`
    #[serde(rename = "anthropic")]
    Anthropic,
    /// `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`
    #[serde(rename = "gemini")]
    Gemini,
}

/// A skill as one request offers it: legal name, description, parameters as a JSON Schema of type object.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    pub name: Arc<str>,
    pub description: Arc<str>,
    pub parameters: Arc<Value>,
}

/// A model's call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The provider's id of the call. If the provider gives none, an id that is unique within the response.
    pub id: String,
    pub name: String,
    pub arguments: Arguments,
}

/// Arguments of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    Json(Value),
    /// Text that is not JSON. The model gets an error as the result, and no skill runs.
    NotJson(String),
}

impl Arguments {
    /// Reads arguments, which a provider gives as JSON or as its text. Nothing, and JSON that is no object, is an empty
    /// object.
    pub(crate) fn read(given: &Value) -> Self {
        match given {
            Value::Object(_) => Self::Json(given.clone()),
            Value::String(text) if !text.trim().is_empty() => match serde_json::from_str(text) {
                Ok(json @ Value::Object(_)) => Self::Json(json),
                Ok(_) => Self::Json(json!({})),
                Err(_) => Self::NotJson(text.clone()),
            },
            _ => Self::Json(json!({})),
        }
    }
}

/// The result of a skill's call, as the model reads it.
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

/// The prefix of every result that a client gets as text.
const RESULT_TEXT_PREFIX: &str = "[Skill result: ";

impl ToolResult {
    /// The result as text for a client, which never sees the call itself.
    pub fn to_text(&self) -> String {
        format!("{RESULT_TEXT_PREFIX}{}]\n{}", self.name, self.content)
    }
}

/// Returns true for a text that a gateway wrote into a conversation: a result as text, or a confirmation prompt.
pub(crate) fn is_gateway_text(text: &str) -> bool {
    text.starts_with(RESULT_TEXT_PREFIX) || confirmation::prompt::is_prompt(text)
}

/// A part of a request that has another shape than the provider's. The field is a JSON pointer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{field}: {message}")]
pub struct DialectError {
    pub field: String,
    pub message: String,
}

/// One provider's form of requests and responses.
///
/// Readers accept any JSON: they return nothing for a part of an unknown shape. Editors change only the part that they
/// name, and no method panics.
///
/// ```
/// use serde_json::json;
/// use skillet_llm::{DialectName, ToolDefinition, ToolResult};
///
/// let dialect = DialectName::Anthropic.dialect();
/// let mut request = json!({"messages": [{"role": "user", "content": "What is 2 + 3?"}]});
/// let parameters = json!({"type": "object"}).into();
/// let sum = ToolDefinition { name: "sum".into(), description: "Adds numbers.".into(), parameters };
/// dialect.append_tools(&mut request, &[sum])?;
///
/// let call = json!({"type": "tool_use", "id": "t1", "name": "sum", "input": {"numbers": [2, 3]}});
/// let response = json!({"role": "assistant", "content": [call], "stop_reason": "tool_use"});
/// let calls = dialect.tool_calls(&response);
/// assert_eq!(calls[0].name, "sum");
///
/// let result = ToolResult { id: "t1".into(), name: "sum".into(), content: "5".into(), is_error: false };
/// let next = dialect.next_request(&request, &response, &[result]);
/// assert_eq!(next["tools"], request["tools"]);
/// assert_eq!(next["messages"][1]["content"][0], call);
/// assert_eq!(next["messages"][2]["content"][0]["content"], "5");
/// # Ok::<(), skillet_llm::DialectError>(())
/// ```
pub trait Dialect: Send + Sync {
    /// The client's own tools as the request lists them, for scoring.
    fn client_tools<'a>(&self, request: &'a Value) -> Vec<&'a Value> {
        wire::items(&request["tools"]).iter().collect()
    }

    /// Names of the client's own tools. No skill takes one of these.
    fn client_tool_names<'a>(&self, request: &'a Value) -> Vec<&'a str>;

    /// All text that a person or a model wrote, in order, for scoring: system and user text, and tool results. Not the
    /// tools.
    fn texts<'a>(&self, request: &'a Value) -> Vec<&'a str>;

    /// The texts of each turn of the user that has text, in order, without results of tools.
    fn user_turns<'a>(&self, request: &'a Value) -> Vec<Vec<&'a str>>;

    /// Returns true if the body asks for a streamed response. Always false for Gemini, which says it in the route.
    fn is_streaming(&self, request: &Value) -> bool;

    /// Appends `tools` to the client's own, which keep their place and order. A request whose tools have another shape
    /// is refused and stays as it was. Returns true if the request now asks for content of reasoning that the client did
    /// not ask for: the next round needs it.
    fn append_tools(&self, request: &mut Value, tools: &[ToolDefinition]) -> Result<bool, DialectError>;

    /// Puts `tools` before the client's own, else as [`Dialect::append_tools`].
    fn prepend_tools(&self, request: &mut Value, tools: &[ToolDefinition]) -> Result<bool, DialectError>;

    /// Removes content of reasoning from a whole response whose client did not ask for it.
    fn hide_reasoning(&self, response: &mut Value);

    /// Calls of any tool in a whole response, in order.
    fn tool_calls(&self, response: &Value) -> Vec<ToolCall>;

    /// The request that continues the conversation: `request` as the provider got it, the model's turn from `response`,
    /// and `results` in the provider's own form. Takes one result for each call of the response.
    fn next_request(&self, request: &Value, response: &Value, results: &[ToolResult]) -> Value;

    /// The response for a client. Calls that have a result become text before the client's calls, which stay as they
    /// were. If no call is left, the response ends its turn.
    fn client_response(&self, response: &Value, results: &[ToolResult]) -> Value;

    /// The same without text in the place of the calls that have a result.
    fn without_calls(&self, response: &Value, results: &[ToolResult]) -> Value;

    /// The turns that a response and the results of its calls add to a conversation, as [`Dialect::next_request`] adds
    /// them to a request without history at the provider.
    fn turns(&self, request: &Value, response: &Value, results: &[ToolResult]) -> Vec<Value>;

    /// Inserts a text into a whole response, before its calls. Returns false, and changes nothing, if the response has
    /// no call or another shape.
    fn insert_text_before_calls(&self, response: &mut Value, text: &str) -> bool;

    /// The texts of the model in a whole response, as parts of its turn.
    fn round_texts(&self, response: &Value) -> Vec<Value>;

    /// Inserts texts of earlier rounds before those of a whole response, each round apart from the next.
    fn prepend_texts(&self, response: &mut Value, texts: Vec<Value>);

    /// Returns true if a limit of tokens ended a whole response. Its calls may lack a part of their arguments: no
    /// skill runs for them.
    fn is_cut(&self, response: &Value) -> bool;

    /// Returns true if the request asks for JSON as text. The texts of two rounds would not be JSON.
    fn wants_json(&self, request: &Value) -> bool;

    /// The usage of a whole response.
    fn usage(&self, response: &Value) -> Usage;

    /// Writes the sum over all rounds into a response that counts tokens.
    fn set_usage(&self, response: &mut Value, total: &Usage);

    /// Calls of earlier responses that a request sends back, with the client's results for them, in order.
    fn history_calls<'a>(&self, request: &'a Value) -> Vec<HistoryCall<'a>>;

    /// Replaces the client's result at a location. The rest of the request stays.
    fn replace_result(&self, request: &mut Value, location: ResultLocation, result: &ToolResult);

    /// Reorders a turn that went to the client as a stream and that the provider would refuse. Returns true if it
    /// changed the request.
    fn repair_history(&self, request: &mut Value) -> bool;

    /// A filter for all rounds of one streamed conversation whose request offered something.
    fn stream_filter(&self, offered: Arc<OfferedNames>) -> Box<dyn StreamFilter>;

    /// A filter as [`Dialect::stream_filter`] that shows the client the last round alone. It holds each round back until
    /// it is known to be the last.
    fn last_round_filter(&self, offered: Arc<OfferedNames>) -> Box<dyn StreamFilter>;
}

impl DialectName {
    /// All dialects.
    pub const ALL: [Self; 4] = [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// Its name in requests and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The dialect of this name.
    pub fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::OpenAiChat => &openai_chat::OpenAiChat,
            Self::OpenAiResponses => &openai_responses::OpenAiResponses,
            Self::Anthropic => &anthropic::Anthropic,
            Self::Gemini => &gemini::Gemini,
        }
    }

    /// Bytes that a client of a stream ignores between two events: a comment, an event without content, or blanks.
    pub fn keep_alive(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => ": keep-alive\n\n",
            Self::Anthropic => "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            // Some readers of this dialect know no comments, and its list of JSON has none.
            Self::Gemini => "\n\n",
        }
    }
}

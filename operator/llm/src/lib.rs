//! Model dialects: where each provider's requests and answers keep text, tools, calls and results.
//!
//! One module per dialect behind one trait. Pure: JSON and bytes in, JSON and bytes out, no network and no clock.
//! Every reader takes whatever a model or a client sends: what it does not understand it leaves alone, and nothing
//! panics. Which calls are ours is decided by the offer table of the very request, never by the look of a name.

pub mod anthropic;
pub mod budget;
mod choice;
pub mod confirmation;
#[cfg(test)]
mod damage;
pub mod gemini;
pub mod json_edit;
pub mod names;
#[cfg(test)]
mod odd_tests;
pub mod offered;
pub mod openai_chat;
pub mod openai_responses;
mod passing;
mod results;
pub mod schema;
pub mod sent;
mod several;
pub mod sse;

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

pub use offered::Offered;
use sent::{Place, SentCall};

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
    Broken(String),
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
const TOLD: &str = "[Skill result: ";

impl ToolResult {
    /// The result as text for a client, which did not make the call and cannot be shown it.
    pub fn told(&self) -> String {
        format!("{TOLD}{}]\n{}", self.name, self.content)
    }
}

/// Whether a text of a conversation was written here: a result as text, or a question.
fn is_of_gateway(text: &str) -> bool {
    text.starts_with(TOLD) || confirmation::question::is_question(text)
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

/// Why a stream cannot be read on.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StreamError {
    /// One event is larger than [`sse::EVENT_LIMIT_BYTES`].
    #[error("an event of the provider's stream is larger than {limit} bytes")]
    TooLarge { limit: usize },
    /// The events of one round are larger than [`sse::ROUND_LIMIT_BYTES`].
    #[error("an answer of the provider's stream is larger than {limit} bytes")]
    LongRound { limit: usize },
    /// The provider ended the stream inside a call of ours.
    #[error("the provider's stream ended inside a tool call")]
    Truncated,
}

/// One provider's form of requests and answers.
pub trait Dialect: Send + Sync {
    /// The client's own tools as the request lists them, for scoring. Empty where it has none.
    fn client_tools<'a>(&self, request: &'a Value) -> Vec<&'a Value>;

    /// Names of the client's own tools: a skill never takes one of these.
    fn client_tool_names<'a>(&self, request: &'a Value) -> Vec<&'a str>;

    /// All text of the request that a person or model wrote, in order, for scoring: system and user text, tool results
    /// included. Not the tools.
    fn texts<'a>(&self, request: &'a Value) -> Vec<&'a str>;

    /// Whether the request asks for a streamed answer. For Gemini the route tells, not the body: then false.
    fn is_streaming(&self, request: &Value) -> bool;

    /// Adds `tools` after the client's own, each in the provider's own place and shape. The client's tools keep place
    /// and order. A request whose tools are not of the provider's shape is refused and stays as it was.
    fn offer(&self, request: &mut Value, tools: &[ToolDefinition]) -> Result<(), DialectError>;

    /// Calls in a whole answer, in order, of any tool.
    fn calls(&self, answer: &Value) -> Vec<ToolCall>;

    /// The request that continues the conversation: `request` as it was sent to the provider, the model's turn from
    /// `answer`, and the results in the provider's own turn form, one for each call of the answer.
    fn next_request(&self, request: &Value, answer: &Value, results: &[ToolResult]) -> Value;

    /// The answer for a client whose own tools are called beside ours: our calls are taken out, their results stand as
    /// text before the client's calls, and the client's calls stay as they were. With no call of the client's left the
    /// answer ends its turn.
    fn mixed_answer(&self, answer: &Value, results: &[ToolResult]) -> Value;

    /// Calls of earlier answers in a request, with the results that the client gives for them, in order.
    fn sent_calls<'a>(&self, request: &'a Value) -> Vec<SentCall<'a>>;

    /// Puts a result in the place of the client's. The rest of the request stays.
    fn put_result(&self, request: &mut Value, place: Place, result: &ToolResult);

    /// Puts in order what the provider would not take back of a streamed answer that went through here. Whether it
    /// changed anything.
    fn mend_sent(&self, _request: &mut Value) -> bool {
        false
    }

    /// Puts a text into a whole answer, before its calls. False where it has no call or is of another shape: then it is
    /// as it was.
    fn put_text_before_calls(&self, answer: &mut Value, text: &str) -> bool;

    /// Tokens counted in a whole answer.
    fn usage(&self, answer: &Value) -> Usage;

    /// Puts the sum over all rounds into an answer, where the answer has usage numbers.
    fn put_usage(&self, answer: &mut Value, total: Usage);

    /// A filter for one streamed conversation, over all its rounds, of a request that was offered something.
    fn stream(&self, offered: Arc<Offered>) -> Box<dyn StreamFilter>;
}

/// What one round of a stream came to.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundEnd {
    /// The whole answer of this round as the provider would have given it without streaming, our calls included: what
    /// [`Dialect::next_request`] takes.
    pub answer: Value,
    /// Our calls in it, in order.
    pub ours: Vec<ToolCall>,
    /// Calls that the client got and that wait for a person's word, in order.
    pub asked: Vec<ToolCall>,
    /// Whether calls went to the client, its own or such that wait: then no further round follows.
    pub has_client_calls: bool,
}

impl RoundEnd {
    /// Tells whose each call is. After a failure, which the client was told, nothing is run and nobody is asked.
    fn of(answer: Value, calls: Vec<ToolCall>, offered: &Offered, is_failed: bool) -> Self {
        let mut end = Self { answer, ours: Vec::new(), asked: Vec::new(), has_client_calls: false };
        for call in calls {
            let is_ours = offered.contains(&call.name);
            end.has_client_calls |= !is_ours;
            if is_failed {
                continue;
            }
            if is_ours {
                end.ours.push(call);
            } else if offered.is_asked(&call.name) {
                end.asked.push(call);
            }
        }
        end
    }
}

/// Between the provider's streamed answers and the client, over all rounds of one conversation.
///
/// The client sees one stream: what is not ours passes byte for byte and at once, an event at a time; our calls are
/// held back, and so is the end of a round in which we were called or a call waits for a person's word. Later rounds
/// are renumbered to continue the first: one beginning, one end, ids and indexes that go on, usage summed.
pub trait StreamFilter: Send {
    /// Takes bytes of the present round, cut anywhere; appends what goes to the client to `out`.
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), StreamError>;

    /// The provider's stream of this round is over. After it `feed` begins the next round.
    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<RoundEnd, StreamError>;

    /// Writes a text of the gateway's before the end that is held back. Where the dialect's texts have names, `id` keeps
    /// this one's apart. Does nothing where no end is held back.
    fn tell(&mut self, id: &str, text: &str, out: &mut Vec<u8>);

    /// No further round: writes the end that was held back. `results` are those of our calls in the last round, as
    /// text before the end, where the client's own calls are in it too or the rounds are used up. Does nothing where
    /// the last round was passed on whole.
    fn finish(&mut self, results: &[ToolResult], out: &mut Vec<u8>);
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

#[cfg(test)]
mod asked_tests;

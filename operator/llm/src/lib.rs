//! Model dialects: where each provider's requests and answers keep text, tools, calls and results.
//!
//! One module per dialect behind one trait. Pure: JSON and bytes in, JSON and bytes out, no network and no clock.
//! Every reader takes whatever a model or a client sends: what it does not understand it leaves alone, and nothing
//! panics. Which calls are ours is decided by the offer table of the very request, never by the look of a name.

pub mod anthropic;
mod candidate_count;
pub mod confirmation;
mod dialect;
pub mod gemini;
pub mod history;
pub mod json_edit;
mod offered_names;
pub mod openai_chat;
pub mod openai_responses;
mod passthrough;
pub mod result_budget;
pub mod sse;
mod stream;
#[cfg(test)]
mod testing;
mod tool_choice;
pub mod tool_names;
pub mod tool_schema;
mod wire;

pub use dialect::{
    Arguments, Dialect, DialectError, DialectName, ToolCall, ToolDefinition, ToolResult, Usage,
};
pub use offered_names::OfferedNames;
pub use stream::{RoundEnd, StreamError, StreamFilter};

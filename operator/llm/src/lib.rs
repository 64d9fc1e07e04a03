//! The wire formats of four model providers: their requests, responses, streams and the history that clients send
//! back.
//!
//! One module per dialect, behind the traits [`Dialect`] and [`StreamFilter`]. The crate takes JSON and bytes and
//! returns JSON and bytes: it has no network and no clock. Readers accept any input; they leave alone what they do
//! not know, and nothing panics. The offer table of the request decides whether a tool call is a skill's, never the
//! look of its name.

mod added_text;
pub mod anthropic;
mod codec;
pub mod confirmation;
pub mod continuation;
mod dialect;
mod error_body;
mod exclusion;
pub mod gemini;
pub mod history;
pub mod json_edit;
pub mod native_tools;
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
mod usage;
mod user_turns;
mod wire;

pub use added_text::{add_result_texts, add_system_text, add_user_texts};
pub use dialect::{Arguments, Dialect, DialectError, DialectName, ToolCall, ToolDefinition, ToolResult};
pub use error_body::ErrorDetail;
pub use exclusion::MODEL_WITHOUT_TOOLS;
pub use offered_names::OfferedNames;
pub use stream::{ContinuedResponse, MakeSeal, RoundEnd, StreamError, StreamFilter};
pub use usage::Usage;

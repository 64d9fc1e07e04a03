//! Streams between a provider and a client.
//!
//! A filter splits the provider's bytes: the client's part passes at once, skill calls and the end of their round stay
//! here. It runs nothing and decides nothing about skills; it compares names with those that the request offered.

mod last_round;
mod pending_seal;
mod rounds;
mod splitter;
mod stream_codec;

use serde_json::Value;
use thiserror::Error;

use crate::{ErrorDetail, OfferedNames, ToolCall, ToolResult, continuation::Seal};
pub(crate) use last_round::LastRoundFilter;
pub use pending_seal::MakeSeal;
pub(crate) use rounds::RoundsFilter;
pub(crate) use splitter::{Splitter, SseEvent};
pub(crate) use stream_codec::{Begin, HeldEnd, Rounds, StreamCodec, WholeRound};

/// A stream that cannot be read any further.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StreamError {
    /// One event is larger than [`EVENT_LIMIT_BYTES`](crate::sse::EVENT_LIMIT_BYTES).
    #[error("an event of the provider's stream is larger than {limit} bytes")]
    TooLarge { limit: usize },
    /// The events of one round are larger than [`ROUND_LIMIT_BYTES`](crate::sse::ROUND_LIMIT_BYTES).
    #[error("a response of the provider's stream is larger than {limit} bytes")]
    LongRound { limit: usize },
    /// The provider ended the stream inside a call of a skill.
    #[error("the provider's stream ended inside a tool call")]
    Truncated,
    /// The provider sent an error in a later round. [`StreamFilter::write_error`] gives it to the client.
    #[error("the provider's stream has an error")]
    ProviderFailed,
}

/// The outcome of one round of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundEnd {
    /// The whole response of this round as without streaming, skill calls included, as
    /// [`Dialect::next_request`](crate::Dialect::next_request) takes it.
    pub response: Value,
    /// Calls of skills to run, in order.
    pub skill_calls: Vec<ToolCall>,
    /// Calls that the client got and that await a person's confirmation, in order.
    pub awaiting_confirmation: Vec<ToolCall>,
    /// True if the client got calls, its own or such that await confirmation. Then no further round follows.
    pub has_client_calls: bool,
}

impl RoundEnd {
    /// Sorts calls by owner. After a failure, which the client has seen, no skill runs and no person is asked.
    pub(crate) fn of(response: Value, calls: Vec<ToolCall>, offered: &OfferedNames, is_failed: bool) -> Self {
        let mut end = Self {
            response,
            skill_calls: Vec::new(),
            awaiting_confirmation: Vec::new(),
            has_client_calls: false,
        };
        for call in calls {
            let is_skill = offered.contains(&call.name);
            end.has_client_calls |= !is_skill;
            if is_failed {
                continue;
            }
            if is_skill {
                end.skill_calls.push(call);
            } else if offered.needs_confirmation(&call.name) {
                end.awaiting_confirmation.push(call);
            }
        }
        end
    }
}

/// A stored response that the client knows by the id of an earlier round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinuedResponse {
    /// The id that the client got.
    pub shown_id: String,
    /// The id of the last round, whose response has all turns before it.
    pub last_id: String,
}

/// A filter between the provider's streamed responses and the client, for all rounds of one conversation.
///
/// # Guarantees
///
/// - The client's part passes byte for byte, an event at a time. A stream without skill calls is never changed, but for
///   content that [`StreamFilter::hide_reasoning`] keeps back.
/// - Skill calls are held back, and so is the end of a round with skill calls or calls that await confirmation.
/// - Later rounds continue the first: one beginning, one end, ids and indexes without a gap, usage summed, a blank line
///   between the texts.
/// - Memory is bounded by [`EVENT_LIMIT_BYTES`](crate::sse::EVENT_LIMIT_BYTES) and
///   [`ROUND_LIMIT_BYTES`](crate::sse::ROUND_LIMIT_BYTES).
///
/// # Expected flow
///
/// `feed` until the provider's stream is over, then `end_round`. Repeat for each round. Then `write_text` as needed, and
/// `finish`.
///
/// ```
/// use skillet_llm::{DialectName, OfferedNames, ToolResult};
///
/// let offered = OfferedNames::from(["sum".into()]);
/// let mut filter = DialectName::Gemini.stream_filter(false, offered.into());
/// let mut out = Vec::new();
///
/// let text = br#"data: {"candidates":[{"content":{"parts":[{"text":"Let me see."}]}}]}"#;
/// filter.feed(&[text.as_slice(), b"\n\n"].concat(), &mut out)?;
/// assert!(out.starts_with(text), "the client's part passes at once");
///
/// let call = br#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"sum"}}]}}]}"#;
/// filter.feed(&[call.as_slice(), b"\n\n"].concat(), &mut out)?;
/// let end = filter.end_round(&mut out)?;
/// assert_eq!(end.skill_calls[0].name, "sum");
///
/// let id = end.skill_calls[0].id.clone();
/// let result = ToolResult { id, name: "sum".into(), content: "5".into(), is_error: false };
/// filter.finish(&[result], &mut out);
/// let out = String::from_utf8_lossy(&out);
/// assert!(out.contains("[Skill result: sum]") && !out.contains("functionCall"));
/// # Ok::<(), skillet_llm::StreamError>(())
/// ```
pub trait StreamFilter: Send {
    /// Takes bytes of the current round, cut anywhere, and appends the client's part to `out`.
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), StreamError>;

    /// The bytes of the current round that the filter keeps until the round is over.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Ends the current round. A later `feed` begins the next one.
    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<RoundEnd, StreamError>;

    /// Holds back the client's calls until their round is over, so that they can carry a seal.
    fn hold_client_calls(&mut self) {}

    /// Keeps content of reasoning from a client that did not ask for it, unless the response carries a seal.
    fn hide_reasoning(&mut self) {}

    /// Takes the maker of the seal of the rounds so far. The seal stands before the next part of the model's answer.
    fn put_seal(&mut self, _make: MakeSeal) {}

    /// Ends the client's part of a later round that the provider broke off, so that the round can be asked for again:
    /// what the client got of it stays, and the new attempt follows. Returns false if the client's stream cannot
    /// continue so.
    fn abandon_round(&mut self, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Writes an error in the place of the end, as the dialect's SDKs read it. If the provider sent one itself, the client
    /// gets that.
    fn write_error(&mut self, _error: &ErrorDetail<'_>, _out: &mut Vec<u8>) {}

    /// Returns the response of a stream whose end the client got under the id of an earlier one, once.
    fn take_continued(&mut self) -> Option<ContinuedResponse> {
        None
    }

    /// Writes a text of the gateway before the end that is held back. If the dialect's texts have ids, `id` makes this
    /// one unique. Does nothing if no end is held back.
    fn write_text(&mut self, id: &str, text: &str, out: &mut Vec<u8>);

    /// Writes the end that was held back, after the `results` of the last round as text: the client has calls in that
    /// round too, or no round is left. Does nothing if no end is held back.
    fn finish(&mut self, results: &[ToolResult], out: &mut Vec<u8>);

    /// Writes what was held back. The client's call with the id `call_id` gets the seal in the place of it.
    fn finish_sealed(&mut self, _seal: &Seal, _call_id: &str, out: &mut Vec<u8>) {
        self.finish(&[], out);
    }
}

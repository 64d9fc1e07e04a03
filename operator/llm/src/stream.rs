//! Streams between a provider and a client.

use serde_json::Value;
use thiserror::Error;

use crate::{OfferedNames, ToolCall, ToolResult};

/// Why a stream cannot be read on.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StreamError {
    /// One event is larger than [`crate::sse::EVENT_LIMIT_BYTES`].
    #[error("an event of the provider's stream is larger than {limit} bytes")]
    TooLarge { limit: usize },
    /// The events of one round are larger than [`crate::sse::ROUND_LIMIT_BYTES`].
    #[error("a response of the provider's stream is larger than {limit} bytes")]
    LongRound { limit: usize },
    /// The provider ended the stream inside a call of ours.
    #[error("the provider's stream ended inside a tool call")]
    Truncated,
}

/// What one round of a stream came to.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundEnd {
    /// The whole answer of this round as the provider would have given it without streaming, our calls included: what
    /// [`Dialect::next_request`] takes.
    pub response: Value,
    /// Our calls in it, in order.
    pub skill_calls: Vec<ToolCall>,
    /// Calls that the client got and that wait for a person's word, in order.
    pub awaiting_confirmation: Vec<ToolCall>,
    /// Whether calls went to the client, its own or such that wait: then no further round follows.
    pub has_client_calls: bool,
}

impl RoundEnd {
    /// Tells whose each call is. After a failure, which the client was told, nothing is run and nobody is asked.
    pub(crate) fn of(response: Value, calls: Vec<ToolCall>, offered: &OfferedNames, is_failed: bool) -> Self {
        let mut end = Self {
            response,
            skill_calls: Vec::new(),
            awaiting_confirmation: Vec::new(),
            has_client_calls: false,
        };
        for call in calls {
            let is_ours = offered.contains(&call.name);
            end.has_client_calls |= !is_ours;
            if is_failed {
                continue;
            }
            if is_ours {
                end.skill_calls.push(call);
            } else if offered.needs_confirmation(&call.name) {
                end.awaiting_confirmation.push(call);
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
    fn write_text(&mut self, id: &str, text: &str, out: &mut Vec<u8>);

    /// No further round: writes the end that was held back. `results` are those of our calls in the last round, as
    /// text before the end, where the client's own calls are in it too or the rounds are used up. Does nothing where
    /// the last round was passed on whole.
    fn finish(&mut self, results: &[ToolResult], out: &mut Vec<u8>);
}

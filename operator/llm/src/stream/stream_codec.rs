//! One provider's events, as the skeleton of every stream filter reads and writes them.
//!
//! A [`StreamCodec`] says which event means what, and writes events. It never decides when a round is over, whether
//! an end is still held back, or whose a call is.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use super::{ContinuedResponse, RoundEnd, Splitter, StreamError};
use crate::{
    Arguments, ErrorDetail, OfferedNames, Usage,
    codec::{ClientText, Codec, placed_calls, usage},
    continuation::Seal,
    sse::RoundSize,
};

/// A whole round.
pub(crate) struct WholeRound {
    /// The response as without streaming.
    pub(crate) response: Value,
    /// Texts that should have been the JSON of a call's arguments, by list and index of the call.
    pub(crate) broken: HashMap<(String, usize), String>,
}

impl From<Value> for WholeRound {
    fn from(response: Value) -> Self {
        Self { response, broken: HashMap::new() }
    }
}

/// The end of a round, held back until the next round begins or the stream ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldEnd {
    pub(crate) has_client_calls: bool,
}

/// The state of a conversation that no dialect keeps for itself.
pub(crate) struct Rounds {
    pub(crate) offered: Arc<OfferedNames>,
    /// The usage of the rounds that are over.
    pub(crate) total: Usage,
    pub(crate) is_first: bool,
    /// The provider sent an error: nothing runs.
    pub(crate) is_failed: bool,
    pub(crate) held: Option<HeldEnd>,
    pub(super) size: RoundSize,
}

impl Rounds {
    /// Counts bytes of events that are kept until the round is over.
    pub(crate) fn keep(&mut self, bytes: usize) -> Result<(), StreamError> {
        self.size.add(bytes)
    }

    /// The usage of the rounds that are over and of the current one.
    pub(crate) fn total_with(&self, current: &Usage) -> Usage {
        self.total.clone().plus(current)
    }

    /// Sorts the calls of a whole round by owner.
    pub(crate) fn end<C: Codec>(&mut self, round: WholeRound) -> RoundEnd {
        let WholeRound { response, mut broken } = round;
        self.total = self.total_with(&usage::<C>(&response));
        let mut calls = Vec::new();
        for placed in placed_calls::<C>(&response) {
            let mut call = placed.call;
            if let Some(text) = broken.remove(&(placed.list, placed.index)) {
                call.arguments = Arguments::NotJson(text);
            }
            calls.push(call);
        }
        let is_cut = C::is_cut(&response);
        let mut end = RoundEnd::of(response, calls, &self.offered, self.is_failed);
        if is_cut {
            end.awaiting_confirmation.clear();
        }
        end
    }
}

/// The beginning of a part of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// A call of any tool that the provider does not run itself.
    Call,
    /// Any other part that the client sees.
    Answer,
}

/// One provider's events.
pub(crate) trait StreamCodec: Clone + Default + Send {
    type Splitter: Splitter;

    /// The part of the response that a piece begins.
    fn begins(piece: &<Self::Splitter as Splitter>::Piece) -> Option<Begin>;

    /// Returns true for a piece that says that the provider failed.
    fn is_failure(piece: &<Self::Splitter as Splitter>::Piece) -> bool;

    /// Takes a piece of the current round and writes the client's part.
    fn take(
        &mut self,
        piece: <Self::Splitter as Splitter>::Piece,
        rounds: &mut Rounds,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamError>;

    /// Prepares a view of the client that begins with a later round.
    fn begin_late(&mut self) {}

    /// Keeps content of the first round's reasoning from the client.
    fn hide_reasoning(&mut self) {}

    /// Learns the form of the stream from its first bytes.
    fn follow(&mut self, _splitter: &Self::Splitter) {}

    /// Returns true if the round has calls that are held back or that await confirmation.
    fn holds_end(&self) -> bool;

    /// Ends the current round. The next one begins without any of its state.
    fn end_round(&mut self, rounds: &mut Rounds, out: &mut Vec<u8>) -> Result<RoundEnd, StreamError>;

    /// Ends the client's part of the current round, which the provider broke off, and forgets the round. `is_sealed` if
    /// a seal before that part replaces it in the next request. Returns false if the part cannot be ended.
    fn abandon_round(&mut self, is_sealed: bool, rounds: &Rounds, out: &mut Vec<u8>) -> bool;

    /// Writes an error event.
    fn write_error(&mut self, error: &ErrorDetail<'_>, out: &mut Vec<u8>);

    /// Returns the response that the client knows by another id, once.
    fn take_continued(&mut self) -> Option<ContinuedResponse> {
        None
    }

    /// Writes texts before the end that is held back.
    fn write_texts(&mut self, texts: &[ClientText], rounds: &Rounds, out: &mut Vec<u8>);

    /// Writes the end that was held back, for all rounds.
    fn write_end(&mut self, end: HeldEnd, rounds: &Rounds, out: &mut Vec<u8>);

    /// Writes a seal as a part of its own.
    fn write_seal(&mut self, seal: &Seal, out: &mut Vec<u8>);

    /// Puts a seal into the first call of events for the client, in the place of its id.
    fn seal_call(&mut self, events: Vec<u8>, seal: &Seal, call_id: &str) -> Vec<u8> {
        replace_string(events, call_id, seal.as_str())
    }
}

/// Replaces the JSON string `from` in a text of JSON. Within another string its quotation marks are escaped.
fn replace_string(text: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    let quoted = |text: &str| Value::from(text).to_string();
    match String::from_utf8(text) {
        Ok(text) => text.replace(&quoted(from), &quoted(to)).into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

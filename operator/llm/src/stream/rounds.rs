//! The skeleton of every stream filter: rounds that are fed and ended, and the end that is held back between them.
//!
//! A [`StreamCodec`] says which event means what, and writes events. It never decides when a round is over, whether
//! an end is still held back, or whose a call is.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use super::{RoundEnd, Splitter, StreamError, StreamFilter};
use crate::{
    Arguments, OfferedNames, ToolResult, Usage,
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
    size: RoundSize,
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
pub(crate) trait StreamCodec: Default + Send {
    type Splitter: Splitter;

    /// The part of the response that a piece begins.
    fn begins(piece: &<Self::Splitter as Splitter>::Piece) -> Option<Begin>;

    /// Takes a piece of the current round and writes the client's part.
    fn take(
        &mut self,
        piece: <Self::Splitter as Splitter>::Piece,
        rounds: &mut Rounds,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamError>;

    /// Prepares a view of the client that begins with a later round.
    fn begin_late(&mut self) {}

    /// Learns the form of the stream from its first bytes.
    fn follow(&mut self, _splitter: &Self::Splitter) {}

    /// Returns true if the round has calls that are held back or that await confirmation.
    fn holds_end(&self) -> bool;

    /// Ends the current round. The next one begins without any of its state.
    fn end_round(&mut self, rounds: &mut Rounds, out: &mut Vec<u8>) -> Result<RoundEnd, StreamError>;

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

/// The filter of one streamed conversation.
pub(crate) struct RoundsFilter<S: StreamCodec> {
    splitter: S::Splitter,
    codec: S,
    rounds: Rounds,
    /// True if the last bytes to the client may lack the blank line that ends an event.
    is_cut: bool,
    /// The client's calls wait until their round is over.
    holds_calls: bool,
    /// The client's events from the first call of the round on, while they wait.
    tail: Option<Vec<u8>>,
    /// The seal of the rounds so far, until the answer begins.
    seal: Option<Seal>,
    /// The client does not get all turns of the rounds so far.
    is_carrying: bool,
}

impl<S: StreamCodec> RoundsFilter<S> {
    pub(crate) fn new(offered: Arc<OfferedNames>) -> Self {
        let (total, size) = (Usage::default(), RoundSize::default());
        let rounds = Rounds { offered, total, is_first: true, is_failed: false, held: None, size };
        Self {
            splitter: S::Splitter::default(),
            codec: S::default(),
            rounds,
            is_cut: false,
            holds_calls: false,
            tail: None,
            seal: None,
            is_carrying: false,
        }
    }

    /// Begins the client's stream with the next round: the client got nothing of the rounds before.
    pub(crate) fn begin_again(&mut self) {
        self.codec = S::default();
        self.codec.begin_late();
        self.rounds.held = None;
        self.is_cut = false;
        self.tail = None;
    }

    fn take(
        &mut self,
        piece: <S::Splitter as Splitter>::Piece,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamError> {
        match S::begins(&piece) {
            Some(Begin::Call) if self.holds_calls => drop(self.tail.get_or_insert_default()),
            Some(Begin::Answer) if self.tail.is_none() => self.write_seal(out),
            Some(Begin::Call | Begin::Answer) | None => {}
        }
        self.write(out, |codec, rounds, out| codec.take(piece, rounds, out))
    }

    /// Lets the codec write to the client, or to what waits for the end of the round.
    fn write<T>(
        &mut self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut S, &mut Rounds, &mut Vec<u8>) -> T,
    ) -> T {
        let mut tail = self.tail.take();
        let to = tail.as_mut().unwrap_or(out);
        let start = to.len();
        let written = write(&mut self.codec, &mut self.rounds, to);
        self.end_cut_event(start, to);
        self.tail = tail;
        written
    }

    fn write_seal(&mut self, out: &mut Vec<u8>) {
        if let Some(seal) = self.seal.take() {
            self.write(out, |codec, _, out| codec.write_seal(&seal, out));
        }
    }

    /// Ends the event before `start` if it was cut and more follows.
    fn end_cut_event(&mut self, start: usize, out: &mut Vec<u8>) {
        if self.is_cut && out.len() > start {
            self.is_cut = false;
            out.splice(start..start, *b"\n\n");
        }
    }

    /// Takes an event that the stream left without its blank line. The client gets half an event only if it cannot be
    /// part of an offered tool's call.
    fn take_rest(&mut self, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let has_blank_lines = self.splitter.has_blank_lines();
        let Some(rest) = self.splitter.rest() else { return Ok(()) };
        if let Some(half) = S::Splitter::half(&rest) {
            let text = String::from_utf8_lossy(half);
            let is_offered = || self.rounds.offered.all().any(|name| text.contains(&**name));
            if !self.rounds.is_failed && (self.codec.holds_end() || is_offered()) {
                return Err(StreamError::Truncated);
            }
        }
        let length = out.len();
        self.take(rest, out)?;
        self.is_cut |= has_blank_lines && out.len() > length;
        Ok(())
    }
}

impl<S: StreamCodec> StreamFilter for RoundsFilter<S> {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), StreamError> {
        let pieces = self.splitter.feed(bytes)?;
        self.codec.follow(&self.splitter);
        pieces.into_iter().try_for_each(|piece| self.take(piece, out))
    }

    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<RoundEnd, StreamError> {
        let rest = self.take_rest(out);
        let holds_end = self.codec.holds_end() && !self.rounds.is_failed;
        let end = rest.and(self.write(out, S::end_round));
        let tail = self.tail.take();
        self.rounds.size = RoundSize::default();
        self.rounds.is_first = false;
        let end = end?;
        if holds_end {
            self.rounds.held = Some(HeldEnd { has_client_calls: end.has_client_calls });
        }
        if let Some(tail) = tail {
            let may_be_sealed = self.is_carrying || !end.skill_calls.is_empty();
            if end.has_client_calls && may_be_sealed {
                self.tail = Some(tail);
            } else {
                out.extend(tail);
            }
        }
        Ok(end)
    }

    fn write_text(&mut self, id: &str, text: &str, out: &mut Vec<u8>) {
        if self.rounds.held.is_some() {
            let text = ClientText { id: id.to_owned(), text: text.to_owned() };
            self.write(out, |codec, rounds, out| codec.write_texts(&[text], rounds, out));
        }
    }

    fn finish(&mut self, results: &[ToolResult], out: &mut Vec<u8>) {
        out.extend(self.tail.take().unwrap_or_default());
        let Some(end) = self.rounds.held.take() else { return };
        let text = |result: &ToolResult| ClientText { id: result.id.clone(), text: result.to_text() };
        let texts: Vec<ClientText> = results.iter().map(text).collect();
        self.write(out, |codec, rounds, out| {
            if !texts.is_empty() {
                codec.write_texts(&texts, rounds, out);
            }
            codec.write_end(end, rounds, out);
        });
    }

    fn hold_client_calls(&mut self) {
        self.holds_calls = true;
    }

    fn put_seal(&mut self, seal: Seal) {
        self.seal = Some(seal);
        self.is_carrying = true;
    }

    fn finish_sealed(&mut self, seal: &Seal, call_id: &str, out: &mut Vec<u8>) {
        let mut events = Vec::new();
        self.finish(&[], &mut events);
        out.extend(self.codec.seal_call(events, seal, call_id));
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

//! The skeleton of every stream filter: rounds that are fed and ended, and the end that is held back between them.

use std::sync::Arc;

use super::{
    Begin, ContinuedResponse, HeldEnd, MakeSeal, RoundEnd, Rounds, Splitter, StreamCodec, StreamError,
    StreamFilter, pending_seal::PendingSeal,
};
use crate::{
    ErrorDetail, OfferedNames, ToolResult, Usage, codec::ClientText, continuation::Seal, sse::RoundSize,
};

/// The filter of one streamed conversation.
pub(crate) struct RoundsFilter<S: StreamCodec> {
    splitter: S::Splitter,
    codec: S,
    rounds: Rounds,
    /// True if the last bytes to the client may lack the blank line that ends an event.
    is_cut: bool,
    /// The client's calls wait until their round is over.
    holds_calls: bool,
    tail: Option<Tail<S>>,
    /// The provider's error in a later round.
    failure: Option<<S::Splitter as Splitter>::Piece>,
    /// True if the client got a call of the current round.
    has_shown_call: bool,
    seal: PendingSeal,
}

/// The client's events from the first call of the round on, while they wait.
struct Tail<S> {
    events: Vec<u8>,
    /// The state before them.
    before: S,
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
            failure: None,
            has_shown_call: false,
            seal: PendingSeal::default(),
        }
    }

    /// Begins the client's stream with the next round: the client got nothing of the rounds before.
    pub(crate) fn begin_again(&mut self) {
        self.splitter = S::Splitter::default();
        self.codec = S::default();
        self.codec.begin_late();
        self.rounds.size = RoundSize::default();
        self.rounds.held = None;
        self.is_cut = false;
        self.tail = None;
        self.has_shown_call = false;
        self.seal.repeat();
    }

    fn take(
        &mut self,
        piece: <S::Splitter as Splitter>::Piece,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamError> {
        if !self.rounds.is_first && S::is_failure(&piece) {
            self.failure = Some(piece);
            return Err(StreamError::ProviderFailed);
        }
        match S::begins(&piece) {
            Some(Begin::Call) if self.holds_calls && self.tail.is_none() => {
                self.tail = Some(Tail { events: Vec::new(), before: self.codec.clone() });
            }
            Some(Begin::Call) if self.tail.is_none() => self.has_shown_call = true,
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
        let to = tail.as_mut().map_or(out, |tail| &mut tail.events);
        let start = to.len();
        let written = write(&mut self.codec, &mut self.rounds, to);
        self.end_cut_event(start, to);
        self.tail = tail;
        written
    }

    /// Forgets the client's events that wait: none of them reached the client.
    fn drop_tail(&mut self) {
        if let Some(tail) = self.tail.take() {
            self.codec = tail.before;
        }
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
            let is_offered = || self.rounds.offered.any_is_in(&text);
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

    fn held_bytes(&self) -> usize {
        self.rounds.size.bytes() + self.tail.as_ref().map_or(0, |tail| tail.events.len())
    }

    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<RoundEnd, StreamError> {
        let rest = self.take_rest(out);
        if rest == Err(StreamError::ProviderFailed) {
            return Err(StreamError::ProviderFailed);
        }
        self.failure = None;
        let holds_end = self.codec.holds_end() && !self.rounds.is_failed;
        let end = rest.and(self.write(out, S::end_round));
        self.rounds.size = RoundSize::default();
        self.rounds.is_first = false;
        let end = end?;
        self.has_shown_call = false;
        let tail = self.tail.take();
        if holds_end {
            self.rounds.held = Some(HeldEnd { has_client_calls: end.has_client_calls });
        }
        if let Some(tail) = tail {
            let may_be_sealed = self.seal.is_carrying || !end.skill_calls.is_empty();
            if end.has_client_calls && may_be_sealed {
                self.tail = Some(tail);
            } else {
                out.extend(tail.events);
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
        out.extend(self.tail.take().into_iter().flat_map(|tail| tail.events));
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

    fn hide_reasoning(&mut self) {
        self.codec.hide_reasoning();
    }

    fn put_seal(&mut self, make: MakeSeal) {
        self.seal.put(make);
    }

    fn abandon_round(&mut self, out: &mut Vec<u8>) -> bool {
        if self.rounds.is_failed || self.has_shown_call {
            return false;
        }
        self.splitter = S::Splitter::default();
        self.rounds.size = RoundSize::default();
        self.drop_tail();
        let is_sealed = self.seal.is_written();
        self.seal.repeat();
        self.write(out, |codec, rounds, out| codec.abandon_round(is_sealed, rounds, out))
    }

    fn write_error(&mut self, error: &ErrorDetail<'_>, out: &mut Vec<u8>) {
        self.drop_tail();
        let failure = self.failure.take();
        self.write(out, |codec, rounds, out| match failure {
            Some(piece) => codec.take(piece, rounds, out).unwrap_or_default(),
            None => codec.write_error(error, out),
        });
    }

    fn take_continued(&mut self) -> Option<ContinuedResponse> {
        self.codec.take_continued()
    }

    fn finish_sealed(&mut self, seal: &Seal, call_id: &str, out: &mut Vec<u8>) {
        let mut events = Vec::new();
        self.finish(&[], &mut events);
        out.extend(self.codec.seal_call(events, seal, call_id));
    }
}

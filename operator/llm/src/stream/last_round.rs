//! A stream of which the client sees the last round alone, such as one JSON text.

use std::sync::Arc;

use super::{ContinuedResponse, MakeSeal, RoundEnd, RoundsFilter, StreamCodec, StreamError, StreamFilter};
use crate::{ErrorDetail, OfferedNames, ToolResult, continuation::Seal, sse::ROUND_LIMIT_BYTES};

/// Holds each round back until it is known whether another one follows.
pub(crate) struct LastRoundFilter<S: StreamCodec> {
    filter: RoundsFilter<S>,
    /// The client's part of the current round.
    held: Vec<u8>,
    /// True if the round is over and another one may follow.
    is_over: bool,
}

impl<S: StreamCodec> LastRoundFilter<S> {
    pub(crate) fn new(offered: Arc<OfferedNames>) -> Self {
        Self { filter: RoundsFilter::new(offered), held: Vec::new(), is_over: false }
    }
}

impl<S: StreamCodec> StreamFilter for LastRoundFilter<S> {
    fn feed(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(), StreamError> {
        if std::mem::take(&mut self.is_over) {
            self.held.clear();
            self.filter.begin_again();
        }
        self.filter.feed(bytes, &mut self.held)?;
        let is_within = self.held.len() <= ROUND_LIMIT_BYTES;
        is_within.then_some(()).ok_or(StreamError::LongRound { limit: ROUND_LIMIT_BYTES })
    }

    fn held_bytes(&self) -> usize {
        self.filter.held_bytes() + self.held.len()
    }

    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<RoundEnd, StreamError> {
        let end = self.filter.end_round(&mut self.held);
        self.is_over = end.as_ref().is_ok_and(|end| !end.skill_calls.is_empty() && !end.has_client_calls);
        if !self.is_over {
            out.append(&mut self.held);
        }
        end
    }

    fn hold_client_calls(&mut self) {
        self.filter.hold_client_calls();
    }

    fn hide_reasoning(&mut self) {
        self.filter.hide_reasoning();
    }

    fn put_seal(&mut self, make: MakeSeal) {
        self.filter.put_seal(make);
    }

    /// The client got nothing of the round.
    fn abandon_round(&mut self, _out: &mut Vec<u8>) -> bool {
        self.held.clear();
        self.is_over = true;
        true
    }

    /// The client got nothing of any round.
    fn write_error(&mut self, error: &ErrorDetail<'_>, out: &mut Vec<u8>) {
        self.filter.begin_again();
        self.filter.write_error(error, out);
    }

    fn take_continued(&mut self) -> Option<ContinuedResponse> {
        self.filter.take_continued()
    }

    fn finish_sealed(&mut self, seal: &Seal, call_id: &str, out: &mut Vec<u8>) {
        out.append(&mut self.held);
        self.filter.finish_sealed(seal, call_id, out);
    }

    fn write_text(&mut self, id: &str, text: &str, out: &mut Vec<u8>) {
        out.append(&mut self.held);
        self.filter.write_text(id, text, out);
    }

    fn finish(&mut self, results: &[ToolResult], out: &mut Vec<u8>) {
        out.append(&mut self.held);
        self.filter.finish(results, out);
    }
}

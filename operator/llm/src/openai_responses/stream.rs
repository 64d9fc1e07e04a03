//! Splits a stream of the Responses API between client and gateway: skill calls and the end of their round are held
//! back.
//!
//! Until the first skill call the client gets the provider's own bytes. Only the events that begin a response wait
//! for its first item, because the client may continue from one response only. After a skill call the sequence
//! numbers and output indexes differ from the provider's, and every event is rewritten with the client's.
//! `accumulator` knows the items of the current response, `client_stream` the client's view over all rounds, `event`
//! reads an event.

mod accumulator;
mod client_stream;
mod event;
mod streamed_item;

use std::mem;

use serde_json::Value;

use super::item;
use crate::{
    ErrorDetail, RoundEnd, StreamError,
    codec::{ClientText, join_texts},
    continuation::{Seal, openai_responses::sealed_item},
    sse::EventSplitter,
    stream::{Begin, ContinuedResponse, HeldEnd, Rounds, SseEvent, StreamCodec},
};
use accumulator::{ItemRound, WaitingEvent};
use client_stream::ClientStream;
use event::{EventKind, ResponseEvent};

/// The events of a response.
#[derive(Clone, Default)]
pub(crate) struct ResponseEvents {
    round: ItemRound,
    client: ClientStream,
    /// The number of seals that the client got.
    seals: u32,
}

impl StreamCodec for ResponseEvents {
    type Splitter = EventSplitter;

    fn begins(event: &SseEvent) -> Option<Begin> {
        let data = event.data.as_ref().filter(|data| data["type"] == "response.output_item.added")?;
        Some(if item::read_call(&data["item"]).is_some() { Begin::Call } else { Begin::Answer })
    }

    fn is_failure(event: &SseEvent) -> bool {
        let kind =
            event.data.as_ref().and_then(|data| data["type"].as_str().or_else(|| event.raw.event_type()));
        matches!(kind, Some("error" | "response.failed"))
    }

    fn take(&mut self, event: SseEvent, rounds: &mut Rounds, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let event = match ResponseEvent::read(event) {
            Ok(event) => event,
            Err(raw) if self.round.is_waiting() => {
                self.round.wait(WaitingEvent::Unread(raw));
                return Ok(());
            }
            Err(raw) => return self.client.pass_unread(&raw, out),
        };
        if self.round.end.is_some() {
            // Nothing may follow an end. The client gets it where nothing is changed, and is spared it elsewhere.
            if self.client.is_exact() {
                self.client.pass(event, None, out);
            }
            return Ok(());
        }
        rounds.held = None;
        self.client.forget_held();
        match event.kind() {
            EventKind::Begin => self.begin(event, out),
            EventKind::ItemAdded | EventKind::ItemDone | EventKind::Other => {
                self.of_item(event, rounds, out)?;
            }
            EventKind::End => self.end(event, rounds, out),
            EventKind::Failed => {
                rounds.is_failed = true;
                self.end(event, rounds, out);
            }
            EventKind::Error => {
                rounds.is_failed = true;
                self.round.release_reasoning(&mut self.client, out);
                self.client.pass(event, None, out);
            }
        }
        Ok(())
    }

    fn begin_late(&mut self) {
        self.client.begin_next_round();
    }

    fn holds_end(&self) -> bool {
        self.client.holds_end() || self.round.has_held_items()
    }

    fn end_round(&mut self, rounds: &mut Rounds, out: &mut Vec<u8>) -> Result<RoundEnd, StreamError> {
        let mut round = mem::take(&mut self.round);
        self.client.begin_next_round();
        if let Some(end) = round.end.take() {
            return Ok(end);
        }
        // Without its end, further calls of the response are unknown.
        if round.has_held_items() && !rounds.is_failed {
            return Err(StreamError::Truncated);
        }
        self.client.flush_beginning(out);
        let response = mem::take(&mut round.response);
        let end = round.close(response, rounds, &mut self.client, out);
        // A prompt needs an end to stand before.
        if end.awaiting_confirmation.is_empty() { Ok(end) } else { Err(StreamError::Truncated) }
    }

    fn abandon_round(&mut self, is_sealed: bool, _rounds: &Rounds, out: &mut Vec<u8>) -> bool {
        self.client.abandon_round();
        mem::take(&mut self.round).abandon(is_sealed, &mut self.client, out)
    }

    fn take_continued(&mut self) -> Option<ContinuedResponse> {
        self.client.take_continued()
    }

    fn hide_reasoning(&mut self) {
        self.client.hide_reasoning();
    }

    fn write_error(&mut self, error: &ErrorDetail<'_>, out: &mut Vec<u8>) {
        self.client.write_error(error, out);
    }

    fn write_texts(&mut self, texts: &[ClientText], _rounds: &Rounds, out: &mut Vec<u8>) {
        let id = texts.first().map_or("", |text| &*text.id);
        let text = join_texts(texts);
        self.client.write_message(&item::message(id, &text), &text, out);
    }

    fn write_seal(&mut self, seal: &Seal, out: &mut Vec<u8>) {
        let is_stored = self.round.response["store"] != false;
        self.client.write_item(sealed_item(seal, is_stored, self.seals), &[], out);
        self.seals += 1;
    }

    fn write_end(&mut self, _end: HeldEnd, rounds: &Rounds, out: &mut Vec<u8>) {
        self.client.finish(&rounds.total, out);
    }
}

impl ResponseEvents {
    fn begin(&mut self, event: ResponseEvent, out: &mut Vec<u8>) {
        let is_new = self.round.response.is_null();
        self.round.response = event.data.get("response").cloned().unwrap_or_default();
        self.client.begin(event, is_new, out);
    }

    fn of_item(
        &mut self,
        event: ResponseEvent,
        rounds: &mut Rounds,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamError> {
        let is_new = match event.kind() {
            EventKind::ItemAdded => true,
            // Some providers leave the beginning out.
            EventKind::ItemDone => self.round.find(&event).is_none(),
            _ => false,
        };
        if is_new {
            let value = event.item().cloned().unwrap_or_default();
            self.round.add(value, event.output_index(), &rounds.offered, &mut self.client, out);
        }
        let place = if is_new { self.round.last() } else { self.round.find(&event) };
        let Some(place) = place else {
            if self.round.is_waiting() {
                self.round.wait(WaitingEvent::OfNone(event));
            } else {
                self.client.pass(event, None, out);
            }
            return Ok(());
        };
        self.round.take(place, event, rounds, &mut self.client, out)
    }

    fn end(&mut self, mut event: ResponseEvent, rounds: &mut Rounds, out: &mut Vec<u8>) {
        let response = event.data.remove("response").unwrap_or_default();
        let end = self.round.close(response, rounds, &mut self.client, out);
        self.client.end_round(event, &end, &rounds.total, out);
        self.round.end = Some(end);
    }
}

/// The fields of a response.
fn fields(response: Value) -> serde_json::Map<String, Value> {
    match response {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            serde_json::Map::new()
        }
    }
}

#[cfg(test)]
mod tests;

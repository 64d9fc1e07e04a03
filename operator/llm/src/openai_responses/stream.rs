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

use std::{mem, sync::Arc};

use serde_json::Value;

use crate::{
    OfferedNames, RoundEnd, StreamError, StreamFilter, ToolResult,
    sse::{EventSplitter, RawEvent},
};
use accumulator::ResponseAccumulator;
use client_stream::ClientStream;
use event::{Event, Kind};

pub(super) struct ResponsesFilter {
    offered: Arc<OfferedNames>,
    splitter: EventSplitter,
    round: ResponseAccumulator,
    client: ClientStream,
}

impl ResponsesFilter {
    pub(super) fn new(offered: Arc<OfferedNames>) -> Self {
        let splitter = EventSplitter::default();
        Self { offered, splitter, round: ResponseAccumulator::default(), client: ClientStream::default() }
    }

    fn take(&mut self, raw: RawEvent, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let event = match Event::read(raw) {
            Ok(event) => event,
            Err(raw) => return self.client.pass_unread(&raw, out),
        };
        if self.round.end.is_some() {
            // Nothing may follow an end. The client gets it where nothing is changed, and is spared it elsewhere.
            if self.client.is_exact() {
                self.client.pass(event, None, out);
            }
            return Ok(());
        }
        self.client.forget_held();
        match event.kind() {
            Kind::Begin => self.begin(event, out),
            Kind::ItemAdded | Kind::ItemDone | Kind::Other => self.of_item(event, out)?,
            Kind::End => self.end(event, out),
            Kind::Failed => {
                self.round.is_failed = true;
                self.end(event, out);
            }
            Kind::Error => {
                self.round.is_failed = true;
                self.client.pass(event, None, out);
            }
        }
        Ok(())
    }

    fn begin(&mut self, event: Event, out: &mut Vec<u8>) {
        let is_new = self.round.response.is_null();
        self.round.response = event.data.get("response").cloned().unwrap_or_default();
        self.client.begin(event, is_new, out);
    }

    fn of_item(&mut self, event: Event, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let is_new = match event.kind() {
            Kind::ItemAdded => true,
            // Some providers leave the beginning out.
            Kind::ItemDone => self.round.find(&event).is_none(),
            Kind::Begin | Kind::End | Kind::Failed | Kind::Error | Kind::Other => false,
        };
        if is_new {
            let value = event.item().cloned().unwrap_or_default();
            self.round.add(value, event.output_index(), &self.offered, &mut self.client);
        }
        let place = if is_new { self.round.last() } else { self.round.find(&event) };
        let Some(place) = place else {
            self.client.pass(event, None, out);
            return Ok(());
        };
        self.round.take(place, event, &self.offered, &mut self.client, out)
    }

    fn end(&mut self, mut event: Event, out: &mut Vec<u8>) {
        let response = event.data.remove("response").unwrap_or_default();
        let end = self.round.close(response, &self.offered, &mut self.client, out);
        self.client.end_round(event, &end, out);
        self.round.end = Some(end);
    }
}

impl StreamFilter for ResponsesFilter {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), StreamError> {
        for raw in self.splitter.feed(bytes)? {
            self.take(raw, out)?;
        }
        Ok(())
    }

    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<RoundEnd, StreamError> {
        if let Some(mut rest) = self.splitter.rest() {
            if !self.client.is_exact() {
                rest.0.extend_from_slice(b"\n\n");
            }
            self.take(rest, out)?;
        }
        let mut round = mem::take(&mut self.round);
        self.client.begin_next_round();
        if let Some(end) = round.end.take() {
            return Ok(end);
        }
        // Without its end, further calls of the response are unknown.
        if round.has_held_items() && !round.is_failed {
            return Err(StreamError::Truncated);
        }
        self.client.flush_beginning(out);
        let response = mem::take(&mut round.response);
        let end = round.close(response, &self.offered, &mut self.client, out);
        // A prompt needs an end to stand before.
        if end.awaiting_confirmation.is_empty() { Ok(end) } else { Err(StreamError::Truncated) }
    }

    fn write_text(&mut self, id: &str, text: &str, out: &mut Vec<u8>) {
        self.client.write_text(&format!("msg_{id}"), text, out);
    }

    fn finish(&mut self, results: &[ToolResult], out: &mut Vec<u8>) {
        self.client.finish(results, out);
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

//! Between Anthropic's events and the client.
//!
//! The client's calls pass at once, before it is known how the round ends. Where ours are beside them, the results
//! therefore stand in text blocks *after* its `tool_use` blocks, unlike in a whole response, and so do prompts about
//! calls that await confirmation. The SDKs put a message together by index and take any order of blocks. The
//! provider takes no text after a call back: `sent` puts it first when the client sends the turn.
//!
//! A round that calls us and breaks off before the message's end is truncated, also where the call itself is whole: no
//! skill runs for half a response.

mod accumulator;

use std::sync::Arc;

use serde_json::{Value, json};

use super::response::{end_turn, placed_calls};
use crate::{
    Arguments, OfferedNames, RoundEnd, StreamError, StreamFilter, ToolResult, Usage,
    sse::{self, EventSplitter, RawEvent},
};
use accumulator::{AccumulatedResponse, ResponseAccumulator, Shown};

pub(super) struct AnthropicFilter {
    offered: Arc<OfferedNames>,
    splitter: EventSplitter,
    round: ResponseAccumulator,
    /// The end of the round before, until a next one begins.
    held: Option<HeldEnd>,
    /// True if the client has its `message_start`.
    is_begun: bool,
    /// The index of the next block that the client sees.
    next_index: u64,
    /// Tokens of the rounds that are over. None in the first round.
    before: Option<Usage>,
    /// The provider sent an error: nothing follows it.
    is_failed: bool,
    /// True if the last bytes to the client may lack the blank line that ends an event.
    is_cut: bool,
}

/// The end of a round, held back until the next round begins or the stream ends.
struct HeldEnd {
    delta: Option<Value>,
    has_client_calls: bool,
}

impl AnthropicFilter {
    pub(super) fn new(offered: Arc<OfferedNames>) -> Self {
        Self {
            offered,
            splitter: EventSplitter::default(),
            round: ResponseAccumulator::default(),
            held: None,
            is_begun: false,
            next_index: 0,
            before: None,
            is_failed: false,
            is_cut: false,
        }
    }

    fn take(&mut self, event: &RawEvent, out: &mut Vec<u8>) -> Result<(), StreamError> {
        if self.is_failed {
            return Ok(());
        }
        let data = event.data().and_then(|data| serde_json::from_str::<Value>(&data).ok());
        match data {
            Some(data) => {
                self.round.size.add(event.0.len())?;
                self.take_data(event, data, out);
            }
            None => self.pass(event, out),
        }
        Ok(())
    }

    fn take_data(&mut self, event: &RawEvent, data: Value, out: &mut Vec<u8>) {
        match data["type"].as_str() {
            Some("message_start") => self.message_start(event, &data, out),
            Some("content_block_start") => self.block_start(event, data, out),
            Some("content_block_delta" | "content_block_stop") => self.continue_block(event, data, out),
            Some("message_delta") => self.message_delta(event, data, out),
            Some("message_stop") => {
                self.round.is_ended = true;
                if !self.round.is_end_held() {
                    self.pass(event, out);
                }
            }
            Some("error") => {
                self.held = None;
                self.is_failed = true;
                self.pass(event, out);
            }
            _ => self.pass(event, out),
        }
    }

    fn message_start(&mut self, event: &RawEvent, data: &Value, out: &mut Vec<u8>) {
        self.held = None;
        self.round.begin(&data["message"]);
        if !self.is_begun {
            self.is_begun = true;
            self.pass(event, out);
        }
    }

    fn block_start(&mut self, event: &RawEvent, data: Value, out: &mut Vec<u8>) {
        let Some(index) = data["index"].as_u64() else { return self.pass(event, out) };
        self.held = None;
        let block = &data["content_block"];
        let tool = block["name"].as_str().filter(|_| block["type"] == "tool_use");
        let is_ours = tool.is_some_and(|name| self.offered.contains(name));
        self.round.has_awaiting |= tool.is_some_and(|name| self.offered.needs_confirmation(name));
        // Before any call of ours the provider's own numbers stand, whatever they are.
        let is_untouched = self.before.is_none() && !self.round.has_ours;
        let next = if is_untouched { index } else { self.next_index };
        let shown = if is_ours { Shown::Nothing } else { Shown::As(next) };
        self.round.begin_block(index, block, shown);
        if let Shown::As(shown) = shown {
            self.next_index = shown.saturating_add(1);
            self.show(event, data, shown, out);
        }
    }

    fn continue_block(&mut self, event: &RawEvent, data: Value, out: &mut Vec<u8>) {
        let index = data["index"].as_u64();
        let shown = index.and_then(|index| Some((index, self.round.shown(index)?)));
        let Some((index, shown)) = shown else { return self.pass(event, out) };
        if data["type"] == "content_block_delta" {
            self.round.add_delta(index, &data["delta"]);
        }
        match shown {
            Shown::Nothing => {}
            Shown::As(shown) => self.show(event, data, shown, out),
        }
    }

    fn message_delta(&mut self, event: &RawEvent, mut data: Value, out: &mut Vec<u8>) {
        self.round.add_message_delta(&data);
        if self.round.is_end_held() {
            self.round.hold_delta(&data);
        } else if let Some(before) = self.before {
            put_total(&mut data, before.plus(self.round.usage()));
            self.write(&data, out);
        } else {
            self.pass(event, out);
        }
    }

    /// An event of a block that the client sees under the index `shown`.
    fn show(&mut self, event: &RawEvent, mut data: Value, shown: u64, out: &mut Vec<u8>) {
        match data.get_mut("index") {
            Some(index) if *index != shown => {
                *index = shown.into();
                self.write(&data, out);
            }
            Some(_) | None => self.pass(event, out),
        }
    }

    fn pass(&mut self, event: &RawEvent, out: &mut Vec<u8>) {
        self.end_cut_event(out);
        out.extend_from_slice(&event.0);
    }

    fn write(&mut self, data: &Value, out: &mut Vec<u8>) {
        self.end_cut_event(out);
        sse::write(data["type"].as_str(), &data.to_string(), out);
    }

    /// A text block of its own.
    fn write_text(&mut self, text: &str, out: &mut Vec<u8>) {
        let index = self.next_index;
        self.next_index = index.saturating_add(1);
        let block = json!({"type": "text", "text": ""});
        let delta = json!({"type": "text_delta", "text": text});
        self.write(&json!({"type": "content_block_start", "index": index, "content_block": block}), out);
        self.write(&json!({"type": "content_block_delta", "index": index, "delta": delta}), out);
        self.write(&json!({"type": "content_block_stop", "index": index}), out);
    }

    fn end_cut_event(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_cut) {
            out.extend_from_slice(b"\n\n");
        }
    }

    /// Takes an event without its blank line. Half an event with data is dropped: a client would not read it, and it
    /// may be a skill call.
    fn take_rest(&mut self, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let Some(rest) = self.splitter.rest() else { return Ok(()) };
        let data = rest.data();
        let is_half = data.is_some_and(|data| {
            data.trim_start().starts_with('{') && serde_json::from_str::<Value>(&data).is_err()
        });
        if !is_half {
            let length = out.len();
            self.take(&rest, out)?;
            self.is_cut = out.len() > length;
        }
        Ok(())
    }
}

impl StreamFilter for AnthropicFilter {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), StreamError> {
        for event in self.splitter.feed(bytes)? {
            self.take(&event, out)?;
        }
        Ok(())
    }

    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<RoundEnd, StreamError> {
        self.take_rest(out)?;
        let mut round = std::mem::take(&mut self.round);
        let is_end_held = round.is_end_held() && !self.is_failed;
        if is_end_held && !round.is_ended {
            return Err(StreamError::Truncated);
        }
        let delta = round.held_delta.take();
        self.before = Some(self.before.unwrap_or_default().plus(round.usage()));
        let AccumulatedResponse { response, mut broken } = round.into_response();
        let mut calls = Vec::new();
        for placed in placed_calls(&response) {
            let mut call = placed.call;
            if let Some(text) = broken.remove(&placed.place) {
                call.arguments = Arguments::NotJson(text);
            }
            calls.push(call);
        }
        let end = RoundEnd::of(response, calls, &self.offered, self.is_failed);
        if is_end_held {
            self.held = Some(HeldEnd { delta, has_client_calls: end.has_client_calls });
        }
        Ok(end)
    }

    fn write_text(&mut self, _id: &str, text: &str, out: &mut Vec<u8>) {
        if self.held.is_some() {
            self.write_text(text, out);
        }
    }

    fn finish(&mut self, results: &[ToolResult], out: &mut Vec<u8>) {
        let Some(HeldEnd { delta, has_client_calls }) = self.held.take() else { return };
        results.iter().for_each(|result| self.write_text(&result.to_text(), out));
        // A provider that sends no message_delta counts nothing and gives no reason.
        let mut delta = delta.unwrap_or_else(|| {
            let delta = json!({"stop_reason": "tool_use", "stop_sequence": null});
            json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 0}})
        });
        if let Some(fields) =
            delta.get_mut("delta").and_then(Value::as_object_mut).filter(|_| !has_client_calls)
        {
            end_turn(fields);
        }
        put_total(&mut delta, self.before.unwrap_or_default());
        self.write(&delta, out);
        self.write(&json!({"type": "message_stop"}), out);
    }
}

/// Puts the sum over all rounds into a `message_delta` that counts. Input tokens are added where it has none: what
/// `message_start` said was of the first round.
fn put_total(event: &mut Value, total: Usage) {
    if let Some(usage) = event.get_mut("usage").and_then(Value::as_object_mut) {
        usage.insert("input_tokens".to_owned(), total.input.into());
        usage.insert("output_tokens".to_owned(), total.output.into());
    }
}

#[cfg(test)]
mod tests;

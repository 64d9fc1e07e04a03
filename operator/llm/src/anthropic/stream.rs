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

use serde_json::{Value, json};

use super::{Anthropic, end_turn};
use crate::{
    DialectName, ErrorDetail, RoundEnd, StreamError,
    codec::{ClientText, Codec as _},
    continuation::{SEAL_THOUGHT, Seal},
    sse::{self, EventSplitter, RawEvent},
    stream::{Begin, HeldEnd, Rounds, SseEvent, StreamCodec},
};
use accumulator::{MessageRound, Shown};

/// The events of a message.
#[derive(Clone, Default)]
pub(crate) struct MessageEvents {
    round: MessageRound,
    /// The `message_delta` that is held back.
    end: Option<Value>,
    /// True if the client has its `message_start`.
    is_begun: bool,
    /// The index of the next block that the client sees.
    next_index: u64,
}

impl StreamCodec for MessageEvents {
    type Splitter = EventSplitter;

    fn begins(event: &SseEvent) -> Option<Begin> {
        let data = event.data.as_ref().filter(|data| data["type"] == "content_block_start")?;
        let is_call = Anthropic::read_call(&data["content_block"]).is_some();
        Some(if is_call { Begin::Call } else { Begin::Answer })
    }

    fn is_failure(event: &SseEvent) -> bool {
        event.data.as_ref().is_some_and(|data| data["type"] == "error")
    }

    fn take(&mut self, event: SseEvent, rounds: &mut Rounds, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let SseEvent { raw, data } = event;
        match data {
            _ if rounds.is_failed => {}
            Some(data) => {
                rounds.keep(raw.0.len())?;
                self.take_data(&raw, data, rounds, out);
            }
            None => pass(&raw, out),
        }
        Ok(())
    }

    fn holds_end(&self) -> bool {
        self.round.is_end_held()
    }

    fn end_round(&mut self, rounds: &mut Rounds, _out: &mut Vec<u8>) -> Result<RoundEnd, StreamError> {
        let mut round = std::mem::take(&mut self.round);
        if round.is_end_held() && !rounds.is_failed {
            if !round.is_ended {
                return Err(StreamError::Truncated);
            }
            self.end = round.held_delta.take();
        }
        Ok(rounds.end::<Anthropic>(round.into_whole()))
    }

    /// Ends the blocks that are open. Without a seal, blocks other than texts would stay in the client's history, where
    /// the provider does not take a part of one.
    fn abandon_round(&mut self, is_sealed: bool, _rounds: &Rounds, out: &mut Vec<u8>) -> bool {
        let round = std::mem::take(&mut self.round);
        for (index, kind, is_open) in round.shown_blocks() {
            let may_end = kind == "text" || (is_sealed && (kind == "thinking" || !is_open));
            if !may_end {
                return false;
            }
            if is_open {
                write(&json!({"type": "content_block_stop", "index": index}), out);
            }
        }
        true
    }

    fn write_error(&mut self, error: &ErrorDetail<'_>, out: &mut Vec<u8>) {
        write(&DialectName::Anthropic.error_event(error).1, out);
    }

    /// Text blocks of their own.
    fn write_texts(&mut self, texts: &[ClientText], _rounds: &Rounds, out: &mut Vec<u8>) {
        for ClientText { id: _, text } in texts {
            let block = json!({"type": "text", "text": ""});
            self.write_block(&block, &[json!({"type": "text_delta", "text": text})], out);
        }
    }

    fn write_seal(&mut self, seal: &Seal, out: &mut Vec<u8>) {
        let block = json!({"type": "thinking", "thinking": "", "signature": ""});
        let thought = json!({"type": "thinking_delta", "thinking": SEAL_THOUGHT});
        let signature = json!({"type": "signature_delta", "signature": seal.as_str()});
        self.write_block(&block, &[thought, signature], out);
    }

    fn write_end(&mut self, end: HeldEnd, rounds: &Rounds, out: &mut Vec<u8>) {
        // A provider that sends no message_delta counts nothing and gives no reason.
        let mut delta = self.end.take().unwrap_or_else(|| {
            let delta = json!({"stop_reason": "tool_use", "stop_sequence": null});
            json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 0}})
        });
        let fields = delta.get_mut("delta").and_then(Value::as_object_mut);
        if let Some(fields) = fields.filter(|_| !end.has_client_calls) {
            end_turn(fields);
        }
        rounds.total.write(delta.get_mut("usage"));
        write(&delta, out);
        write(&json!({"type": "message_stop"}), out);
    }
}

impl MessageEvents {
    /// Writes a block of these deltas.
    fn write_block(&mut self, block: &Value, deltas: &[Value], out: &mut Vec<u8>) {
        let index = self.next_index;
        self.next_index = index.saturating_add(1);
        write(&json!({"type": "content_block_start", "index": index, "content_block": block}), out);
        for delta in deltas {
            write(&json!({"type": "content_block_delta", "index": index, "delta": delta}), out);
        }
        write(&json!({"type": "content_block_stop", "index": index}), out);
    }

    fn take_data(&mut self, event: &RawEvent, data: Value, rounds: &mut Rounds, out: &mut Vec<u8>) {
        match data["type"].as_str() {
            Some("message_start") => {
                rounds.held = None;
                self.round.begin(&data["message"]);
                if !self.is_begun {
                    self.is_begun = true;
                    pass(event, out);
                }
            }
            Some("content_block_start") => self.block_start(event, data, rounds, out),
            Some("content_block_delta" | "content_block_stop") => self.continue_block(event, data, out),
            Some("message_delta") => self.message_delta(event, data, rounds, out),
            Some("message_stop") => {
                self.round.is_ended = true;
                if !self.round.is_end_held() {
                    pass(event, out);
                }
            }
            Some("error") => {
                rounds.held = None;
                rounds.is_failed = true;
                pass(event, out);
            }
            _ => pass(event, out),
        }
    }

    fn block_start(&mut self, event: &RawEvent, data: Value, rounds: &mut Rounds, out: &mut Vec<u8>) {
        let Some(index) = data["index"].as_u64() else { return pass(event, out) };
        rounds.held = None;
        let block = &data["content_block"];
        let name = Anthropic::read_call(block).map_or("", |call| call.name);
        let is_ours = rounds.offered.contains(name);
        self.round.has_awaiting |= rounds.offered.needs_confirmation(name);
        // Before any call of ours the provider's own numbers stand, whatever they are.
        let is_untouched = rounds.is_first && !self.round.has_ours;
        let next = if is_untouched { index } else { self.next_index };
        let shown = if is_ours { Shown::Nothing } else { Shown::As(next) };
        self.round.begin_block(index, block, shown);
        if let Shown::As(shown) = shown {
            self.next_index = shown.saturating_add(1);
            show(event, data, shown, out);
        }
    }

    fn continue_block(&mut self, event: &RawEvent, data: Value, out: &mut Vec<u8>) {
        let index = data["index"].as_u64();
        let shown = index.and_then(|index| Some((index, self.round.shown(index)?)));
        let Some((index, shown)) = shown else { return pass(event, out) };
        if data["type"] == "content_block_delta" {
            self.round.add_delta(index, &data["delta"]);
        } else {
            self.round.end_block(index);
        }
        match shown {
            Shown::Nothing => {}
            Shown::As(shown) => show(event, data, shown, out),
        }
    }

    fn message_delta(&mut self, event: &RawEvent, mut data: Value, rounds: &Rounds, out: &mut Vec<u8>) {
        self.round.add_message_delta(&data);
        if self.round.is_end_held() {
            self.round.hold_delta(&data);
        } else if rounds.is_first {
            pass(event, out);
        } else {
            // `message_start` counted the input of the first round alone.
            rounds.total_with(&self.round.usage()).write(data.get_mut("usage"));
            write(&data, out);
        }
    }
}

/// Writes an event of a block that the client sees under the index `shown`.
fn show(event: &RawEvent, mut data: Value, shown: u64, out: &mut Vec<u8>) {
    match data.get_mut("index") {
        Some(index) if *index != shown => {
            *index = shown.into();
            write(&data, out);
        }
        Some(_) | None => pass(event, out),
    }
}

fn pass(event: &RawEvent, out: &mut Vec<u8>) {
    out.extend_from_slice(&event.0);
}

fn write(data: &Value, out: &mut Vec<u8>) {
    sse::write(data["type"].as_str(), &data.to_string(), out);
}

#[cfg(test)]
mod tests;

//! A streamed chat conversation: passes chunks, holds back the end, and continues the first round with later ones.
//!
//! `accumulator` rebuilds the response and decides the owner of each call; `edit` removes skill calls from a chunk;
//! this file decides when a chunk goes out. A chunk without a change goes out in its own bytes.

mod accumulator;
mod edit;
mod merge;

use serde_json::{Map, Value, json};

use self::accumulator::{CallSlots, ChatRound};
use super::OpenAiChat;
use crate::{
    DialectName, ErrorDetail, RoundEnd, StreamError, Usage,
    codec::{ClientText, join_texts},
    continuation::{
        Seal,
        openai_chat::{FIELD, FIELDS},
    },
    sse::{self, EventSplitter, RawEvent},
    stream::{Begin, HeldEnd, Rounds, SseEvent, StreamCodec},
};

/// The chunks of a completion.
#[derive(Clone, Default)]
pub(crate) struct ChatChunks {
    round: ChatRound,
    /// Chunks that cannot go out before a call's name is known.
    waiting: Vec<Chunk>,
    /// The chunks of an end that is held back.
    end: Vec<Value>,
    /// True if `[DONE]` is held back too.
    is_done: bool,
    /// `id` and `created` of the first round's chunks, which all others get.
    identity: Option<(Value, Value)>,
    /// Fields of the last round's chunks.
    head: Map<String, Value>,
    sent: SentFields,
}

/// Fields that the client got in any round.
#[derive(Clone, Default)]
struct SentFields {
    role: bool,
    text: bool,
    /// Text of the current round.
    round_text: bool,
}

#[derive(Clone)]
struct Chunk {
    raw: RawEvent,
    value: Value,
    slots: CallSlots,
}

impl StreamCodec for ChatChunks {
    type Splitter = EventSplitter;

    fn begins(event: &SseEvent) -> Option<Begin> {
        let delta = event.data.as_ref()?.pointer("/choices/0/delta")?;
        if ["tool_calls", "function_call"].iter().any(|field| !delta[*field].is_null()) {
            return Some(Begin::Call);
        }
        delta["content"].as_str().is_some_and(|text| !text.is_empty()).then_some(Begin::Answer)
    }

    fn is_failure(event: &SseEvent) -> bool {
        event.data.as_ref().is_some_and(|data| data["error"].is_object() || data["error"].is_string())
    }

    fn take(&mut self, event: SseEvent, rounds: &mut Rounds, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let SseEvent { raw, data } = event;
        match data {
            Some(value) if value.get("choices").is_some_and(Value::is_array) => {
                rounds.keep(raw.0.len())?;
                self.begin_round(rounds);
                let slots = self.round.add(&value, &rounds.offered);
                self.waiting.push(Chunk { raw, value, slots });
                if !self.round.is_undecided() {
                    self.release(rounds, out);
                }
            }
            None if raw.data().is_some_and(|data| data.trim() == "[DONE]") => {
                self.round.finish(&rounds.offered);
                self.release(rounds, out);
                if self.round.is_end_held() || rounds.held.is_some() {
                    self.is_done = true;
                } else {
                    out.extend_from_slice(&raw.0);
                }
            }
            // Comments, errors and what else a provider sends.
            Some(_) | None => out.extend_from_slice(&raw.0),
        }
        Ok(())
    }

    fn holds_end(&self) -> bool {
        self.round.is_end_held()
    }

    fn end_round(&mut self, rounds: &mut Rounds, _out: &mut Vec<u8>) -> Result<RoundEnd, StreamError> {
        let round = std::mem::take(&mut self.round);
        self.waiting.clear();
        if round.is_undecided() || (round.is_end_held() && !round.is_finished()) {
            return Err(StreamError::Truncated);
        }
        let end = rounds.end::<OpenAiChat>(round.response().into());
        if !round.head.is_empty() {
            self.head = round.head;
        }
        self.sent.round_text = false;
        Ok(end)
    }

    fn abandon_round(&mut self, _is_sealed: bool, rounds: &Rounds, _out: &mut Vec<u8>) -> bool {
        self.round = ChatRound::default();
        self.waiting.clear();
        // Before the round's first chunk the end is still that of the round before.
        if rounds.held.is_none() {
            self.end.clear();
            self.is_done = false;
        }
        self.sent.round_text = false;
        true
    }

    fn write_error(&mut self, error: &ErrorDetail<'_>, out: &mut Vec<u8>) {
        let (kind, data) = DialectName::OpenAiChat.error_event(error);
        sse::write(kind, &data.to_string(), out);
    }

    fn write_texts(&mut self, texts: &[ClientText], _rounds: &Rounds, out: &mut Vec<u8>) {
        let separator = if self.sent.text { "\n\n" } else { "" };
        let mut delta = json!({"content": format!("{separator}{}", join_texts(texts))});
        if !self.sent.role {
            delta["role"] = json!("assistant");
        }
        self.sent = SentFields { role: true, text: true, round_text: true };
        sse::write(None, &self.chunk(&delta, &Value::Null).to_string(), out);
    }

    fn write_seal(&mut self, seal: &Seal, out: &mut Vec<u8>) {
        let delta = json!({FIELDS: {FIELD: seal.as_str()}});
        sse::write(None, &self.chunk(&delta, &Value::Null).to_string(), out);
    }

    fn write_end(&mut self, end: HeldEnd, rounds: &Rounds, out: &mut Vec<u8>) {
        let mut chunks = std::mem::take(&mut self.end);
        if !chunks.iter().any(edit::is_finish) {
            chunks.insert(0, self.chunk(&json!({}), &json!("tool_calls")));
        }
        for mut chunk in chunks {
            self.put_identity(&mut chunk);
            rounds.total.write(chunk.get_mut("usage"));
            if !end.has_client_calls {
                edit::end_turn(&mut chunk);
            }
            sse::write(None, &chunk.to_string(), out);
        }
        if self.is_done {
            sse::write(None, "[DONE]", out);
        }
    }
}

impl ChatChunks {
    /// Drops the end of the round before: another one has begun.
    fn begin_round(&mut self, rounds: &mut Rounds) {
        if rounds.held.take().is_some() {
            self.end.clear();
            self.is_done = false;
        }
    }

    fn release(&mut self, rounds: &Rounds, out: &mut Vec<u8>) {
        for chunk in std::mem::take(&mut self.waiting) {
            self.forward(chunk, rounds, out);
        }
    }

    /// Writes what the client may see of a chunk, and holds back what may be the end of the stream.
    fn forward(&mut self, chunk: Chunk, rounds: &Rounds, out: &mut Vec<u8>) {
        let Chunk { raw, mut value, slots } = chunk;
        if self.round.is_end_held() && edit::is_usage_only(&value) {
            self.end.push(value);
            return;
        }
        self.remember_identity(&value);
        let mut is_changed = !rounds.is_first && self.continue_first_round(&mut value, rounds);
        let edited = edit::remove_skill_calls(&mut value, &slots, &mut self.round);
        is_changed |= edited.is_changed;
        self.end.extend(edited.end);
        if is_changed && edit::is_empty(&value) {
            return;
        }
        self.sent.role |= edit::has_text(&value, "role");
        self.sent.round_text |= edit::has_text(&value, "content");
        self.sent.text |= self.sent.round_text;
        if is_changed {
            sse::write(raw.event_type(), &value.to_string(), out);
        } else {
            out.extend_from_slice(&raw.0);
        }
    }

    fn remember_identity(&mut self, value: &Value) {
        let id = value.get("id").filter(|id| id.as_str().is_some_and(|id| !id.is_empty()));
        if let (None, Some(id)) = (&self.identity, id) {
            self.identity = Some((id.clone(), value.get("created").cloned().unwrap_or_default()));
        }
    }

    /// Makes a later round's chunk part of the first round's stream. Returns true if that changed it.
    fn continue_first_round(&self, value: &mut Value, rounds: &Rounds) -> bool {
        let before = value.clone();
        self.put_identity(value);
        let total = rounds.total_with(&Usage::of(value.get("usage")));
        total.write(value.get_mut("usage"));
        if self.sent.role {
            edit::remove_role(value);
        }
        if self.sent.text && !self.sent.round_text {
            edit::separate_text(value);
        }
        *value != before
    }

    fn put_identity(&self, value: &mut Value) {
        let Some((id, created)) = &self.identity else { return };
        for (field, first) in [("id", id), ("created", created)] {
            if let Some(own) = value.get_mut(field) {
                own.clone_from(first);
            }
        }
    }

    fn chunk(&self, delta: &Value, finish_reason: &Value) -> Value {
        let mut chunk = json!({
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        });
        for field in ["id", "created", "model"] {
            if let Some(value) = self.head.get(field) {
                chunk[field] = value.clone();
            }
        }
        self.put_identity(&mut chunk);
        chunk
    }
}

#[cfg(test)]
mod tests;

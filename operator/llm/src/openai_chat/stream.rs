//! A streamed chat conversation: passes chunks, holds back the end, and continues the first round with later ones.
//!
//! `accumulator` rebuilds the response and decides the owner of each call; `edit` removes skill calls from a chunk;
//! this file decides when a chunk goes out. A chunk without a change goes out in its own bytes.

mod accumulator;
mod edit;
mod merge;

use std::sync::Arc;

use serde_json::{Value, json};

use self::accumulator::{CallSlots, ResponseAccumulator};
use super::{response, tool_call};
use crate::{
    OfferedNames, RoundEnd, StreamError, StreamFilter, ToolResult, Usage,
    sse::{self, EventSplitter, RawEvent},
    wire,
};

pub(super) struct ChatFilter {
    offered: Arc<OfferedNames>,
    splitter: EventSplitter,
    round: ResponseAccumulator,
    /// Chunks that cannot go out before a call's name is known.
    waiting: Vec<Chunk>,
    /// The end of a round with skill calls, or with a call that awaits confirmation.
    held: HeldEnd,
    is_first_round: bool,
    state: State,
    /// `id` and `created` of the first round's chunks, which all others get.
    identity: Option<(Value, Value)>,
    /// Of all rounds that are over.
    total: Usage,
    sent: SentFields,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// A round is over, and its end perhaps held back.
    RoundOver,
    /// The end was written.
    Ended,
}

/// Fields that the client got in any round.
#[derive(Default)]
struct SentFields {
    role: bool,
    text: bool,
}

struct Chunk {
    raw: RawEvent,
    value: Value,
    places: CallSlots,
}

#[derive(Default)]
struct HeldEnd {
    chunks: Vec<Value>,
    is_done: bool,
}

impl ChatFilter {
    pub(super) fn new(offered: Arc<OfferedNames>) -> Self {
        Self {
            round: ResponseAccumulator::new(Arc::clone(&offered)),
            offered,
            splitter: EventSplitter::default(),
            waiting: Vec::new(),
            held: HeldEnd::default(),
            is_first_round: true,
            state: State::Running,
            identity: None,
            total: Usage::default(),
            sent: SentFields::default(),
        }
    }

    fn begin_round(&mut self) {
        self.round = ResponseAccumulator::new(Arc::clone(&self.offered));
        self.splitter = EventSplitter::default();
        self.waiting.clear();
        self.held = HeldEnd::default();
        self.is_first_round = false;
        self.state = State::Running;
    }

    fn take(&mut self, raw: RawEvent, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let data = raw.data();
        if data.as_deref().is_some_and(|data| data.trim() == "[DONE]") {
            self.round.finish();
            self.release(out);
            if self.round.is_end_held() {
                self.held.is_done = true;
            } else {
                out.extend_from_slice(&raw.0);
            }
            return Ok(());
        }
        match data.and_then(|data| serde_json::from_str::<Value>(&data).ok()) {
            Some(value) if value.get("choices").is_some_and(Value::is_array) => {
                let places = self.round.add(&value, raw.0.len())?;
                self.waiting.push(Chunk { raw, value, places });
                if !self.round.is_undecided() {
                    self.release(out);
                }
            }
            // Comments, errors and what else a provider sends.
            Some(_) | None => out.extend_from_slice(&raw.0),
        }
        Ok(())
    }

    fn release(&mut self, out: &mut Vec<u8>) {
        for chunk in std::mem::take(&mut self.waiting) {
            self.forward(chunk, out);
        }
    }

    /// Writes what the client may see of a chunk, and holds back what may be the end of the stream.
    fn forward(&mut self, chunk: Chunk, out: &mut Vec<u8>) {
        let Chunk { raw, mut value, places } = chunk;
        if self.round.is_end_held() && edit::is_usage_only(&value) {
            self.held.chunks.push(value);
            return;
        }
        self.remember_identity(&value);
        let mut is_changed = !self.is_first_round && self.continue_first_round(&mut value);
        let edited = edit::remove_skill_calls(&mut value, &places, &mut self.round);
        is_changed |= edited.is_changed;
        self.held.chunks.extend(edited.end);
        if is_changed && edit::is_empty(&value) {
            return;
        }
        self.sent.role |= edit::has_text(&value, "role");
        self.sent.text |= edit::has_text(&value, "content");
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
    fn continue_first_round(&self, value: &mut Value) -> bool {
        let before = value.clone();
        self.put_identity(value);
        let usage = value.get("usage").filter(|usage| usage.is_object()).map(response::read_usage);
        if let Some(usage) = usage {
            response::set_usage(value, self.total.plus(usage));
        }
        if self.sent.role {
            edit::remove_role(value);
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

    /// Takes an event that the stream left without its blank line.
    fn take_rest(&mut self, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let Some(raw) = self.splitter.rest() else { return Ok(()) };
        let is_whole = raw
            .data()
            .is_some_and(|data| data.trim() == "[DONE]" || serde_json::from_str::<Value>(&data).is_ok());
        let text = String::from_utf8_lossy(&raw.0);
        let may_be_offered =
            || self.round.is_end_held() || self.offered.all().any(|name| text.contains(&**name));
        if !is_whole && may_be_offered() {
            return Err(StreamError::Truncated);
        }
        let length = out.len();
        self.take(raw, out)?;
        if self.round.is_end_held() && out.len() > length {
            // More may follow, and an event ends with a blank line.
            out.extend_from_slice(b"\n\n");
        }
        Ok(())
    }

    /// Writes a text of the gateway's, apart from what was written before.
    fn write_content(&mut self, text: &str, out: &mut Vec<u8>) {
        let separator = if self.sent.text { "\n\n" } else { "" };
        let mut delta = json!({"content": format!("{separator}{text}")});
        if !self.sent.role {
            delta["role"] = json!("assistant");
        }
        self.sent = SentFields { role: true, text: true };
        sse::write(None, &self.chunk(&delta, &Value::Null).to_string(), out);
    }

    fn chunk(&self, delta: &Value, finish_reason: &Value) -> Value {
        let mut chunk = json!({
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        });
        for field in ["id", "created", "model"] {
            if let Some(value) = self.round.head(field) {
                chunk[field] = value.clone();
            }
        }
        self.put_identity(&mut chunk);
        chunk
    }
}

impl StreamFilter for ChatFilter {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), StreamError> {
        if self.state != State::Running {
            self.begin_round();
        }
        self.splitter.feed(bytes)?.into_iter().try_for_each(|raw| self.take(raw, out))
    }

    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<RoundEnd, StreamError> {
        if self.state != State::Running {
            self.begin_round();
        }
        self.state = State::RoundOver;
        self.take_rest(out)?;
        if self.round.is_undecided() || (self.round.is_end_held() && !self.round.is_finished()) {
            return Err(StreamError::Truncated);
        }
        let response = self.round.response();
        self.total = self.total.plus(response::usage(&response));
        let calls = tool_call::of_first_choice(&response);
        Ok(RoundEnd::of(response, calls, &self.offered, false))
    }

    fn write_text(&mut self, _id: &str, text: &str, out: &mut Vec<u8>) {
        if self.state == State::RoundOver && self.round.is_end_held() {
            self.write_content(text, out);
        }
    }

    fn finish(&mut self, results: &[ToolResult], out: &mut Vec<u8>) {
        if self.state != State::RoundOver || !self.round.is_end_held() {
            return;
        }
        self.state = State::Ended;
        if !results.is_empty() {
            self.write_content(&wire::results_text(results), out);
        }
        let HeldEnd { mut chunks, is_done } = std::mem::take(&mut self.held);
        if !chunks.iter().any(edit::is_finish) {
            chunks.insert(0, self.chunk(&json!({}), &json!("tool_calls")));
        }
        for mut chunk in chunks {
            self.put_identity(&mut chunk);
            response::set_usage(&mut chunk, self.total);
            if !self.round.has_client_calls() {
                edit::end_turn(&mut chunk);
            }
            sse::write(None, &chunk.to_string(), out);
        }
        if is_done {
            sse::write(None, "[DONE]", out);
        }
    }
}

#[cfg(test)]
mod tests;

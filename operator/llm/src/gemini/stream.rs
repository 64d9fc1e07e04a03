//! Splits Gemini's chunks between client and gateway.
//!
//! Chunks have no numbers and a stream no beginning of its own, so that those of later rounds pass as they are, their
//! `responseId` too; only the last counts the tokens of all rounds. The end of a stream is the chunk with a
//! `finishReason`. A provider that leaves it out is taken at its word: a call that came whole is run.

mod accumulator;
mod framing;
mod partial_args;

use std::{mem, sync::Arc};

use serde_json::{Value, json};

use super::response::{add_parts, placed_calls, result_text_part, set_usage, usage};
use crate::{Arguments, OfferedNames, RoundEnd, StreamError, StreamFilter, ToolResult, Usage, wire::items};
use accumulator::{AccumulatedResponse, ResponseAccumulator, plain_text};
use framing::{Piece, Splitter, Writer};

pub(super) struct GeminiFilter {
    offered: Arc<OfferedNames>,
    splitter: Splitter,
    writer: Writer,
    round: ResponseAccumulator,
    /// The end of the round before, if it was held back and until a next one begins.
    held: Option<Value>,
    /// Tokens of the rounds that are over. None in the first round.
    before: Option<Usage>,
    /// The provider sent an error: nothing follows it.
    is_failed: bool,
}

impl GeminiFilter {
    pub(super) fn new(offered: Arc<OfferedNames>) -> Self {
        Self {
            offered,
            splitter: Splitter::default(),
            writer: Writer::default(),
            round: ResponseAccumulator::default(),
            held: None,
            before: None,
            is_failed: false,
        }
    }

    fn take(&mut self, piece: Piece, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let is_held = self.round.is_end_held() && !self.is_failed;
        match piece {
            Piece::Chunk { before, bytes, json } if !self.is_failed => match json.filter(Value::is_object) {
                Some(chunk) => {
                    self.round.size.add(bytes.len())?;
                    self.take_chunk(chunk, &before, &bytes, out);
                }
                None => self.writer.pass(&before, &bytes, out),
            },
            Piece::Close(bytes) if !is_held => self.writer.close(&bytes, out),
            Piece::Other(bytes) if !is_held && !self.is_failed => Writer::other(&bytes, out),
            Piece::Chunk { .. } | Piece::Close(_) | Piece::Other(_) => {}
        }
        Ok(())
    }

    fn take_chunk(&mut self, mut chunk: Value, before: &[u8], bytes: &[u8], out: &mut Vec<u8>) {
        self.held = None;
        if chunk.get("error").is_some() {
            self.is_failed = true;
            return self.writer.pass(before, bytes, out);
        }
        let seen = self.round.take(&mut chunk, &self.offered);
        if self.round.is_end_held() && (seen.has_end || self.round.held.is_some()) {
            return self.hold(chunk, before, out);
        }
        if seen.is_changed && !has_content(&chunk) {
            return;
        }
        let total = self.before.filter(|_| self.round.is_ended);
        if let Some(total) = total {
            set_usage(&mut chunk, total.plus(usage(&self.round.fields())));
        }
        if seen.is_changed || total.is_some() {
            self.writer.write(before, &chunk, out);
        } else {
            self.writer.pass(before, bytes, out);
        }
    }

    /// Passes the content of a chunk, and holds back its end.
    fn hold(&mut self, chunk: Value, before: &[u8], out: &mut Vec<u8>) {
        if has_content(&chunk) {
            let mut now = chunk.clone();
            remove(&mut now, &["usageMetadata", "usage_metadata"]);
            for candidate in candidates(&mut now) {
                remove(candidate, &["finishReason", "finish_reason", "finishMessage", "finish_message"]);
            }
            self.writer.write(before, &now, out);
        }
        let mut end = chunk;
        for candidate in candidates(&mut end) {
            if let Some(parts) = candidate.pointer_mut("/content/parts") {
                *parts = json!([]);
            }
        }
        match &mut self.round.held {
            Some(held) => merge_end(held, end),
            held @ None => *held = Some(end),
        }
    }
}

impl StreamFilter for GeminiFilter {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), StreamError> {
        let pieces = self.splitter.feed(bytes)?;
        self.writer.follow(&self.splitter);
        for piece in pieces {
            self.take(piece, out)?;
        }
        Ok(())
    }

    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<RoundEnd, StreamError> {
        if let Some(rest) = self.splitter.rest() {
            let length = out.len();
            self.take(rest, out)?;
            if out.len() > length {
                self.writer.cut();
            }
        }
        let mut round = mem::take(&mut self.round);
        if round.is_inside_offered() && !self.is_failed {
            return Err(StreamError::Truncated);
        }
        if round.is_end_held() && !self.is_failed {
            self.held = Some(round.held.take().unwrap_or_else(|| json!({})));
        }
        let AccumulatedResponse { response, mut broken } = round.into_response();
        self.before = Some(self.before.unwrap_or_default().plus(usage(&response)));
        let mut calls = Vec::new();
        for placed in placed_calls(&response) {
            let mut call = placed.call;
            if let Some(text) = placed.place.and_then(|place| broken.remove(&place)) {
                call.arguments = Arguments::NotJson(text);
            }
            calls.push(call);
        }
        Ok(RoundEnd::of(response, calls, &self.offered, self.is_failed))
    }

    fn write_text(&mut self, _id: &str, text: &str, out: &mut Vec<u8>) {
        if self.held.is_some() {
            let content = json!({"role": "model", "parts": [{ "text": text }]});
            self.writer.write(b"", &json!({"candidates": [{"content": content, "index": 0}]}), out);
        }
    }

    fn finish(&mut self, results: &[ToolResult], out: &mut Vec<u8>) {
        let Some(mut end) = self.held.take() else { return };
        if let Some(end) = end.as_object_mut() {
            let list = end.entry("candidates").or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut().filter(|list| list.is_empty()) {
                list.push(json!({"content": {"role": "model"}, "finishReason": "STOP", "index": 0}));
            }
        }
        if let Some(first) = candidates(&mut end).next() {
            add_parts(first, results.iter().map(result_text_part).collect());
        }
        set_usage(&mut end, self.before.unwrap_or_default());
        self.writer.write(b"", &end, out);
        self.writer.close(b"\n]", out);
    }
}

fn candidates(chunk: &mut Value) -> impl Iterator<Item = &mut Value> {
    chunk.get_mut("candidates").and_then(Value::as_array_mut).into_iter().flatten()
}

/// Returns true if a chunk has a part with content.
fn has_content(chunk: &Value) -> bool {
    let parts =
        items(&chunk["candidates"]).iter().flat_map(|candidate| items(&candidate["content"]["parts"]));
    parts.into_iter().any(|part| plain_text(part).is_none_or(|text| !text.is_empty()))
}

fn remove(value: &mut Value, names: &[&str]) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| !names.contains(&name.as_str()));
    }
}

/// Merges a further chunk of an end, a candidate at a time. Later fields win.
fn merge_end(held: &mut Value, end: Value) {
    let Value::Object(mut end) = end else { return };
    let more = end.remove("candidates");
    let Some(held) = held.as_object_mut() else { return };
    held.extend(end);
    let list = held.entry("candidates").or_insert_with(|| json!([]));
    let (Some(list), Some(Value::Array(more))) = (list.as_array_mut(), more) else { return };
    for candidate in more {
        match list.iter_mut().find(|known| known["index"] == candidate["index"]) {
            Some(Value::Object(known)) => known.extend(candidate.as_object().cloned().unwrap_or_default()),
            _ => list.push(candidate),
        }
    }
}

#[cfg(test)]
mod tests;

//! Splits Gemini's chunks between client and gateway.
//!
//! Chunks have no numbers and a stream no beginning of its own, so that those of later rounds pass as they are, but for
//! the `responseId` of the first round; only the last counts the tokens of all rounds. The end of a stream is the chunk with a
//! `finishReason`. A provider that leaves it out is taken at its word: a call that came whole is run.

mod accumulator;
mod framing;
mod partial_args;

use std::mem;

use serde_json::{Value, json};

use super::Gemini;
use crate::{
    DialectName, ErrorDetail, RoundEnd, StreamError,
    codec::{ClientText, Codec as _, join_texts, usage},
    continuation::{
        Seal,
        gemini::{seal_call, sealed_part},
    },
    stream::{Begin, HeldEnd, Rounds, StreamCodec},
    wire::items,
};
use accumulator::{ChunkRound, plain_text};
use framing::{Framing, Piece, Writer};

/// The chunks of a stream.
#[derive(Clone, Default)]
pub(crate) struct Chunks {
    writer: Writer,
    round: ChunkRound,
    /// The end that is held back.
    end: Option<Value>,
    /// True if the client got text, of any round and of the current one.
    has_text: bool,
    has_round_text: bool,
    /// The `responseId` of the first round: some clients read another one as another response.
    response_id: Option<Value>,
}

impl StreamCodec for Chunks {
    type Splitter = Framing;

    fn begins(piece: &Piece) -> Option<Begin> {
        let Piece::Chunk { json: Some(chunk), .. } = piece else { return None };
        let parts = items(&chunk["candidates"][0]["content"]["parts"]);
        if parts.iter().any(|part| Gemini::read_call(part).is_some()) {
            return Some(Begin::Call);
        }
        has_content(chunk).then_some(Begin::Answer)
    }

    fn is_failure(piece: &Piece) -> bool {
        matches!(piece, Piece::Chunk { json: Some(chunk), .. } if chunk.get("error").is_some())
    }

    fn take(&mut self, piece: Piece, rounds: &mut Rounds, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let is_held = self.round.is_end_held() && !rounds.is_failed;
        match piece {
            Piece::Chunk { before, bytes, json } if !rounds.is_failed => {
                match json.filter(Value::is_object) {
                    Some(chunk) => {
                        rounds.keep(bytes.len())?;
                        self.take_chunk(chunk, &before, &bytes, rounds, out);
                    }
                    None => self.writer.pass(&before, &bytes, out),
                }
            }
            Piece::Close(bytes) if !is_held => self.writer.close(&bytes, out),
            Piece::Other(bytes) if !is_held && !rounds.is_failed => out.extend_from_slice(&bytes),
            Piece::Chunk { .. } | Piece::Close(_) | Piece::Other(_) => {}
        }
        Ok(())
    }

    fn follow(&mut self, splitter: &Framing) {
        self.writer.follow(splitter);
    }

    fn holds_end(&self) -> bool {
        self.round.is_end_held()
    }

    fn end_round(&mut self, rounds: &mut Rounds, _out: &mut Vec<u8>) -> Result<RoundEnd, StreamError> {
        let mut round = mem::take(&mut self.round);
        self.has_round_text = false;
        if round.is_inside_offered() && !rounds.is_failed {
            return Err(StreamError::Truncated);
        }
        if round.is_end_held() {
            self.end = Some(round.held.take().unwrap_or_else(|| json!({})));
        }
        Ok(rounds.end::<Gemini>(round.into_whole()))
    }

    fn abandon_round(&mut self, is_sealed: bool, _rounds: &Rounds, _out: &mut Vec<u8>) -> bool {
        let round = mem::take(&mut self.round);
        self.has_round_text = false;
        is_sealed || round.has_only_texts()
    }

    fn write_error(&mut self, error: &ErrorDetail<'_>, out: &mut Vec<u8>) {
        self.writer.write(b"", &DialectName::Gemini.error_event(error).1, out);
        self.writer.close(b"\n]", out);
    }

    fn write_texts(&mut self, texts: &[ClientText], _rounds: &Rounds, out: &mut Vec<u8>) {
        let separator = if mem::replace(&mut self.has_text, true) { "\n\n" } else { "" };
        let part = json!({"text": format!("{separator}{}", join_texts(texts))});
        let content = json!({"role": "model", "parts": [part]});
        self.writer.write(b"", &json!({"candidates": [{"content": content, "index": 0}]}), out);
    }

    fn write_seal(&mut self, seal: &Seal, out: &mut Vec<u8>) {
        let content = json!({"role": "model", "parts": [sealed_part(seal)]});
        self.writer.write(b"", &json!({"candidates": [{"content": content, "index": 0}]}), out);
    }

    /// A call has a signature of its own, and often no id.
    fn seal_call(&mut self, events: Vec<u8>, seal: &Seal, _call_id: &str) -> Vec<u8> {
        seal_first_call(events, &seal.to_bytes_field())
    }

    fn write_end(&mut self, _end: HeldEnd, rounds: &Rounds, out: &mut Vec<u8>) {
        let mut end = self.end.take().unwrap_or_default();
        if let Some(end) = end.as_object_mut() {
            let list = end.entry("candidates").or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut().filter(|list| list.is_empty()) {
                list.push(json!({"content": {"role": "model"}, "finishReason": "STOP", "index": 0}));
            }
        }
        rounds.total.write(end.pointer_mut(Gemini::usage_pointer(&end)));
        self.put_response_id(&mut end);
        self.writer.write(b"", &end, out);
        self.writer.close(b"\n]", out);
    }
}

impl Chunks {
    fn take_chunk(
        &mut self,
        mut chunk: Value,
        before: &[u8],
        bytes: &[u8],
        rounds: &mut Rounds,
        out: &mut Vec<u8>,
    ) {
        rounds.held = None;
        if chunk.get("error").is_some() {
            rounds.is_failed = true;
            self.writer.pass(before, bytes, out);
            if !rounds.is_first {
                self.writer.close(b"\n]", out);
            }
            return;
        }
        let mut seen = self.round.take(&mut chunk, &rounds.offered);
        seen.is_changed |= self.separate_text(&mut chunk);
        let is_renamed = self.put_response_id(&mut chunk);
        if self.round.is_end_held() && (seen.has_end || self.round.held.is_some()) {
            return self.hold(chunk, before, out);
        }
        if seen.is_changed && !has_content(&chunk) {
            return;
        }
        let is_last = !rounds.is_first && self.round.is_ended;
        if is_last {
            let total = rounds.total_with(&usage::<Gemini>(&self.round.fields()));
            total.write(chunk.pointer_mut(Gemini::usage_pointer(&chunk)));
        }
        if seen.is_changed || is_renamed || is_last {
            self.writer.write(before, &chunk, out);
        } else {
            self.writer.pass(before, bytes, out);
        }
    }

    /// Makes a chunk part of the first round's response. Returns true if it changed the chunk.
    fn put_response_id(&mut self, chunk: &mut Value) -> bool {
        let Some(own) = chunk.get_mut("responseId") else { return false };
        let first = self.response_id.get_or_insert_with(|| own.clone());
        let is_changed = own != first;
        own.clone_from(first);
        is_changed
    }

    /// Puts a blank line between the texts of two rounds. Returns true if it changed the chunk.
    fn separate_text(&mut self, chunk: &mut Value) -> bool {
        let parts = chunk.pointer_mut("/candidates/0/content/parts").and_then(Value::as_array_mut);
        let mut texts = parts.into_iter().flatten().filter(|part| part["thought"] != true);
        let Some(text) = texts.find_map(|part| match part.get_mut("text") {
            Some(Value::String(text)) if !text.is_empty() => Some(text),
            _ => None,
        }) else {
            return false;
        };
        let is_separated = self.has_text && !self.has_round_text;
        if is_separated {
            text.insert_str(0, "\n\n");
        }
        (self.has_text, self.has_round_text) = (true, true);
        is_separated
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

/// Puts `seal` into the first call of events for the client.
fn seal_first_call(events: Vec<u8>, seal: &str) -> Vec<u8> {
    let Ok(text) = String::from_utf8(events) else { return Vec::new() };
    let (mut sealed, mut rest) = (String::with_capacity(text.len() + seal.len()), &*text);
    while let Some((before, json)) = rest.find('{').and_then(|start| rest.split_at_checked(start)) {
        sealed.push_str(before);
        let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
        let Some(Ok(mut chunk)) = values.next() else {
            rest = json;
            break;
        };
        let (read, after) = json.split_at_checked(values.byte_offset()).unwrap_or((json, ""));
        rest = after;
        if seal_call(&mut chunk, seal) {
            sealed.push_str(&chunk.to_string());
            break;
        }
        sealed.push_str(read);
    }
    sealed.push_str(rest);
    sealed.into_bytes()
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

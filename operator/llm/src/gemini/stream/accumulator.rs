//! Rebuilds the whole response from one round of a Gemini stream.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::partial_args;
use crate::{
    OfferedNames,
    gemini::{call_of, either, signature::Signature},
    stream::WholeRound,
    wire::items,
};

/// The response so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ChunkRound {
    /// The response's fields beside its candidates. Later values win.
    fields: Map<String, Value>,
    candidates: BTreeMap<u64, Candidate>,
    /// The end of a round that may still change, not yet passed on.
    pub(super) held: Option<Value>,
    pub(super) is_ended: bool,
    pub(super) has_ours: bool,
    /// A call awaits a person's confirmation.
    pub(super) has_awaiting: bool,
}

#[derive(Clone, Debug, Default)]
struct Candidate {
    fields: Map<String, Value>,
    /// The content beside its parts. None where there is none.
    content: Option<Map<String, Value>>,
    parts: Vec<Value>,
    /// The call whose arguments still come.
    open: Option<OpenCall>,
    /// True if the newest call is a skill's.
    is_last_ours: bool,
    /// True if the newest call awaits confirmation.
    is_last_awaiting: bool,
    /// Arguments that were not understood, by the part.
    broken: HashMap<usize, String>,
    /// Of our calls, for the client's next one.
    signature: Signature,
}

#[derive(Clone, Debug)]
struct OpenCall {
    place: usize,
    arguments: Value,
    is_understood: bool,
    /// The pieces as they came, one a line.
    pieces: String,
}

/// The kinds of content found in a chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChunkContent {
    /// Some part must not reach the client as it is.
    pub(super) is_changed: bool,
    /// The end of a candidate.
    pub(super) has_end: bool,
}

/// The owner of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartOwner {
    Ours,
    /// A call that begins here.
    Clients,
    /// More of a call of the client's, or no call at all.
    Rest,
}

impl ChunkRound {
    /// Reads a chunk, and takes our calls out of it.
    pub(super) fn take(&mut self, chunk: &mut Value, offered: &OfferedNames) -> ChunkContent {
        let mut seen = ChunkContent::default();
        for (name, value) in chunk.as_object().into_iter().flatten().filter(|(name, _)| *name != "candidates")
        {
            self.fields.insert(name.clone(), value.clone());
        }
        let candidates = chunk.get_mut("candidates").and_then(Value::as_array_mut);
        for value in candidates.into_iter().flatten() {
            seen.has_end |= !either(value, "finishReason", "finish_reason").is_null();
            let candidate = self.candidates.entry(value["index"].as_u64().unwrap_or_default()).or_default();
            candidate.add_fields(value);
            let Some(parts) = value.pointer_mut("/content/parts").and_then(Value::as_array_mut) else {
                continue;
            };
            parts.retain_mut(|part| match candidate.add(part, offered) {
                PartOwner::Ours => {
                    candidate.signature.take_from(part);
                    (seen.is_changed, self.has_ours) = (true, true);
                    false
                }
                PartOwner::Clients => {
                    self.has_awaiting |= candidate.is_last_awaiting;
                    seen.is_changed |= candidate.signature.apply_to(part);
                    true
                }
                PartOwner::Rest => true,
            });
        }
        self.is_ended |= seen.has_end;
        seen
    }

    /// The response's fields beside its candidates.
    pub(super) fn fields(&self) -> Value {
        self.fields.clone().into()
    }

    /// Returns true if the gateway may write more before the round's end.
    pub(super) fn is_end_held(&self) -> bool {
        self.has_ours || self.has_awaiting
    }

    /// Returns true if every part is text or a thought.
    pub(super) fn has_only_texts(&self) -> bool {
        self.candidates.values().flat_map(|candidate| &candidate.parts).all(|part| plain_text(part).is_some())
    }

    /// Returns true if the stream is inside the arguments of an offered tool's call.
    pub(super) fn is_inside_offered(&self) -> bool {
        let is_inside = |candidate: &Candidate| {
            candidate.open.is_some() && (candidate.is_last_ours || candidate.is_last_awaiting)
        };
        self.candidates.values().any(is_inside)
    }

    pub(super) fn into_whole(self) -> WholeRound {
        let mut broken = HashMap::new();
        let mut candidates = Vec::new();
        for (number, mut candidate) in self.candidates.into_values().enumerate() {
            candidate.close();
            let list = format!("/candidates/{number}/content/parts");
            broken.extend(candidate.broken.into_iter().map(|(place, text)| ((list.clone(), place), text)));
            let mut fields = candidate.fields;
            if let Some(mut content) = candidate.content {
                content.insert("parts".to_owned(), candidate.parts.into());
                fields.insert("content".to_owned(), content.into());
            }
            candidates.push(Value::Object(fields));
        }
        let mut response = self.fields;
        response.insert("candidates".to_owned(), candidates.into());
        WholeRound { response: response.into(), broken }
    }
}

impl Candidate {
    fn add_fields(&mut self, value: &Value) {
        for (name, field) in value.as_object().into_iter().flatten() {
            match field.as_object().filter(|_| name == "content") {
                None => _ = self.fields.insert(name.clone(), field.clone()),
                Some(content) => {
                    let beside = content.iter().filter(|(name, _)| *name != "parts");
                    let own = self.content.get_or_insert_with(Map::new);
                    own.extend(beside.map(|(name, value)| (name.clone(), value.clone())));
                }
            }
        }
    }

    fn add(&mut self, part: &Value, offered: &OfferedNames) -> PartOwner {
        let Some(call) = call_of(part) else {
            self.add_part(part);
            return PartOwner::Rest;
        };
        if !self.is_more(call) {
            self.close();
            let name = call["name"].as_str().unwrap_or_default();
            (self.is_last_ours, self.is_last_awaiting) =
                (offered.contains(name), offered.needs_confirmation(name));
            self.open_call(part, call);
            return if self.is_last_ours { PartOwner::Ours } else { PartOwner::Clients };
        }
        if let Some(open) = &mut self.open {
            open.add(call);
            if !will_continue(call) {
                self.close();
            }
        }
        if self.is_last_ours { PartOwner::Ours } else { PartOwner::Rest }
    }

    /// Returns true for more of the newest call: it has no name, or repeats the name while that call is open.
    fn is_more(&self, call: &Value) -> bool {
        let is_nameless = call["name"].as_str().is_none_or(str::is_empty);
        let Some(open) = &self.open else {
            return is_nameless && self.parts.iter().any(|part| call_of(part).is_some());
        };
        let begun = self.parts.get(open.place).and_then(call_of);
        is_nameless
            || begun.is_some_and(|begun| {
                begun["name"] == call["name"] && (call["id"].is_null() || begun["id"] == call["id"])
            })
    }

    fn open_call(&mut self, part: &Value, call: &Value) {
        let mut open = OpenCall {
            place: self.parts.len(),
            arguments: json!({}),
            is_understood: true,
            pieces: String::new(),
        };
        self.parts.push(part.clone());
        if will_continue(call) || call.get("partialArgs").is_some() || call.get("partial_args").is_some() {
            open.add(call);
            self.open = Some(open);
            if !will_continue(call) {
                self.close();
            }
        }
    }

    /// Completes the arguments of the open call.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let part = self.parts.get_mut(open.place).and_then(Value::as_object_mut);
        let call = part.and_then(|part| {
            let name = if part.contains_key("functionCall") { "functionCall" } else { "function_call" };
            part.get_mut(name)?.as_object_mut()
        });
        let Some(call) = call else { return };
        for name in ["partialArgs", "partial_args", "willContinue", "will_continue"] {
            call.remove(name);
        }
        call.insert("args".to_owned(), if open.is_understood { open.arguments } else { json!({}) });
        if !open.is_understood {
            self.broken.insert(open.place, open.pieces);
        }
    }

    /// Neighbouring texts are one, unless more is said of one of them: a signature is of the very part it came with.
    fn add_part(&mut self, part: &Value) {
        let Some(text) = plain_text(part) else { return self.parts.push(part.clone()) };
        let last = self.parts.last_mut().filter(|last| {
            plain_text(last).is_some() && (last["thought"] == true) == (part["thought"] == true)
        });
        match last.and_then(|last| last.get_mut("text")) {
            Some(Value::String(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.parts.push(part.clone()),
        }
    }
}

impl OpenCall {
    fn add(&mut self, call: &Value) {
        if let Some(whole) = call.get("args").and_then(Value::as_object)
            && let Some(arguments) = self.arguments.as_object_mut()
        {
            arguments.extend(whole.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        for piece in items(either(call, "partialArgs", "partial_args")) {
            self.pieces.push_str(&piece.to_string());
            self.pieces.push('\n');
            self.is_understood &= partial_args::add(&mut self.arguments, piece);
        }
    }
}

fn will_continue(call: &Value) -> bool {
    *either(call, "willContinue", "will_continue") == true
}

/// The text of a part that is nothing but text, or a thought's text.
pub(super) fn plain_text(part: &Value) -> Option<&str> {
    let is_plain = part.as_object()?.keys().all(|name| matches!(name.as_str(), "text" | "thought"));
    part["text"].as_str().filter(|_| is_plain)
}

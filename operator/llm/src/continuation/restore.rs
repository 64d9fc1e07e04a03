//! The parts of a restored history that all dialects share.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet, VecDeque},
};

use serde_json::Value;

use super::{
    Continuation, ContinuationKey, Format, OPEN_LIMIT_BYTES, is_seal, opened_bytes, replacement_id, strip,
};
use crate::{DialectName, openai_responses::item::is_own_reference};

/// The characters around a seal at the end of a text.
const MARKER: (&str, &str) = ("<!-- skillet ", " -->");

/// Puts the turns of every seal of `namespace` into their place in `request`. Removes all seals, and references to messages
/// of the gateway. Returns true if it changed the request.
pub fn restore(
    dialect: DialectName,
    request: &mut Value,
    key: Option<&ContinuationKey>,
    namespace: &str,
) -> bool {
    let Format { field, restore, .. } = Format::of(dialect);
    let is_history_stored =
        ["previous_response_id", "conversation"].iter().any(|field| !request[*field].is_null());
    let Some(turns) = request.get_mut(*field).and_then(Value::as_array_mut) else { return false };
    if !turns.iter().any(|turn| has_seal(turn) || is_own_reference(turn)) {
        return false;
    }
    let mut seals = Seals::new(dialect, key, namespace, is_history_stored);
    *turns = restore(std::mem::take(turns), &mut seals);
    true
}

/// Returns the id of the sessions with MCP servers that the last seal of `namespace` carries.
pub fn carried_session(
    dialect: DialectName,
    request: &Value,
    key: Option<&ContinuationKey>,
    namespace: &str,
) -> Option<String> {
    let seals = Seals::new(dialect, key, namespace, false);
    seals.open_last(&request[Format::of(dialect).field])?.session
}

/// The most bytes of text that [`restore`] may put into `request`.
pub fn carried_bytes(dialect: DialectName, request: &Value) -> usize {
    let mut seals = HashSet::new();
    find_seals(&request[Format::of(dialect).field], &mut seals);
    let bytes = seals.into_iter().filter_map(opened_bytes).fold(0, usize::saturating_add);
    usize::try_from(OPEN_LIMIT_BYTES).map_or(bytes, |limit| bytes.min(limit))
}

/// Finds every seal in `value`, each once.
fn find_seals<'a>(value: &'a Value, seals: &mut HashSet<&'a str>) {
    match value {
        Value::String(text) if is_seal(text) => _ = seals.insert(strip(text)),
        Value::String(text) => seals.extend(split_marker(text).map(|(_, seal)| seal)),
        Value::Array(items) => items.iter().for_each(|item| find_seals(item, seals)),
        Value::Object(fields) => fields.values().for_each(|field| find_seals(field, seals)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns true if a string anywhere in `value` is or ends in a seal.
pub(super) fn has_seal(value: &Value) -> bool {
    match value {
        Value::String(text) => is_seal(text) || split_marker(text).is_some(),
        Value::Array(items) => items.iter().any(has_seal),
        Value::Object(fields) => fields.values().any(has_seal),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Opens seals, and remembers which ids stand for which.
pub(super) struct Seals<'a> {
    dialect: DialectName,
    key: Option<&'a ContinuationKey>,
    namespace: &'a str,
    /// True if the provider keeps the turns before the request.
    pub(super) is_history_stored: bool,
    /// Bytes that may still be opened.
    left: Cell<u64>,
    /// The provider's ids of calls by the seals that clients have as their ids.
    ids: HashMap<String, String>,
}

impl<'a> Seals<'a> {
    fn new(
        dialect: DialectName,
        key: Option<&'a ContinuationKey>,
        namespace: &'a str,
        is_history_stored: bool,
    ) -> Self {
        let left = Cell::new(OPEN_LIMIT_BYTES);
        Self { dialect, key, namespace, is_history_stored, left, ids: HashMap::new() }
    }
}

impl Seals<'_> {
    /// The continuation in `text`, if it is a seal and opens.
    pub(super) fn open(&self, text: &str) -> Option<Continuation> {
        let mut left = self.left.get();
        let open = || self.key?.open(self.namespace, self.dialect, text, &mut left);
        let opened = is_seal(text).then(open).flatten();
        self.left.set(left);
        opened
    }

    /// The continuation of the last seal in `value`, anywhere in it, that opens.
    pub(super) fn open_last(&self, value: &Value) -> Option<Continuation> {
        match value {
            Value::String(text) => {
                self.open(text).or_else(|| split_marker(text).and_then(|(_, seal)| self.open(seal)))
            }
            Value::Array(items) => items.iter().rev().find_map(|item| self.open_last(item)),
            Value::Object(fields) => fields.values().rev().find_map(|field| self.open_last(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    /// The carried turns of the first of these ids of calls that is a seal and opens. They hold the whole response.
    pub(super) fn open_call<'a>(&mut self, mut ids: impl Iterator<Item = &'a str>) -> Option<Vec<Value>> {
        let seal = ids.find(|id| is_seal(id))?;
        let continuation = self.open(seal)?;
        self.learn(seal, &continuation);
        Some(continuation.turns)
    }

    /// Returns true if `seal` was opened before.
    pub(super) fn knows(&self, seal: &str) -> bool {
        self.ids.contains_key(seal)
    }

    /// Notes that `seal` stands for the id of a call.
    pub(super) fn learn(&mut self, seal: &str, continuation: &Continuation) {
        if let Some(id) = &continuation.call_id {
            self.ids.insert(seal.to_owned(), id.clone());
        }
    }

    /// Writes the provider's id over a seal in the string field `field`.
    pub(super) fn put_id(&self, value: &mut Value, field: &str) {
        let Some(own) = value.get_mut(field) else { return };
        let Some(seal) = own.as_str().filter(|id| is_seal(id)) else { return };
        *own = self.ids.get(seal).cloned().unwrap_or_else(|| replacement_id(seal)).into();
    }
}

/// The text before a marker, and the marker's seal.
pub(super) fn split_marker(text: &str) -> Option<(&str, &str)> {
    let inner = text.trim_end().strip_suffix(MARKER.1)?;
    let (before, seal) = inner.rsplit_once(MARKER.0)?;
    is_seal(seal).then_some((before.trim_end(), seal))
}

/// The texts of carried turns, which a client's text may begin with.
pub(super) struct CoveredTexts(VecDeque<String>);

impl CoveredTexts {
    pub(super) fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        Self(texts.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect())
    }

    /// The part of `text` that no carried turn has, without a marker.
    pub(super) fn cut<'t>(&mut self, text: &'t str) -> &'t str {
        let mut left = split_marker(text).map_or(text, |(before, _)| before);
        while let Some(covered) = self.0.front() {
            let Some(rest) = left.trim_start().strip_prefix(covered.as_str()) else { break };
            self.0.pop_front();
            left = rest.trim_start();
        }
        left
    }

    /// [`CoveredTexts::cut`] in the string field `field`. Returns false if nothing of the text is left.
    pub(super) fn cut_field(&mut self, value: &mut Value, field: &str) -> bool {
        let Some(own) = value.get_mut(field) else { return true };
        let Some(text) = own.as_str() else { return true };
        let left = self.cut(text).to_owned();
        let is_left = !left.trim().is_empty();
        *own = left.into();
        is_left
    }
}

/// Appends `turn`. A provider that wants turns to alternate gets one turn of the parts of two.
pub(super) fn push_merged(turns: &mut Vec<Value>, turn: Value, parts: &str, to_part: fn(Value) -> Value) {
    let is_same = turns.last().is_some_and(|last| last["role"] == turn["role"] && turn["role"] == "user");
    let Some(last) = turns.last_mut().filter(|_| is_same) else {
        turns.push(turn);
        return;
    };
    let mut turn = turn;
    let taken = |own: Option<&mut Value>| match own.map(Value::take) {
        Some(Value::Array(parts)) => parts,
        Some(Value::Null) | None => Vec::new(),
        Some(other) => vec![to_part(other)],
    };
    let mut merged = taken(last.get_mut(parts));
    merged.extend(taken(turn.get_mut(parts)));
    if let Some(fields) = last.as_object_mut() {
        fields.insert(parts.to_owned(), merged.into());
    }
}

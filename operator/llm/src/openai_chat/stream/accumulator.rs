//! Rebuilds the response of one round from its chunks, and decides the owner of each call.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::merge::merge;
use crate::{
    OfferedNames,
    openai_chat::foreign_type,
    wire::{items, text},
};

/// The call of each delta of a chunk: by index of the choice, then of the delta. None for a delta without a call.
#[derive(Clone)]
pub(super) struct CallSlots(pub(super) Vec<Vec<Option<usize>>>);

/// The response so far.
#[derive(Clone, Default)]
pub(super) struct ChatRound {
    /// Fields of the chunks themselves.
    pub(super) head: Map<String, Value>,
    usage: Option<Value>,
    choices: BTreeMap<u64, Choice>,
    is_finished: bool,
}

#[derive(Clone, Default)]
struct Choice {
    message: Map<String, Value>,
    finish_reason: Value,
    calls: Vec<StreamedCall>,
    /// Calls whose name may be incomplete.
    undecided: Vec<usize>,
    first_of_ours: Option<usize>,
    has_client_calls: bool,
    /// Number of calls that await confirmation, by the names known so far.
    asked: usize,
    /// The newest call of each index the provider gave.
    by_index: HashMap<u64, usize>,
    /// The next index of a client's call, where ours before it left a gap.
    next_place: u64,
}

#[derive(Clone, Default)]
struct StreamedCall {
    /// All but the index and what has a field of its own here.
    fields: Map<String, Value>,
    name: String,
    arguments: String,
    /// As the provider gave it.
    index: Option<u64>,
    /// As the client was given it, where that is another.
    place: Option<u64>,
    is_ours: bool,
    needs_confirmation: bool,
    /// The owner is decided, and the client may have seen the call.
    is_decided: bool,
}

/// A choice's index; the first where it says none.
pub(super) fn index_of(choice: &Value) -> u64 {
    choice.get("index").and_then(Value::as_u64).unwrap_or_default()
}

impl ChatRound {
    pub(super) fn add(&mut self, chunk: &Value, offered: &OfferedNames) -> CallSlots {
        for (field, value) in chunk.as_object().into_iter().flatten() {
            match field.as_str() {
                "usage" if value.is_object() => self.usage = Some(value.clone()),
                "choices" | "object" | "obfuscation" | "usage" => (),
                _ => {
                    self.head.entry(field).or_insert_with(|| value.clone());
                }
            }
        }
        let choices = items(&chunk["choices"]);
        let places = choices.iter().map(|choice| {
            let own = self.choices.entry(index_of(choice)).or_default();
            own.add(choice, offered)
        });
        let places = CallSlots(places.collect());
        if choices.is_empty() {
            self.decide(offered);
        }
        self.is_finished |= self.choices.get(&0).is_some_and(|choice| !choice.finish_reason.is_null());
        places
    }

    fn decide(&mut self, offered: &OfferedNames) {
        self.choices.values_mut().for_each(|choice| choice.decide(offered, |_| true));
    }

    /// Ends the round: every name is complete.
    pub(super) fn finish(&mut self, offered: &OfferedNames) {
        self.decide(offered);
        self.is_finished = true;
    }

    pub(super) fn is_finished(&self) -> bool {
        self.is_finished
    }

    pub(super) fn is_undecided(&self) -> bool {
        self.choices.values().any(|choice| !choice.undecided.is_empty())
    }

    /// In the choice that is continued.
    pub(super) fn has_ours(&self) -> bool {
        self.choices.get(&0).is_some_and(|choice| choice.first_of_ours.is_some())
    }

    /// Returns true if the gateway may write more before the end: a skill is called, or a call awaits confirmation.
    /// Counts the choice that is continued, and only names known so far: at the end all are.
    pub(super) fn is_end_held(&self) -> bool {
        self.has_ours() || self.choices.get(&0).is_some_and(|choice| choice.asked > 0)
    }

    pub(super) fn has_only_ours(&self, choice: u64) -> bool {
        let choice = self.choices.get(&choice);
        choice.is_some_and(|choice| choice.first_of_ours.is_some() && !choice.has_client_calls)
    }

    pub(super) fn is_ours(&self, choice: u64, call: usize) -> bool {
        let call = self.choices.get(&choice).and_then(|choice| choice.calls.get(call));
        call.is_some_and(|call| call.is_ours)
    }

    /// The client's index of its call, counted from its previous call. None if it equals the provider's, because no
    /// skill call came before.
    pub(super) fn client_place(&mut self, choice: u64, call: usize) -> Option<u64> {
        self.choices.get_mut(&choice)?.place(call)
    }

    /// The response as without streaming.
    pub(super) fn response(&self) -> Value {
        let mut response = self.head.clone();
        response.insert("object".to_owned(), json!("chat.completion"));
        let choices = self.choices.iter().map(|(index, choice)| {
            json!({"index": index, "message": choice.message(), "finish_reason": choice.finish_reason})
        });
        response.insert("choices".to_owned(), choices.collect());
        if let Some(usage) = &self.usage {
            response.insert("usage".to_owned(), usage.clone());
        }
        Value::Object(response)
    }
}

impl Choice {
    fn add(&mut self, choice: &Value, offered: &OfferedNames) -> Vec<Option<usize>> {
        let reason = choice.get("finish_reason").filter(|reason| !reason.is_null());
        if let Some(reason) = reason {
            self.finish_reason.clone_from(reason);
        }
        let empty = Map::new();
        let mut delta = choice.get("delta").and_then(Value::as_object).unwrap_or(&empty).clone();
        let calls = match delta.remove("tool_calls") {
            Some(Value::Array(calls)) => calls,
            Some(_) | None => Vec::new(),
        };
        let mut is_more_than_names = reason.is_some() || calls.is_empty();
        is_more_than_names |= delta.iter().any(|(field, value)| field != "role" && says_something(value));
        merge(&mut self.message, &delta);
        let slots: Vec<Option<usize>> = calls
            .iter()
            .map(|call| {
                let call = call.as_object()?;
                is_more_than_names |= arguments(call).is_some();
                Some(self.add_call(call, offered))
            })
            .collect();
        self.decide(offered, |slot| is_more_than_names || !slots.contains(&Some(slot)));
        slots
    }

    fn add_call(&mut self, delta: &Map<String, Value>, offered: &OfferedNames) -> usize {
        let slot = self.slot(delta);
        let Some(call) = self.calls.get_mut(slot) else { return slot };
        let mut rest = delta.clone();
        rest.remove("index");
        call.add_name(name(delta), offered);
        call.arguments.push_str(arguments(delta).unwrap_or_default());
        if let Some(Value::Object(function)) = rest.get_mut("function") {
            function.remove("name");
            function.retain(|field, value| field != "arguments" || !value.is_string());
        } else if foreign_type(delta.get("type")).is_none() {
            rest.retain(|field, _| !matches!(field.as_str(), "name" | "arguments"));
        }
        merge(&mut call.fields, &rest);
        self.asked -= usize::from(call.needs_confirmation);
        call.needs_confirmation =
            foreign_type(call.fields.get("type")).is_none() && offered.needs_confirmation(&call.name);
        self.asked += usize::from(call.needs_confirmation);
        slot
    }

    /// The call that a delta continues, or a new one. Some providers give no index, some the same to every call.
    fn slot(&mut self, delta: &Map<String, Value>) -> usize {
        let index = delta.get("index").and_then(Value::as_u64);
        let known = match index {
            Some(index) => self.by_index.get(&index).copied(),
            None => self.calls.len().checked_sub(1),
        };
        let has_name = !name(delta).is_empty();
        let is_same = |slot: &usize| {
            let own = self.calls.get(*slot).map_or("", |call| id(&call.fields));
            let given = id(delta);
            !has_name || own.is_empty() || given.is_empty() || own == given
        };
        if let Some(slot) = known.filter(is_same) {
            return slot;
        }
        let slot = self.calls.len();
        self.calls.push(StreamedCall { index, ..StreamedCall::default() });
        self.undecided.push(slot);
        self.by_index.extend(index.map(|index| (index, slot)));
        slot
    }

    /// Decides the owner of calls whose name is complete, and of calls that can only be the client's.
    fn decide(&mut self, offered: &OfferedNames, is_whole: impl Fn(usize) -> bool) {
        for slot in std::mem::take(&mut self.undecided) {
            let Some(call) = self.calls.get_mut(slot) else { continue };
            let is_foreign = foreign_type(call.fields.get("type")).is_some();
            if is_foreign || !may_become_offered(&call.name, offered) {
                self.has_client_calls = true;
            } else if !is_whole(slot) {
                self.undecided.push(slot);
                continue;
            } else if offered.contains(call.name.as_str()) {
                call.is_ours = true;
                self.first_of_ours = Some(self.first_of_ours.map_or(slot, |first| first.min(slot)));
            } else {
                self.has_client_calls = true;
            }
            call.is_decided = true;
        }
    }

    fn place(&mut self, slot: usize) -> Option<u64> {
        let has_ours_before = self.first_of_ours.is_some_and(|first| first < slot);
        let call = self.calls.get_mut(slot)?;
        if has_ours_before && call.place.is_none() {
            call.place = Some(self.next_place);
        }
        let used = call.place.or(call.index).unwrap_or(self.next_place);
        self.next_place = self.next_place.max(used.saturating_add(1));
        call.place
    }

    fn message(&self) -> Value {
        let mut message = self.message.clone();
        message.entry("role").or_insert_with(|| json!("assistant"));
        message.entry("content").or_insert(Value::Null);
        if !self.calls.is_empty() {
            message.insert("tool_calls".to_owned(), self.calls.iter().map(StreamedCall::whole).collect());
        }
        Value::Object(message)
    }
}

impl StreamedCall {
    fn add_name(&mut self, piece: &str, offered: &OfferedNames) {
        let longer = format!("{}{piece}", self.name);
        // Some providers say the whole name with every piece of the arguments.
        let is_repeated = piece == self.name && !may_become_offered(&longer, offered);
        // A name that continues late makes no skill call of a call that the client got.
        let is_too_late = self.is_ours || (self.is_decided && offered.contains(&longer));
        if !is_repeated && !is_too_late {
            self.name = longer;
        }
    }

    fn whole(&self) -> Value {
        let mut fields = self.fields.clone();
        if foreign_type(fields.get("type")).is_none() {
            let mut function = match fields.remove("function") {
                Some(Value::Object(function)) => function,
                Some(_) | None => Map::new(),
            };
            function.insert("name".to_owned(), json!(self.name));
            function.entry("arguments").or_insert_with(|| json!(self.arguments));
            fields.insert("type".to_owned(), json!("function"));
            fields.insert("function".to_owned(), Value::Object(function));
        }
        Value::Object(fields)
    }
}

fn may_become_offered(name: &str, offered: &OfferedNames) -> bool {
    offered.any_begins_with(name)
}

/// The function of a call. Some providers write its fields into the call itself.
fn function(call: &Map<String, Value>) -> &Map<String, Value> {
    call.get("function").and_then(Value::as_object).unwrap_or(call)
}

fn id(call: &Map<String, Value>) -> &str {
    call.get("id").map_or("", text)
}

fn name(call: &Map<String, Value>) -> &str {
    function(call).get("name").map_or("", text)
}

fn arguments(call: &Map<String, Value>) -> Option<&str> {
    function(call).get("arguments").map(text).filter(|text| !text.is_empty())
}

fn says_something(value: &Value) -> bool {
    !(value.is_null() || value.as_str() == Some(""))
}

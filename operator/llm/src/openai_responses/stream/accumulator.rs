//! The items of one streamed answer: whose each is, what is known of it, and the whole answer at the end.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    client_stream::ClientStream,
    event::{Event, Kind},
    fields,
};
use crate::{
    OfferedNames, RoundEnd, StreamError,
    openai_responses::item::{self, Answered},
    sse::RoundSize,
};

/// One answer of the provider.
#[derive(Default)]
pub(super) struct ResponseAccumulator {
    items: Vec<Item>,
    /// The last item of each id and index.
    by_id: HashMap<String, usize>,
    by_index: HashMap<u64, usize>,
    /// Bytes of events that are kept in `items`.
    kept: RoundSize,
    /// The response as the beginning told it.
    pub(super) response: Value,
    /// The provider gave up: nothing of this round is run.
    pub(super) is_failed: bool,
    pub(super) end: Option<RoundEnd>,
}

struct Item {
    /// Its index in the provider's numbering.
    index: Option<u64>,
    value: Value,
    /// Collected from events, in case `value` never gets them.
    arguments: String,
    is_done: bool,
    /// The end of the answer named it.
    is_final: bool,
    place: Owner,
}

enum Owner {
    Ours,
    /// A function call without a name: its events wait until it has one.
    Unnamed(Vec<Event>),
    /// The client's, at this index in the client's numbering.
    Client(u64),
}

impl ResponseAccumulator {
    /// Whether the client does not know of some item.
    pub(super) fn has_held_items(&self) -> bool {
        self.items.iter().any(|item| !matches!(item.place, Owner::Client(_)))
    }

    pub(super) fn last(&self) -> Option<usize> {
        self.items.len().checked_sub(1)
    }

    /// The item that an event is about.
    pub(super) fn find(&self, event: &Event) -> Option<usize> {
        // Some providers give every event another id, others every item the same index.
        let by_id = event.item_id().and_then(|id| self.by_id.get(id));
        // A second end at the same index is another item's.
        let is_end = event.kind() == Kind::ItemDone;
        by_id.copied().or_else(|| self.at_index(event.output_index()?, |item| !(is_end && item.is_done)))
    }

    fn at_index(&self, index: u64, is_it: impl Fn(&Item) -> bool) -> Option<usize> {
        self.by_index.get(&index).copied().filter(|place| self.items.get(*place).is_some_and(is_it))
    }

    pub(super) fn add(
        &mut self,
        value: Value,
        index: Option<u64>,
        offered: &OfferedNames,
        client: &mut ClientStream,
    ) {
        let is_unnamed = item::is_function_call(&value) && is_nameless(&value);
        let place = if item::is_ours(&value, offered) {
            client.change();
            Owner::Ours
        } else if is_unnamed {
            client.change();
            Owner::Unnamed(Vec::new())
        } else {
            Owner::Client(client.place(index))
        };
        let (arguments, is_done, is_final) = (String::new(), false, false);
        self.name(&value, self.items.len());
        if let Some(index) = index {
            self.by_index.insert(index, self.items.len());
        }
        self.items.push(Item { index, value, arguments, is_done, is_final, place });
    }

    fn name(&mut self, value: &Value, place: usize) {
        if let Some(id) = value["id"].as_str().filter(|id| !id.is_empty()) {
            self.by_id.insert(id.to_owned(), place);
        }
    }

    /// Takes an event about the item at `place`: on to the client, or into the item.
    pub(super) fn take(
        &mut self,
        place: usize,
        event: Event,
        offered: &OfferedNames,
        client: &mut ClientStream,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamError> {
        if let Some(value) = event.item() {
            self.name(value, place);
        }
        let Some(item) = self.items.get_mut(place) else { return Ok(()) };
        if event.item().is_some() || !matches!(item.place, Owner::Client(_)) {
            self.kept.add(event.raw.0.len())?;
        }
        item.read(&event);
        match &mut item.place {
            Owner::Ours => {}
            Owner::Unnamed(events) => events.push(event),
            Owner::Client(index) => client.pass(event, Some(*index), out),
        }
        if !is_nameless(&item.value) {
            item.decide(offered, client, out);
        }
        Ok(())
    }

    /// Settles every item with `response`, the provider's last word, and hands the client's items to `client`.
    pub(super) fn close(
        &mut self,
        response: Value,
        offered: &OfferedNames,
        client: &mut ClientStream,
        out: &mut Vec<u8>,
    ) -> RoundEnd {
        let mut response = fields(response);
        let told = match response.remove("output") {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let order = if told.is_empty() { self.order() } else { self.settle(told, offered, client) };
        for item in &mut self.items {
            item.complete();
            item.decide(offered, client, out);
        }
        let ordered = || order.iter().filter_map(|place| self.items.get(*place));
        let output: Vec<Value> = ordered().map(|item| item.value.clone()).collect();
        let answered = Answered::in_output(&output);
        let has_client_calls = ordered().any(|item| item.is_clients() && answered.is_waiting(&item.value));
        let places: Vec<usize> =
            ordered().enumerate().filter(|(_, item)| !item.is_clients()).map(|(place, _)| place).collect();
        let needs_confirmation =
            |item: &Value| item::needs_confirmation(item, offered) && answered.is_waiting(item);
        let asked: Vec<usize> = output
            .iter()
            .enumerate()
            .filter(|(_, item)| needs_confirmation(item))
            .map(|(place, _)| place)
            .collect();
        response.insert("output".to_owned(), Value::Array(output));
        let whole = Value::Object(response);
        let id = whole["id"].as_str().unwrap_or_default();
        let call = |place: &usize| item::call(&whole["output"][*place], *place, id);
        let ours = places.iter().map(call).collect();
        let asked = asked.iter().map(call).collect();
        client.keep(self.client_items(), &whole["usage"]);
        if self.is_failed {
            return RoundEnd {
                response: whole,
                skill_calls: Vec::new(),
                awaiting_confirmation: Vec::new(),
                has_client_calls: false,
            };
        }
        RoundEnd { skill_calls: ours, awaiting_confirmation: asked, has_client_calls, response: whole }
    }

    /// Gives every item the value that the end of the answer has for it. Items are in that order.
    fn settle(&mut self, told: Vec<Value>, offered: &OfferedNames, client: &mut ClientStream) -> Vec<usize> {
        let mut order = Vec::with_capacity(told.len());
        for (index, value) in (0_u64..).zip(told) {
            let place = self.find_final(&value, index).or_else(|| {
                self.add(value.clone(), Some(index), offered, client);
                self.last()
            });
            if let Some((place, item)) = place.and_then(|place| Some((place, self.items.get_mut(place)?))) {
                (item.value, item.is_final) = (value, true);
                order.push(place);
            }
        }
        order
    }

    fn find_final(&self, value: &Value, index: u64) -> Option<usize> {
        let by_id = value["id"].as_str().and_then(|id| self.by_id.get(id)).copied();
        let is_open = |place: &usize| self.items.get(*place).is_some_and(|item| !item.is_final);
        let is_same = |item: &Item| !item.is_final && item.value["type"] == value["type"];
        by_id.filter(is_open).or_else(|| self.at_index(index, is_same))
    }

    /// The order of the items where the end of the answer does not tell it.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        order.sort_by_key(|place| self.items.get(*place).and_then(|item| item.index));
        order
    }

    /// What the client knows of this answer, in its own order.
    fn client_items(&self) -> Vec<Value> {
        let mut items: Vec<(u64, &Value)> = self.items.iter().filter_map(Item::for_client).collect();
        items.sort_by_key(|(index, _)| *index);
        items.into_iter().map(|(_, value)| value.clone()).collect()
    }
}

impl Item {
    fn is_clients(&self) -> bool {
        matches!(self.place, Owner::Client(_))
    }

    fn for_client(&self) -> Option<(u64, &Value)> {
        match self.place {
            Owner::Client(index) => Some((index, &self.value)),
            Owner::Ours | Owner::Unnamed(_) => None,
        }
    }

    fn read(&mut self, event: &Event) {
        if let Some(value) = event.item() {
            self.value.clone_from(value);
            self.is_done = event.kind() == Kind::ItemDone;
        }
        if self.is_clients() {
            return;
        }
        if let Some(delta) = event.arguments_delta() {
            self.arguments.push_str(delta);
        }
        if let Some((name, arguments)) = event.arguments_done() {
            arguments.clone_into(&mut self.arguments);
            if is_nameless(&self.value) && !name.is_empty() {
                self.set("name", name);
            }
        }
    }

    /// Puts in the arguments that only the events told.
    fn complete(&mut self) {
        if !self.arguments.is_empty() && self.value["arguments"].as_str().is_none_or(str::is_empty) {
            let arguments = std::mem::take(&mut self.arguments);
            self.set("arguments", &arguments);
        }
    }

    fn set(&mut self, field: &str, text: &str) {
        if let Some(fields) = self.value.as_object_mut() {
            fields.insert(field.to_owned(), json!(text));
        }
    }

    /// Settles whose an unnamed call is, by the name it has now. The client's gets its events.
    fn decide(&mut self, offered: &OfferedNames, client: &mut ClientStream, out: &mut Vec<u8>) {
        let Owner::Unnamed(events) = &mut self.place else { return };
        if item::is_ours(&self.value, offered) {
            self.place = Owner::Ours;
            return;
        }
        let index = client.place(self.index);
        for event in std::mem::take(events) {
            client.pass(event, Some(index), out);
        }
        self.place = Owner::Client(index);
    }
}

fn is_nameless(value: &Value) -> bool {
    value["name"].as_str().is_none_or(str::is_empty)
}

//! Rebuilds one streamed response from its items, and decides the owner of each.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    client_stream::ClientStream,
    event::{EventKind, ResponseEvent},
    fields,
};
use crate::{
    OfferedNames, RoundEnd, StreamError, Usage,
    codec::{Codec as _, placed_calls},
    openai_responses::{
        OpenAiResponses,
        item::{Answered, is_function_call, plain_name},
    },
    stream::Rounds,
};

/// The response of one round so far.
#[derive(Default)]
pub(super) struct ItemRound {
    items: Vec<Item>,
    /// The last item of each id and index.
    by_id: HashMap<String, usize>,
    by_index: HashMap<u64, usize>,
    /// The response as the first event says it.
    pub(super) response: Value,
    pub(super) end: Option<RoundEnd>,
}

struct Item {
    /// Its index in the provider's numbering.
    index: Option<u64>,
    value: Value,
    /// Collected from events, in case `value` never gets them.
    arguments: String,
    is_done: bool,
    /// The final event names it.
    is_final: bool,
    owner: ItemOwner,
}

enum ItemOwner {
    Ours,
    /// A function call without a name: its events wait until it has one.
    Unnamed(Vec<ResponseEvent>),
    /// The client's, at this index in the client's numbering.
    Client(u64),
}

impl ItemRound {
    /// Returns true if some item has not reached the client.
    pub(super) fn has_held_items(&self) -> bool {
        self.items.iter().any(|item| !matches!(item.owner, ItemOwner::Client(_)))
    }

    pub(super) fn last(&self) -> Option<usize> {
        self.items.len().checked_sub(1)
    }

    /// The item that an event is about.
    pub(super) fn find(&self, event: &ResponseEvent) -> Option<usize> {
        // Some providers give every event another id, others every item the same index.
        let by_id = event.item_id().and_then(|id| self.by_id.get(id));
        // A second end at the same index is another item's.
        let is_end = event.kind() == EventKind::ItemDone;
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
        let is_unnamed = is_function_call(&value) && is_nameless(&value);
        let owner = if offered.contains(plain_name(&value)) {
            client.change();
            ItemOwner::Ours
        } else if is_unnamed {
            client.change();
            ItemOwner::Unnamed(Vec::new())
        } else {
            ItemOwner::Client(client.place(index))
        };
        let (arguments, is_done, is_final) = (String::new(), false, false);
        self.name(&value, self.items.len());
        if let Some(index) = index {
            self.by_index.insert(index, self.items.len());
        }
        self.items.push(Item { index, value, arguments, is_done, is_final, owner });
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
        event: ResponseEvent,
        rounds: &mut Rounds,
        client: &mut ClientStream,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamError> {
        if let Some(value) = event.item() {
            self.name(value, place);
        }
        let Some(item) = self.items.get_mut(place) else { return Ok(()) };
        if event.item().is_some() || !matches!(item.owner, ItemOwner::Client(_)) {
            rounds.keep(event.raw.0.len())?;
        }
        item.read(&event);
        match &mut item.owner {
            ItemOwner::Ours => {}
            ItemOwner::Unnamed(events) => events.push(event),
            ItemOwner::Client(index) => client.pass(event, Some(*index), out),
        }
        if !is_nameless(&item.value) {
            item.decide(&rounds.offered, client, out);
        }
        Ok(())
    }

    /// Completes every item from `response`, the final event, and gives the client's items to `client`.
    pub(super) fn close(
        &mut self,
        response: Value,
        rounds: &mut Rounds,
        client: &mut ClientStream,
        out: &mut Vec<u8>,
    ) -> RoundEnd {
        let mut response = fields(response);
        let final_items = match response.remove("output") {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let order = if final_items.is_empty() {
            self.order()
        } else {
            self.settle(final_items, &rounds.offered, client)
        };
        for item in &mut self.items {
            item.complete();
            item.decide(&rounds.offered, client, out);
        }
        client.keep(self.client_items());
        rounds.total = rounds.total_with(&Usage::of(response.get("usage")));
        let items: Vec<&Item> = order.iter().filter_map(|index| self.items.get(*index)).collect();
        let output: Vec<Value> = items.iter().map(|item| item.value.clone()).collect();
        let answered = Answered::in_output(&output);
        response.insert("output".to_owned(), output.clone().into());
        let mut end = RoundEnd::of(response.into(), Vec::new(), &rounds.offered, rounds.is_failed);
        let is_cut = OpenAiResponses::is_cut(&end.response);
        let calls =
            if rounds.is_failed { Vec::new() } else { placed_calls::<OpenAiResponses>(&end.response) };
        for placed in calls {
            let Some((item, value)) = items.get(placed.index).zip(output.get(placed.index)) else { continue };
            if !item.is_clients() {
                end.skill_calls.push(placed.call);
            } else if answered.is_waiting(value) {
                end.has_client_calls = true;
                if !is_cut && rounds.offered.needs_confirmation(&placed.call.name) {
                    end.awaiting_confirmation.push(placed.call);
                }
            }
        }
        end
    }

    /// Gives every item its value of the final event. Returns the items' order there.
    fn settle(
        &mut self,
        final_items: Vec<Value>,
        offered: &OfferedNames,
        client: &mut ClientStream,
    ) -> Vec<usize> {
        let mut order = Vec::with_capacity(final_items.len());
        for (index, value) in (0_u64..).zip(final_items) {
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

    /// The order of the items if the final event has none.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        order.sort_by_key(|place| self.items.get(*place).and_then(|item| item.index));
        order
    }

    /// The client's items of this response, in its own order.
    fn client_items(&self) -> Vec<Value> {
        let mut items: Vec<(u64, &Value)> = self.items.iter().filter_map(Item::for_client).collect();
        items.sort_by_key(|(index, _)| *index);
        items.into_iter().map(|(_, value)| value.clone()).collect()
    }
}

impl Item {
    fn is_clients(&self) -> bool {
        matches!(self.owner, ItemOwner::Client(_))
    }

    fn for_client(&self) -> Option<(u64, &Value)> {
        match self.owner {
            ItemOwner::Client(index) => Some((index, &self.value)),
            ItemOwner::Ours | ItemOwner::Unnamed(_) => None,
        }
    }

    fn read(&mut self, event: &ResponseEvent) {
        if let Some(value) = event.item() {
            self.value.clone_from(value);
            self.is_done = event.kind() == EventKind::ItemDone;
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

    /// Fills in arguments that only the deltas had.
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

    /// Decides the owner of an unnamed call, by the name it has now. A call of the client releases its events.
    fn decide(&mut self, offered: &OfferedNames, client: &mut ClientStream, out: &mut Vec<u8>) {
        let ItemOwner::Unnamed(events) = &mut self.owner else { return };
        if offered.contains(plain_name(&self.value)) {
            self.owner = ItemOwner::Ours;
            return;
        }
        let index = client.place(self.index);
        for event in std::mem::take(events) {
            client.pass(event, Some(index), out);
        }
        self.owner = ItemOwner::Client(index);
    }
}

fn is_nameless(value: &Value) -> bool {
    value["name"].as_str().is_none_or(str::is_empty)
}

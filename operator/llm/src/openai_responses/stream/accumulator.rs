//! Rebuilds one streamed response from its items, and decides the owner of each.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    client_stream::ClientStream,
    event::{EventKind, ResponseEvent},
    fields,
    streamed_item::{Item, ItemOwner, is_nameless},
};
use crate::{
    OfferedNames, RoundEnd, StreamError, Usage,
    codec::{Codec as _, placed_calls},
    openai_responses::{
        OpenAiResponses,
        item::{Answered, is_function_call, plain_name},
    },
    sse::RawEvent,
    stream::Rounds,
};

/// The response of one round so far.
#[derive(Clone, Default)]
pub(super) struct ItemRound {
    items: Vec<Item>,
    /// The last item of each id and index.
    by_id: HashMap<String, usize>,
    by_index: HashMap<u64, usize>,
    /// The response as the first event says it.
    pub(super) response: Value,
    pub(super) end: Option<RoundEnd>,
    /// Events for the client since reasoning whose owner is not known yet, in order.
    waiting: Vec<WaitingEvent>,
}

/// An event behind reasoning that waits.
#[derive(Clone)]
pub(super) enum WaitingEvent {
    OfItem(usize, ResponseEvent),
    OfNone(ResponseEvent),
    /// Bytes that are no event of the API.
    Unread(RawEvent),
}

impl ItemRound {
    /// Returns true if some call has not reached the client.
    pub(super) fn has_held_items(&self) -> bool {
        self.items.iter().any(|item| matches!(item.owner, ItemOwner::Ours | ItemOwner::Unnamed(_)))
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
        out: &mut Vec<u8>,
    ) {
        let is_unnamed = is_function_call(&value) && is_nameless(&value);
        let owner = if value["type"] == "reasoning" {
            ItemOwner::Reasoning
        } else if offered.contains(plain_name(&value)) {
            self.keep_reasoning(client, out);
            client.change();
            ItemOwner::Ours
        } else if is_unnamed {
            client.change();
            ItemOwner::Unnamed(Vec::new())
        } else {
            self.release_reasoning(client, out);
            ItemOwner::Client(client.place(index))
        };
        let (arguments, text, is_done, is_final) = (String::new(), String::new(), false, false);
        self.name(&value, self.items.len());
        if let Some(index) = index {
            self.by_index.insert(index, self.items.len());
        }
        self.items.push(Item { index, value, arguments, text, is_done, is_final, owner });
    }

    /// Returns true if an event has to wait behind reasoning whose owner is not known yet.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Lets an event wait that belongs to no item.
    pub(super) fn wait(&mut self, event: WaitingEvent) {
        self.waiting.push(event);
    }

    /// Gives the client the reasoning that waits: the item after it is the client's.
    pub(super) fn release_reasoning(&mut self, client: &mut ClientStream, out: &mut Vec<u8>) {
        for item in &mut self.items {
            if matches!(item.owner, ItemOwner::Reasoning) {
                item.owner = ItemOwner::Client(client.place(item.index));
            }
        }
        self.pass_waiting(client, out);
    }

    /// Keeps the reasoning that waits from the client: without the call after it the provider would not take it back.
    fn keep_reasoning(&mut self, client: &mut ClientStream, out: &mut Vec<u8>) {
        for item in &mut self.items {
            if matches!(item.owner, ItemOwner::Reasoning) {
                item.owner = ItemOwner::Ours;
                client.change();
            }
        }
        self.pass_waiting(client, out);
    }

    fn pass_waiting(&mut self, client: &mut ClientStream, out: &mut Vec<u8>) {
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting {
                WaitingEvent::OfItem(place, event) => {
                    let owner = self.items.get(place).map(|item| &item.owner);
                    if let Some(ItemOwner::Client(index)) = owner {
                        client.pass(event, Some(*index), out);
                    }
                }
                WaitingEvent::OfNone(event) => client.pass(event, None, out),
                WaitingEvent::Unread(raw) => client.pass_bytes(&raw, out),
            }
        }
    }

    /// Decides the owner of the call at `place` once it has a name.
    fn decide(&mut self, place: usize, offered: &OfferedNames, client: &mut ClientStream, out: &mut Vec<u8>) {
        let Some(item) = self.items.get(place) else { return };
        if !matches!(item.owner, ItemOwner::Unnamed(_)) {
            return;
        }
        let is_ours = offered.contains(plain_name(&item.value));
        if is_ours {
            self.keep_reasoning(client, out);
        } else {
            self.release_reasoning(client, out);
        }
        let Some(item) = self.items.get_mut(place) else { return };
        match std::mem::replace(&mut item.owner, ItemOwner::Ours) {
            ItemOwner::Unnamed(events) if !is_ours => item.give_to_client(events, client, out),
            _ => {}
        }
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
        if !rounds.is_first
            && let Some(delta) = event.text_delta()
        {
            rounds.keep(delta.len())?;
            item.text.push_str(delta);
        }
        match &mut item.owner {
            ItemOwner::Ours => {}
            ItemOwner::Unnamed(events) => events.push(event),
            ItemOwner::Client(index) if self.waiting.is_empty() => client.pass(event, Some(*index), out),
            ItemOwner::Client(_) | ItemOwner::Reasoning => {
                self.waiting.push(WaitingEvent::OfItem(place, event));
            }
        }
        if !is_nameless(&item.value) {
            self.decide(place, &rounds.offered, client, out);
        }
        Ok(())
    }

    /// Ends the client's items of a round that the provider broke off. Without a seal, items other than messages would
    /// stay in the client's history, where the provider does not take them.
    pub(super) fn abandon(self, is_sealed: bool, client: &mut ClientStream, out: &mut Vec<u8>) -> bool {
        for item in self.items {
            let ItemOwner::Client(index) = item.owner else { continue };
            let is_message = item.value["type"] == "message";
            if !(is_message || (is_sealed && item.is_done)) {
                return false;
            }
            if item.is_done {
                client.keep(vec![item.value]);
            } else {
                client.end_message(index, item.value, &item.text, out);
            }
        }
        true
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
            self.settle(final_items, &rounds.offered, client, out)
        };
        for place in 0..self.items.len() {
            self.items.get_mut(place).into_iter().for_each(Item::complete);
            self.decide(place, &rounds.offered, client, out);
        }
        self.release_reasoning(client, out);
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
        out: &mut Vec<u8>,
    ) -> Vec<usize> {
        let mut order = Vec::with_capacity(final_items.len());
        for (index, value) in (0_u64..).zip(final_items) {
            let place = self.find_final(&value, index).or_else(|| {
                self.add(value.clone(), Some(index), offered, client, out);
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

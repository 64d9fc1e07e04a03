//! One item of a streamed response: its value so far and its owner.

use serde_json::{Value, json};

use super::{
    client_stream::ClientStream,
    event::{EventKind, ResponseEvent},
};

/// An item of a streamed response.
#[derive(Clone)]
pub(super) struct Item {
    /// Its index in the provider's numbering.
    pub(super) index: Option<u64>,
    pub(super) value: Value,
    /// Collected from events, in case `value` never gets them.
    pub(super) arguments: String,
    /// The text of a message of a later round, in case the provider breaks it off.
    pub(super) text: String,
    pub(super) is_done: bool,
    /// The final event names it.
    pub(super) is_final: bool,
    pub(super) owner: ItemOwner,
}

#[derive(Clone)]
pub(super) enum ItemOwner {
    Ours,
    /// A function call without a name: its events wait until it has one.
    Unnamed(Vec<ResponseEvent>),
    /// Reasoning belongs to the item after it, whose owner is not known yet.
    Reasoning,
    /// The client's, at this index in the client's numbering.
    Client(u64),
}

impl Item {
    pub(super) fn is_clients(&self) -> bool {
        matches!(self.owner, ItemOwner::Client(_))
    }

    pub(super) fn for_client(&self) -> Option<(u64, &Value)> {
        match self.owner {
            ItemOwner::Client(index) => Some((index, &self.value)),
            ItemOwner::Ours | ItemOwner::Unnamed(_) | ItemOwner::Reasoning => None,
        }
    }

    pub(super) fn read(&mut self, event: &ResponseEvent) {
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
    pub(super) fn complete(&mut self) {
        if !self.arguments.is_empty() && self.value["arguments"].as_str().is_none_or(str::is_empty) {
            let arguments = std::mem::take(&mut self.arguments);
            self.set("arguments", &arguments);
        }
    }

    pub(super) fn set(&mut self, field: &str, text: &str) {
        if let Some(fields) = self.value.as_object_mut() {
            fields.insert(field.to_owned(), json!(text));
        }
    }

    pub(super) fn give_to_client(
        &mut self,
        events: Vec<ResponseEvent>,
        client: &mut ClientStream,
        out: &mut Vec<u8>,
    ) {
        let index = client.place(self.index);
        for event in events {
            client.pass(event, Some(index), out);
        }
        self.owner = ItemOwner::Client(index);
    }
}

pub(super) fn is_nameless(value: &Value) -> bool {
    value["name"].as_str().is_none_or(str::is_empty)
}

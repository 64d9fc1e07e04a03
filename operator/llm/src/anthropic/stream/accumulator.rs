//! Rebuilds the whole response from one round of an Anthropic stream.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::{Usage, stream::WholeRound, wire::text};

/// The response so far.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageRound {
    /// The message of `message_start`, with what `message_delta` adds; without its content.
    message: Map<String, Value>,
    blocks: Vec<Block>,
    /// The provider's index of a block and its place in `blocks`.
    places: HashMap<u64, usize>,
    /// The `message_delta` of a round whose end is held back, not yet passed on.
    pub(super) held_delta: Option<Value>,
    /// True if the provider ended the message.
    pub(super) is_ended: bool,
    pub(super) has_ours: bool,
    /// A call awaits a person's confirmation.
    pub(super) has_awaiting: bool,
}

#[derive(Clone, Debug)]
struct Block {
    value: Value,
    /// Pieces of an input's JSON text.
    input: String,
    shown: Shown,
    is_open: bool,
}

/// The client's view of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Nothing: it is a call of ours.
    Nothing,
    /// The block under this index.
    As(u64),
}

impl MessageRound {
    pub(super) fn begin(&mut self, message: &Value) {
        self.message = message.as_object().cloned().unwrap_or_default();
    }

    pub(super) fn begin_block(&mut self, index: u64, block: &Value, shown: Shown) {
        self.has_ours |= shown == Shown::Nothing;
        self.places.insert(index, self.blocks.len());
        self.blocks.push(Block { value: block.clone(), input: String::new(), shown, is_open: true });
    }

    /// Returns true if the gateway may write more before the round's end.
    pub(super) fn is_end_held(&self) -> bool {
        self.has_ours || self.has_awaiting
    }

    /// None if no block has this index.
    pub(super) fn shown(&self, index: u64) -> Option<Shown> {
        Some(self.blocks.get(*self.places.get(&index)?)?.shown)
    }

    pub(super) fn add_delta(&mut self, index: u64, delta: &Value) {
        let place = self.places.get(&index);
        if let Some(block) = place.and_then(|place| self.blocks.get_mut(*place)) {
            block.add(delta);
        }
    }

    pub(super) fn end_block(&mut self, index: u64) {
        let place = self.places.get(&index);
        if let Some(block) = place.and_then(|place| self.blocks.get_mut(*place)) {
            block.is_open = false;
        }
    }

    /// The blocks that the client has: index, type, and true if the block is open.
    pub(super) fn shown_blocks(&self) -> impl Iterator<Item = (u64, &str, bool)> {
        self.blocks.iter().filter_map(|block| match block.shown {
            Shown::As(index) => Some((index, text(&block.value["type"]), block.is_open)),
            Shown::Nothing => None,
        })
    }

    /// Takes what a `message_delta` says of the whole message.
    pub(super) fn add_message_delta(&mut self, event: &Value) {
        merge(&mut self.message, &event["delta"]);
        if event["usage"].is_object() {
            let usage = self.message.entry("usage").or_insert_with(|| json!({}));
            usage.as_object_mut().into_iter().for_each(|usage| merge(usage, &event["usage"]));
        }
        self.is_ended = true;
    }

    pub(super) fn hold_delta(&mut self, event: &Value) {
        let held = self.held_delta.get_or_insert_with(|| event.clone());
        for part in ["delta", "usage"] {
            if let Some(fields) = held.get_mut(part).and_then(Value::as_object_mut) {
                merge(fields, &event[part]);
            }
        }
    }

    /// Tokens that the provider counted so far.
    pub(super) fn usage(&self) -> Usage {
        Usage::of(self.message.get("usage"))
    }

    pub(super) fn into_whole(self) -> WholeRound {
        let mut broken = HashMap::new();
        let mut content = Vec::new();
        for (index, block) in self.blocks.into_iter().enumerate() {
            let (value, text) = block.into_value();
            content.push(value);
            broken.extend(text.map(|text| (("/content".to_owned(), index), text)));
        }
        let mut message = self.message;
        message.insert("content".to_owned(), content.into());
        WholeRound { response: message.into(), broken }
    }
}

impl Block {
    /// Texts grow, lists get longer, all else is set: so that a kind of delta that is not known here is taken too.
    fn add(&mut self, delta: &Value) {
        let Some(block) = self.value.as_object_mut() else { return };
        match delta["type"].as_str() {
            Some("input_json_delta") => {
                self.input.push_str(delta["partial_json"].as_str().unwrap_or_default());
            }
            Some("citations_delta") => {
                let citations = block.entry("citations").or_insert(Value::Null);
                match citations {
                    Value::Array(list) => list.push(delta["citation"].clone()),
                    other => *other = json!([delta["citation"]]),
                }
            }
            Some("signature_delta") => {
                block.insert("signature".to_owned(), delta["signature"].clone());
            }
            _ => {
                let fields = delta.as_object().into_iter().flatten().filter(|(name, _)| *name != "type");
                for (name, value) in fields {
                    match (block.get_mut(name), value) {
                        (Some(Value::String(text)), Value::String(more)) => text.push_str(more),
                        _ => _ = block.insert(name.clone(), value.clone()),
                    }
                }
            }
        }
    }

    /// The block, and the text of an input that is not JSON: the block then has an empty one.
    fn into_value(self) -> (Value, Option<String>) {
        let Self { mut value, input, shown: _, is_open: _ } = self;
        if input.is_empty() {
            return (value, None);
        }
        let (input, broken) = match serde_json::from_str(&input) {
            Ok(input) => (input, None),
            Err(_) => (json!({}), Some(input)),
        };
        if let Some(block) = value.as_object_mut() {
            block.insert("input".to_owned(), input);
        }
        (value, broken)
    }
}

fn merge(into: &mut Map<String, Value>, from: &Value) {
    for (name, value) in from.as_object().into_iter().flatten() {
        into.insert(name.clone(), value.clone());
    }
}

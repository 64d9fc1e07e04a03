//! One event of the stream: its bytes, its JSON and what kind it is.

use serde_json::{Map, Value};

use crate::{sse::RawEvent, stream::SseEvent};

#[derive(Clone)]
pub(super) struct ResponseEvent {
    pub(super) raw: RawEvent,
    pub(super) data: Map<String, Value>,
}

/// The meaning of an event for the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// The response exists or has begun.
    Begin,
    ItemAdded,
    ItemDone,
    /// The response is complete, or as complete as the limits allow.
    End,
    /// The provider failed, with the response so far.
    Failed,
    /// The provider failed, with an error alone.
    Error,
    /// Anything else, mostly about an item.
    Other,
}

impl ResponseEvent {
    /// The event, or its bytes where its data is no JSON object: comments, `[DONE]`, damage.
    pub(super) fn read(event: SseEvent) -> Result<Self, RawEvent> {
        let SseEvent { raw, data } = event;
        match data {
            Some(Value::Object(data)) => Ok(Self { raw, data }),
            _ => Err(raw),
        }
    }

    pub(super) fn kind(&self) -> EventKind {
        match self.name() {
            "response.created" | "response.queued" | "response.in_progress" => EventKind::Begin,
            "response.output_item.added" => EventKind::ItemAdded,
            "response.output_item.done" => EventKind::ItemDone,
            "response.completed" | "response.incomplete" => EventKind::End,
            "response.failed" => EventKind::Failed,
            "error" => EventKind::Error,
            _ => EventKind::Other,
        }
    }

    fn name(&self) -> &str {
        let named = self.data.get("type").and_then(Value::as_str);
        named.or_else(|| self.raw.event_type()).unwrap_or_default()
    }

    pub(super) fn item(&self) -> Option<&Value> {
        self.data.get("item")
    }

    pub(super) fn output_index(&self) -> Option<u64> {
        self.data.get("output_index").and_then(Value::as_u64)
    }

    /// The id of the item that the event is about.
    pub(super) fn item_id(&self) -> Option<&str> {
        let id = self.data.get("item_id").or_else(|| self.item()?.get("id"));
        id.and_then(Value::as_str).filter(|id| !id.is_empty())
    }

    /// A piece of a message's text.
    pub(super) fn text_delta(&self) -> Option<&str> {
        match self.name() {
            "response.output_text.delta" => self.data.get("delta")?.as_str(),
            _ => None,
        }
    }

    /// A piece of a function call's arguments.
    pub(super) fn arguments_delta(&self) -> Option<&str> {
        let is_delta = self.name() == "response.function_call_arguments.delta";
        self.data.get("delta").and_then(Value::as_str).filter(|_| is_delta)
    }

    /// The name and the whole arguments of a function call.
    pub(super) fn arguments_done(&self) -> Option<(&str, &str)> {
        let is_done = self.name() == "response.function_call_arguments.done";
        let arguments = self.data.get("arguments").and_then(Value::as_str).filter(|_| is_done)?;
        Some((self.data.get("name").and_then(Value::as_str).unwrap_or_default(), arguments))
    }
}

//! The client's view over all rounds, and its own numbers.

use serde_json::{Map, Value, json};

use super::{event::ResponseEvent, fields};
use crate::{
    DialectName, ErrorDetail, RoundEnd, StreamError, Usage,
    openai_responses::item,
    sse::{EVENT_LIMIT_BYTES, RawEvent, write},
    stream::ContinuedResponse,
    wire::text,
};

/// Events that begin one response: `created`, `queued`, `in_progress`. No more are held.
pub(super) const BEGINNING_LIMIT: usize = 4;

/// The client's side of the stream.
#[derive(Clone, Default)]
pub(super) struct ClientStream {
    /// Something was held back: numbers differ from the provider's.
    is_changed: bool,
    /// The client did not ask for the content of the current round's reasoning.
    hides_reasoning: bool,
    /// The provider numbers its events.
    has_numbers: bool,
    next_number: u64,
    next_index: u64,
    /// The events that begin a response, held until the client gets anything else. The client sees one response only,
    /// and continues from it: the last round's, unless an earlier round had something for the client.
    beginning: Vec<ResponseEvent>,
    visible: VisibleRound,
    /// Fields of that response, which its end repeats.
    repeated: Map<String, Value>,
    /// The client's items of all ended rounds, in order.
    items: Vec<Value>,
    held: Option<EndEvent>,
    continued: Option<ContinuedResponse>,
}

/// The round whose response the client saw.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum VisibleRound {
    #[default]
    None,
    Earlier,
    Current,
}

/// The end of a round with skill calls, or with a call that awaits confirmation.
#[derive(Clone)]
struct EndEvent {
    event: ResponseEvent,
    response: Value,
    /// Bytes after it that are no event of the API, such as `[DONE]`.
    trailing: Vec<u8>,
}

impl ClientStream {
    /// Returns true while the client gets the provider's bytes.
    pub(super) fn is_exact(&self) -> bool {
        !self.is_changed
    }

    pub(super) fn change(&mut self) {
        self.is_changed = true;
    }

    pub(super) fn hide_reasoning(&mut self) {
        self.hides_reasoning = true;
    }

    /// Later rounds come back with a seal, and then whole.
    pub(super) fn begin_next_round(&mut self) {
        self.is_changed = true;
        self.hides_reasoning = false;
        if self.visible == VisibleRound::Current {
            self.visible = VisibleRound::Earlier;
        }
    }

    /// Forgets a round that was broken off.
    pub(super) fn abandon_round(&mut self) {
        self.beginning.clear();
        self.begin_next_round();
    }

    pub(super) fn take_continued(&mut self) -> Option<ContinuedResponse> {
        self.continued.take()
    }

    pub(super) fn holds_end(&self) -> bool {
        self.held.is_some()
    }

    /// Drops the held end: another round has begun and will have an end of its own.
    pub(super) fn forget_held(&mut self) {
        self.held = None;
    }

    /// Takes an event that begins a response. `is_new` where it is the first one of its round.
    pub(super) fn begin(&mut self, event: ResponseEvent, is_new: bool, out: &mut Vec<u8>) {
        match self.visible {
            VisibleRound::None => {}
            VisibleRound::Earlier => return,
            VisibleRound::Current => return self.pass(event, None, out),
        }
        if is_new {
            self.beginning.clear();
        }
        self.beginning.push(event);
        if self.beginning.len() >= BEGINNING_LIMIT {
            self.write_beginning(out);
        }
    }

    /// Handles a round without an end: unless an end is held back, the client gets the events so far.
    pub(super) fn flush_beginning(&mut self, out: &mut Vec<u8>) {
        if self.held.is_none() {
            self.write_beginning(out);
        }
    }

    fn write_beginning(&mut self, out: &mut Vec<u8>) {
        if self.beginning.is_empty() {
            return;
        }
        self.visible = VisibleRound::Current;
        for event in std::mem::take(&mut self.beginning) {
            for field in ["id", "created_at"] {
                if let Some(value) = event.data.get("response").and_then(|response| response.get(field)) {
                    self.repeated.insert(field.to_owned(), value.clone());
                }
            }
            self.write(event, None, out);
        }
    }

    /// The index that an item has for the client.
    pub(super) fn place(&mut self, index: Option<u64>) -> u64 {
        let index = index.filter(|_| self.is_exact()).unwrap_or(self.next_index);
        self.next_index = self.next_index.max(index.saturating_add(1));
        index
    }

    /// Passes an event, with the index of its item if it has one.
    pub(super) fn pass(&mut self, event: ResponseEvent, index: Option<u64>, out: &mut Vec<u8>) {
        self.write_beginning(out);
        self.write(event, index, out);
    }

    fn write(&mut self, mut event: ResponseEvent, index: Option<u64>, out: &mut Vec<u8>) {
        if self.hides_reasoning && event.data.get_mut("item").is_some_and(item::hide_reasoning) {
            self.change();
        }
        if self.is_exact() {
            if let Some(number) = event.data.get("sequence_number").and_then(Value::as_u64) {
                (self.has_numbers, self.next_number) = (true, number.saturating_add(1));
            }
            out.extend_from_slice(&event.raw.0);
            return;
        }
        if event.data.contains_key("output_index") {
            let index = index.unwrap_or(self.next_index);
            event.data.insert("output_index".to_owned(), json!(index));
        }
        self.number(&mut event.data);
        write(event.raw.event_type(), &Value::Object(event.data).to_string(), out);
    }

    fn number(&mut self, data: &mut Map<String, Value>) {
        if data.contains_key("sequence_number") {
            data.insert("sequence_number".to_owned(), json!(self.next_number));
            self.next_number = self.next_number.saturating_add(1);
        }
    }

    /// Passes bytes that are no event of the API, at their place.
    pub(super) fn pass_unread(&mut self, raw: &RawEvent, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let Some(held) = &mut self.held else {
            self.pass_bytes(raw, out);
            return Ok(());
        };
        held.trailing.extend_from_slice(&raw.0);
        if held.trailing.len() > EVENT_LIMIT_BYTES {
            return Err(StreamError::TooLarge { limit: EVENT_LIMIT_BYTES });
        }
        Ok(())
    }

    /// Passes bytes while no end is held back.
    pub(super) fn pass_bytes(&mut self, raw: &RawEvent, out: &mut Vec<u8>) {
        self.write_beginning(out);
        out.extend_from_slice(&raw.0);
    }

    /// Takes over a round's items for the client.
    pub(super) fn keep(&mut self, mut items: Vec<Value>) {
        if self.hides_reasoning {
            items.iter_mut().for_each(|item| self.is_changed |= item::hide_reasoning(item));
        }
        self.items.extend(items);
    }

    /// Passes the round's end, or holds it back if more may come before it.
    pub(super) fn end_round(
        &mut self,
        event: ResponseEvent,
        end: &RoundEnd,
        total: &Usage,
        out: &mut Vec<u8>,
    ) {
        if !end.skill_calls.is_empty() || !end.awaiting_confirmation.is_empty() {
            // Events before it take the next numbers.
            self.change();
            self.has_numbers |= event.data.contains_key("sequence_number");
            self.held = Some(EndEvent { event, response: end.response.clone(), trailing: Vec::new() });
        } else if self.is_exact() {
            self.pass(event, None, out);
        } else {
            self.write_end(event, end.response.clone(), total, out);
        }
    }

    /// Writes the end that is held back.
    pub(super) fn finish(&mut self, total: &Usage, out: &mut Vec<u8>) {
        let Some(EndEvent { event, response, trailing }) = self.held.take() else { return };
        self.write_end(event, response, total, out);
        out.extend_from_slice(&trailing);
    }

    /// Writes an end for all rounds.
    fn write_end(&mut self, mut event: ResponseEvent, response: Value, total: &Usage, out: &mut Vec<u8>) {
        self.write_beginning(out);
        let (last_id, is_stored) = (text(&response["id"]).to_owned(), response["store"] != false);
        let mut response = fields(response);
        response.extend(self.repeated.clone());
        let shown_id = response.get("id").map_or("", text).to_owned();
        if is_stored && shown_id != last_id {
            self.continued = Some(ContinuedResponse { shown_id, last_id });
        }
        response.insert("output".to_owned(), Value::Array(std::mem::take(&mut self.items)));
        total.write(response.get_mut("usage"));
        event.data.insert("response".to_owned(), Value::Object(response));
        self.pass(event, None, out);
    }

    pub(super) fn write_error(&mut self, error: &ErrorDetail<'_>, out: &mut Vec<u8>) {
        self.write_beginning(out);
        let (kind, data) = DialectName::OpenAiResponses.error_event(error);
        let mut data = fields(data);
        // The SDKs' type of this event has a number also where the provider's events have none.
        data.insert("sequence_number".to_owned(), json!(self.next_number));
        write(kind, &Value::Object(data).to_string(), out);
    }

    /// Writes a message of the model, before the end that is held back.
    pub(super) fn write_message(&mut self, message: &Value, text: &str, out: &mut Vec<u8>) {
        self.write_item(message.clone(), &message_events(&message["id"], text), out);
    }

    /// Ends a message that the provider broke off after `text`.
    pub(super) fn end_message(&mut self, index: u64, mut message: Value, text: &str, out: &mut Vec<u8>) {
        let [_, _, text_done, part_done] = message_events(&message["id"], text);
        if let Some(fields) = message.as_object_mut() {
            let content = if text.is_empty() { json!([]) } else { json!([item::text_part(text)]) };
            fields.insert("content".to_owned(), content);
            fields.insert("status".to_owned(), json!("incomplete"));
        }
        if !text.is_empty() {
            self.write_events(index, &[text_done, part_done], out);
        }
        self.write_events(index, &[("response.output_item.done", json!({ "item": message }))], out);
        self.items.push(message);
    }

    /// Writes an item of the gateway: its beginning, these events, and its end.
    pub(super) fn write_item(&mut self, item: Value, events: &[(&str, Value)], out: &mut Vec<u8>) {
        self.write_beginning(out);
        let index = self.place(None);
        let mut begun = item.clone();
        if let Some(fields) = begun.as_object_mut().filter(|fields| fields.contains_key("content")) {
            fields.insert("status".to_owned(), json!("in_progress"));
            fields.insert("content".to_owned(), json!([]));
        }
        let added = ("response.output_item.added", json!({ "item": begun }));
        let done = ("response.output_item.done", json!({ "item": item }));
        self.write_events(index, &[added], out);
        self.write_events(index, events, out);
        self.write_events(index, &[done], out);
        self.items.push(item);
    }

    fn write_events(&mut self, index: u64, events: &[(&str, Value)], out: &mut Vec<u8>) {
        for (kind, data) in events {
            let mut data = fields(data.clone());
            data.insert("type".to_owned(), json!(kind));
            data.insert("output_index".to_owned(), json!(index));
            if self.has_numbers {
                data.insert("sequence_number".to_owned(), Value::Null);
            }
            self.number(&mut data);
            write(Some(kind), &Value::Object(data).to_string(), out);
        }
    }
}

/// The events of a message of one text, between its beginning and its end.
fn message_events(id: &Value, text: &str) -> [(&'static str, Value); 4] {
    let part = |text: &str| json!({"item_id": id, "content_index": 0, "part": item::text_part(text)});
    let words = |field: &str| json!({"item_id": id, "content_index": 0, "logprobs": [], field: text});
    [
        ("response.content_part.added", part("")),
        ("response.output_text.delta", words("delta")),
        ("response.output_text.done", words("text")),
        ("response.content_part.done", part(text)),
    ]
}

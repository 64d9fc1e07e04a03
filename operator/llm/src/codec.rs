//! One provider's wire format as a codec, and the walks over requests, histories and responses that all dialects share.
//!
//! A codec says how one part of a turn reads and is written: a call, a result, a text. The walks over those parts are
//! written here once, as the [`Dialect`] of every codec. Parts that no codec knows pass as they are.

mod placed_call;
mod replace_calls;

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value, json};

use crate::{
    Dialect, DialectError, OfferedNames, StreamFilter, ToolCall, ToolDefinition, ToolResult, Usage,
    history::{CallPairing, HistoryCall, ResultLocation},
    stream::{LastRoundFilter, RoundsFilter, StreamCodec},
    user_turns::user_turns,
    wire::{self, items},
};

pub(crate) use placed_call::{PlacedCall, RawCall, place, placed_calls};
use replace_calls::replace_calls;

static MISSING: Value = Value::Null;

/// A client's result as a part of a turn has it. The id, the name or both say to which call it belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawResult<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) content: &'a Value,
}

/// A text of the gateway for the client.
pub(crate) struct ClientText {
    /// Unique within the response, if the dialect's texts have ids.
    pub(crate) id: String,
    pub(crate) text: String,
}

/// The parts of a provider's wire format that differ from the other dialects'.
pub(crate) trait Codec: Send + Sync {
    type Stream: StreamCodec + 'static;

    /// The field of a request with the turns of the conversation.
    const TURNS: &'static str;
    /// The pointer from a turn of a request to its parts. Empty if the turn is one part.
    const PARTS: &'static str;
    /// True if one turn of the model may be several items, with calls and results between each other.
    const HAS_SPLIT_TURNS: bool = false;
    /// True if the provider refuses a tool that is no object.
    const HAS_OBJECT_TOOLS: bool = true;

    fn client_tool_names(request: &Value) -> Vec<&str>;
    fn texts(request: &Value) -> Vec<&str>;
    fn is_streaming(request: &Value) -> bool {
        request["stream"] == true
    }
    /// Entries for the request's `tools`.
    fn tool_entries(tools: &[ToolDefinition]) -> Vec<Value>;

    /// Asks for content of reasoning, which the next request needs. Returns false if the client asked for it, or the
    /// provider gives none.
    fn prepare_rounds(_request: &mut Value) -> bool {
        false
    }
    /// Removes that content from a whole response.
    fn hide_reasoning(_response: &mut Value) {}

    /// Returns true for a turn of a request that the model made.
    fn is_model_turn(turn: &Value) -> bool;
    /// The parts of a turn that may be calls or results.
    fn parts(turn: &Value) -> &[Value] {
        if Self::PARTS.is_empty() {
            std::slice::from_ref(turn)
        } else {
            items(turn.pointer(Self::PARTS).unwrap_or(&MISSING))
        }
    }
    fn read_call(part: &Value) -> Option<RawCall<'_>>;
    fn read_result(part: &Value) -> Option<RawResult<'_>>;
    /// Writes a skill's result over the client's.
    fn write_result(part: &mut Map<String, Value>, result: &ToolResult);
    /// Reorders turns that the provider would refuse. Returns true if it changed the request.
    fn repair_history(_request: &mut Value) -> bool {
        false
    }

    /// JSON pointers to the lists of a response whose calls are read.
    fn call_lists(response: &Value) -> Vec<String>;
    /// The calls of such a list, by index.
    fn calls(list: &[Value]) -> Vec<(usize, RawCall<'_>)> {
        let calls = list.iter().enumerate();
        calls.filter_map(|(index, part)| Some((index, Self::read_call(part)?))).collect()
    }
    /// Returns true if a limit ended the response: its last call may lack a part of its arguments.
    fn is_cut(response: &Value) -> bool;
    /// Returns true if the request asks for JSON as text.
    fn wants_json(request: &Value) -> bool;
    /// The pointer to a response's usage.
    fn usage_pointer(_response: &Value) -> &'static str {
        "/usage"
    }

    /// Takes the turns out of a request, to continue them. None if they have another shape.
    fn take_turns(request: &mut Map<String, Value>) -> Option<Vec<Value>> {
        match request.entry(Self::TURNS).or_insert_with(|| json!([])) {
            Value::Array(turns) => Some(std::mem::take(turns)),
            _ => None,
        }
    }
    /// The model's turn as the provider takes it back.
    fn model_turn(request: &Map<String, Value>, response: &Value, calls: &[PlacedCall]) -> Vec<Value>;
    /// The turns with the results of calls.
    fn result_turns(results: &[(&PlacedCall, &ToolResult)]) -> Vec<Value>;
    /// Changes fields of the next request beside its turns.
    fn continue_request(_next: &mut Map<String, Value>, _response: &Value) {}

    /// Inserts texts before the calls of a list. Returns false if there is no place for them.
    fn insert_texts(response: &mut Value, list: &str, texts: &[ClientText]) -> bool {
        let Some(parts) = response.pointer_mut(list).and_then(Value::as_array_mut) else { return false };
        let at = Self::first_call(parts).unwrap_or(parts.len());
        parts.splice(at..at, Self::text_parts(texts));
        true
    }
    fn text_parts(texts: &[ClientText]) -> Vec<Value>;
    fn first_call(list: &[Value]) -> Option<usize> {
        Self::calls(list).first().map(|(index, _)| *index)
    }
    /// The texts of the model in a response, as parts.
    fn round_texts(response: &Value) -> Vec<Value>;
    /// Inserts texts of earlier rounds before those of a response.
    fn prepend_texts(response: &mut Value, texts: Vec<Value>);
    /// Returns true for a part that stands only before another one.
    fn needs_follower(_part: &Value) -> bool {
        false
    }
    /// Passes what the first of the removed parts has for the call after them.
    fn inherit(_removed: &[Value], _next: &mut Value) {}
    /// Completes a response from which calls were removed.
    fn settle(_response: &mut Value, _removed: &[(&PlacedCall, &ToolResult)]) {}
}

impl<C: Codec> Dialect for C {
    fn client_tool_names<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        C::client_tool_names(request)
    }

    fn texts<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        C::texts(request)
    }

    fn user_turns<'a>(&self, request: &'a Value) -> Vec<Vec<&'a str>> {
        user_turns(&request[C::TURNS])
    }

    fn is_streaming(&self, request: &Value) -> bool {
        C::is_streaming(request)
    }

    fn append_tools(&self, request: &mut Value, tools: &[ToolDefinition]) -> Result<bool, DialectError> {
        if tools.is_empty() {
            return Ok(false);
        }
        wire::append_tools(request, C::tool_entries(tools), C::HAS_OBJECT_TOOLS)?;
        Ok(C::prepare_rounds(request))
    }

    fn prepend_tools(&self, request: &mut Value, tools: &[ToolDefinition]) -> Result<bool, DialectError> {
        let hides_reasoning = self.append_tools(request, tools)?;
        if !tools.is_empty()
            && let Some(list) = request["tools"].as_array_mut()
        {
            list.rotate_right(C::tool_entries(tools).len());
        }
        Ok(hides_reasoning)
    }

    fn hide_reasoning(&self, response: &mut Value) {
        C::hide_reasoning(response);
    }

    fn tool_calls(&self, response: &Value) -> Vec<ToolCall> {
        placed_calls::<C>(response).into_iter().map(|placed| placed.call).collect()
    }

    fn next_request(&self, request: &Value, response: &Value, results: &[ToolResult]) -> Value {
        let mut next = request.clone();
        let Some(fields) = next.as_object_mut() else { return next };
        let calls = placed_calls::<C>(response);
        let turn = C::model_turn(fields, response, &calls);
        if let Some(mut turns) = C::take_turns(fields) {
            turns.extend(turn);
            turns.extend(C::result_turns(&pair(&calls, results)));
            fields.insert(C::TURNS.to_owned(), turns.into());
        }
        C::continue_request(fields, response);
        next
    }

    fn client_response(&self, response: &Value, results: &[ToolResult]) -> Value {
        replace_calls::<C>(response, results, |mixed, list, texts| {
            C::insert_texts(mixed, list, texts);
        })
    }

    fn without_calls(&self, response: &Value, results: &[ToolResult]) -> Value {
        replace_calls::<C>(response, results, |_, _, _| {})
    }

    fn turns(&self, request: &Value, response: &Value, results: &[ToolResult]) -> Vec<Value> {
        let calls = placed_calls::<C>(response);
        // No other field says how the model's turn is written.
        let fields: Map<String, Value> =
            request.get("store").map(|store| ("store".to_owned(), store.clone())).into_iter().collect();
        let mut turns = C::model_turn(&fields, response, &calls);
        turns.extend(C::result_turns(&pair(&calls, results)));
        turns
    }

    fn insert_text_before_calls(&self, response: &mut Value, text: &str) -> bool {
        let calls = placed_calls::<C>(response);
        let mut is_inserted = false;
        for list in lists(&calls) {
            let first = calls.iter().find(|placed| placed.list == list).map(|placed| &*placed.call.id);
            let id = format!("confirm_{}", first.unwrap_or_default());
            is_inserted |= C::insert_texts(response, list, &[ClientText { id, text: text.to_owned() }]);
        }
        is_inserted
    }

    fn is_cut(&self, response: &Value) -> bool {
        C::is_cut(response)
    }

    fn wants_json(&self, request: &Value) -> bool {
        C::wants_json(request)
    }

    fn round_texts(&self, response: &Value) -> Vec<Value> {
        C::round_texts(response)
    }

    fn prepend_texts(&self, response: &mut Value, texts: Vec<Value>) {
        if !texts.is_empty() {
            C::prepend_texts(response, texts);
        }
    }

    fn usage(&self, response: &Value) -> Usage {
        usage::<C>(response)
    }

    fn set_usage(&self, response: &mut Value, total: &Usage) {
        total.write(response.pointer_mut(C::usage_pointer(response)));
    }

    fn history_calls<'a>(&self, request: &'a Value) -> Vec<HistoryCall<'a>> {
        let mut pairing = CallPairing::default();
        for (turn, value) in items(&request[C::TURNS]).iter().enumerate() {
            if C::is_model_turn(value) {
                pairing.begin_turn(C::HAS_SPLIT_TURNS);
                C::parts(value).iter().filter_map(C::read_call).for_each(|call| pairing.call(&call));
                continue;
            }
            for (part, value) in C::parts(value).iter().enumerate() {
                if let Some(result) = C::read_result(value) {
                    pairing.result(&result, ResultLocation { turn, part });
                }
            }
        }
        pairing.into_calls()
    }

    fn replace_result(&self, request: &mut Value, location: ResultLocation, result: &ToolResult) {
        let ResultLocation { turn, part } = location;
        let part = if C::PARTS.is_empty() { String::new() } else { format!("{}/{part}", C::PARTS) };
        let part = request.pointer_mut(&format!("/{}/{turn}{part}", C::TURNS));
        if let Some(part) = part.and_then(Value::as_object_mut) {
            C::write_result(part, result);
        }
    }

    fn repair_history(&self, request: &mut Value) -> bool {
        C::repair_history(request)
    }

    fn stream_filter(&self, offered: Arc<OfferedNames>) -> Box<dyn StreamFilter> {
        Box::new(RoundsFilter::<C::Stream>::new(offered))
    }

    fn last_round_filter(&self, offered: Arc<OfferedNames>) -> Box<dyn StreamFilter> {
        Box::new(LastRoundFilter::<C::Stream>::new(offered))
    }
}

/// The calls that have a result, in order, each with it.
fn pair<'a>(calls: &'a [PlacedCall], results: &'a [ToolResult]) -> Vec<(&'a PlacedCall, &'a ToolResult)> {
    let by_id: HashMap<&str, &ToolResult> =
        results.iter().rev().map(|result| (result.id.as_str(), result)).collect();
    calls.iter().filter_map(|placed| Some((placed, *by_id.get(placed.call.id.as_str())?))).collect()
}

/// The lists of calls, each once.
fn lists<'a>(calls: impl IntoIterator<Item = &'a PlacedCall>) -> Vec<&'a str> {
    let mut lists: Vec<&str> = calls.into_iter().map(|placed| placed.list.as_str()).collect();
    lists.dedup();
    lists
}

/// Tokens that a whole response counts.
pub(crate) fn usage<C: Codec>(response: &Value) -> Usage {
    Usage::of(response.pointer(C::usage_pointer(response)))
}

/// Texts as one, with a blank line between them.
pub(crate) fn join_texts(texts: &[ClientText]) -> String {
    texts.iter().map(|text| text.text.as_str()).collect::<Vec<_>>().join("\n\n")
}

//! Reads the tool calls of a whole response.

use std::{collections::HashSet, fmt::Write as _};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::{Arguments, ToolCall, wire::items};

/// All calls of a response, in order: of a `tool_calls` at its top, which some routers write, else of every choice.
///
/// [`super::OpenAiChat`] itself reads the first choice only, which is the one that can be continued.
pub fn read_calls(response: &Value) -> Vec<ToolCall> {
    let top = items(&response["tool_calls"]);
    if !top.is_empty() {
        return read(response, top.iter());
    }
    read(response, items(&response["choices"]).iter().flat_map(of_choice))
}

/// The calls that are continued: of the response's top, else of its first choice.
pub(super) fn of_first_choice(response: &Value) -> Vec<ToolCall> {
    read(response, first_list(response).iter())
}

/// The list that [`of_first_choice`] reads.
pub(super) fn first_list(response: &Value) -> &[Value] {
    let top = items(&response["tool_calls"]);
    if top.is_empty() { items(&response["choices"]).first().map_or(&[], of_choice) } else { top }
}

fn of_choice(choice: &Value) -> &[Value] {
    choice.get("message").map_or(&[], |message| items(&message["tool_calls"]))
}

fn read<'a>(response: &Value, calls: impl Iterator<Item = &'a Value>) -> Vec<ToolCall> {
    let mut known = HashSet::new();
    let calls = calls.filter_map(Value::as_object).enumerate();
    calls.map(|(place, call)| read_call(response, place, call, &mut known)).collect()
}

fn read_call(
    response: &Value,
    place: usize,
    call: &Map<String, Value>,
    known: &mut HashSet<String>,
) -> ToolCall {
    let id = ["call_id", "id"].into_iter().find_map(|field| text(call, field));
    let id = id
        .filter(|id| !known.contains(*id))
        .map_or_else(|| generate_id(response, place, call, known), str::to_owned);
    known.insert(id.clone());
    if let Some(kind) = foreign_type(call) {
        // Not even by its name can it be taken for a skill's: no tool name has a colon.
        let part = call.get(kind).and_then(Value::as_object);
        let name = part.and_then(|part| text(part, "name")).unwrap_or_default();
        let input = part.and_then(|part| text(part, "input")).unwrap_or_default();
        return ToolCall {
            id,
            name: format!("{kind}:{name}"),
            arguments: Arguments::NotJson(input.to_owned()),
        };
    }
    let function = call.get("function").and_then(Value::as_object);
    let name = function.and_then(|function| text(function, "name")).unwrap_or_default().to_owned();
    let arguments = arguments(function.and_then(|function| function.get("arguments")));
    ToolCall { id, name, arguments }
}

/// The type of a call that is not a function call. A missing type means a function.
pub(super) fn foreign_type(call: &Map<String, Value>) -> Option<&str> {
    text(call, "type").filter(|kind| *kind != "function")
}

/// A field that is text and not empty.
pub(super) fn text<'a>(fields: &'a Map<String, Value>, field: &str) -> Option<&'a str> {
    fields.get(field)?.as_str().filter(|text| !text.is_empty())
}

fn arguments(given: Option<&Value>) -> Arguments {
    match given {
        None | Some(Value::Null) => Arguments::Json(Value::Object(Map::new())),
        Some(Value::String(text)) if text.trim().is_empty() => Arguments::Json(Value::Object(Map::new())),
        Some(Value::String(text)) => {
            serde_json::from_str(text).map_or_else(|_| Arguments::NotJson(text.clone()), Arguments::Json)
        }
        Some(other) => Arguments::Json(other.clone()),
    }
}

/// An id for a call without one. Equal responses give equal ids, different responses different ones: runs are keyed
/// by the ids of their calls.
fn generate_id(response: &Value, place: usize, call: &Map<String, Value>, known: &HashSet<String>) -> String {
    let response_id = response.get("id").and_then(Value::as_str).unwrap_or_default();
    let call = serde_json::to_string(call).unwrap_or_default();
    let mut attempt = 0_u32;
    loop {
        let mut id = "call_".to_owned();
        let digest = Sha256::digest(format!("{response_id}\0{place}\0{attempt}\0{call}").as_bytes());
        for byte in digest.iter().take(12) {
            let _ = write!(id, "{byte:02x}");
        }
        if !known.contains(&id) {
            return id;
        }
        attempt += 1;
    }
}

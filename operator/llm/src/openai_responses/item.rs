//! One item of a response's `output`: its kind, its owner, and the items that this crate writes.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{codec::RawCall, wire::text};
use skillet_core::text::truncate;

/// Items, beside function calls, whose output the client provides. The provider runs every other kind itself.
const WAITING: [&str; 6] = [
    "apply_patch_call",
    "computer_call",
    "custom_tool_call",
    "local_shell_call",
    "mcp_approval_request",
    "shell_call",
];

/// The prefix of the ids of this crate's messages.
const OWN_ID_PREFIX: &str = "msg_skillet_";

/// Longest identifier that the provider takes back, in bytes.
const ID_LIMIT: usize = 64;

pub(super) fn is_function_call(item: &Value) -> bool {
    item["type"] == "function_call"
}

/// The name of a function that is in no namespace; empty for any other item. A function inside a namespace is the
/// client's.
pub(super) fn plain_name(item: &Value) -> &str {
    read_call(item).map_or("", |call| call.plain_name())
}

/// The call that an item may be.
pub(super) fn read_call(item: &Value) -> Option<RawCall<'_>> {
    let id = [text(&item["call_id"]), text(&item["id"])].into_iter().find(|id| !id.is_empty());
    let (kind, arguments) = if is_function_call(item) {
        (Some(text(&item["namespace"])).filter(|namespace| !namespace.is_empty()), &item["arguments"])
    } else {
        (Some(may_wait(item)?), item.get("input").unwrap_or(&item["action"]))
    };
    Some(RawCall { id: id.unwrap_or_default(), kind, name: text(&item["name"]), arguments })
}

/// The kind of an item whose output the client may have to give.
fn may_wait(item: &Value) -> Option<&str> {
    let kind = item["type"].as_str()?;
    let is_waiting = kind == "function_call"
        || WAITING.contains(&kind)
        || (kind == "tool_search_call" && item["execution"] == "client");
    is_waiting.then_some(kind)
}

/// Ids of the calls whose output is in the same response: the provider has run them.
pub(super) struct Answered<'a>(HashSet<&'a str>);

impl<'a> Answered<'a> {
    pub(super) fn in_output(output: &'a [Value]) -> Self {
        let is_output = |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_output"));
        Self(output.iter().filter(is_output).filter_map(|item| item["call_id"].as_str()).collect())
    }

    /// Returns true if the model waits for the client's output of `item`.
    pub(super) fn is_waiting(&self, item: &Value) -> bool {
        may_wait(item).is_some() && !item["call_id"].as_str().is_some_and(|id| self.0.contains(id))
    }
}

/// An item of a response as an item of the next request. None if the request may not hold it.
pub(super) fn as_input(item: &Value, call_id: Option<&str>, is_stored: bool) -> Option<Value> {
    let mut fields = item.as_object()?.clone();
    let kind = item["type"].as_str().unwrap_or_default();
    // Reasoning that is neither stored nor carried by the item is known to nobody, and its bare id is refused.
    if kind == "reasoning" && !is_stored && !item["encrypted_content"].is_string() {
        return None;
    }
    // Answers may say null where a request must leave the field out.
    for field in ["status", "content", "encrypted_content"] {
        if fields.get(field).is_some_and(Value::is_null) {
            fields.remove(field);
        }
    }
    for field in ["created_by", "parsed_arguments"] {
        fields.remove(field);
    }
    if kind == "image_generation_call" {
        // A response also says size, quality and more, which the item of a request has not.
        fields.retain(|field, _| matches!(field.as_str(), "type" | "id" | "status" | "result"));
    }
    if let Some(call_id) = call_id.filter(|_| kind == "function_call") {
        fields.insert("call_id".to_owned(), call_id.into());
    }
    Some(Value::Object(fields))
}

/// Removes the content of a reasoning item, which only a request needs. Returns true if it had some.
pub(super) fn hide_reasoning(item: &mut Value) -> bool {
    if item["type"] != "reasoning" {
        return false;
    }
    let content = item.as_object_mut().and_then(|fields| fields.remove("encrypted_content"));
    content.is_some_and(|content| !content.is_null())
}

/// A message of the gateway in the model's name. The provider takes one back only with an id that begins with `msg_`.
pub(super) fn message(id: &str, text: &str) -> Value {
    json!({
        "type": "message", "id": shorten(&format!("{OWN_ID_PREFIX}{id}")), "role": "assistant", "status": "completed", "content": [text_part(text)],
    })
}

pub(super) fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// Returns true for an item that says nothing but the id of a message of the gateway, which no provider knows.
pub(crate) fn is_own_reference(item: &Value) -> bool {
    item["content"].is_null() && item["id"].as_str().is_some_and(|id| id.starts_with(OWN_ID_PREFIX))
}

fn shorten(id: &str) -> String {
    truncate(id, ID_LIMIT).0.to_owned()
}

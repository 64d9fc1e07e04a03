//! A request of the Responses API: its tools and its texts.

use serde_json::{Map, Value, json};

use crate::{ToolDefinition, wire::items};

/// Hosted tools have no name of their own: the model knows them by their type.
pub(super) fn client_tool_names(request: &Value) -> Vec<&str> {
    items(&request["tools"]).iter().filter_map(tool_name).collect()
}

pub(super) fn texts(request: &Value) -> Vec<&str> {
    let mut texts: Vec<&str> = request["instructions"].as_str().into_iter().collect();
    for variable in request["prompt"]["variables"].as_object().into_iter().flat_map(Map::values) {
        push_content(variable, &mut texts);
    }
    match &request["input"] {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| push_item(item, &mut texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
    texts
}

/// The flat form. Without `strict` the provider assumes true, and refuses most schemas.
pub(super) fn definition(tool: &ToolDefinition) -> Value {
    json!({
        "type": "function", "name": &*tool.name, "description": &*tool.description,
        "parameters": &*tool.parameters, "strict": false,
    })
}

fn tool_name(tool: &Value) -> Option<&str> {
    // Some clients send the nested form of chat completions, and some providers take it.
    let name = tool["name"].as_str().or_else(|| tool["function"]["name"].as_str());
    name.or_else(|| tool["type"].as_str().filter(|kind| !matches!(*kind, "function" | "custom")))
}

fn push_item<'a>(item: &'a Value, texts: &mut Vec<&'a str>) {
    match item["type"].as_str() {
        None | Some("message") => push_content(&item["content"], texts),
        Some(kind) if kind.ends_with("_output") => push_content(&item["output"], texts),
        Some(_) => {}
    }
}

/// Text, a part with text, or a list of parts.
fn push_content<'a>(content: &'a Value, texts: &mut Vec<&'a str>) {
    match content {
        Value::String(text) => texts.push(text),
        Value::Array(parts) => {
            texts.extend(parts.iter().filter_map(|part| part.as_str().or_else(|| part["text"].as_str())));
        }
        Value::Object(part) => texts.extend(part.get("text").and_then(Value::as_str)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;

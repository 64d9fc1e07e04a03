//! A chat completion request: its tools and its texts.

use serde_json::{Value, json};

use crate::{ToolDefinition, wire::items};

pub(super) fn client_tool_names(request: &Value) -> Vec<&str> {
    let tools = items(&request["tools"])
        .iter()
        .flat_map(|tool| [tool.pointer("/function/name"), tool.pointer("/custom/name"), tool.get("name")]);
    // `functions` is the older form of tools; both share one space of names.
    let functions = items(&request["functions"]).iter().map(|function| function.get("name"));
    tools.chain(functions).flatten().filter_map(Value::as_str).collect()
}

pub(super) fn texts(request: &Value) -> Vec<&str> {
    items(&request["messages"]).iter().flat_map(|message| content_texts(&message["content"])).collect()
}

pub(super) fn definition(tool: &ToolDefinition) -> Value {
    let ToolDefinition { name, description, parameters } = tool;
    json!({"type": "function", "function": {
        "name": &**name, "description": &**description, "parameters": &**parameters,
    }})
}

/// A content's text: a string, or a list of strings and of parts with text.
fn content_texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str())).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests;

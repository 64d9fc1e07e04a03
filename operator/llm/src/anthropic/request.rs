//! An Anthropic request: its tools and its texts.

use serde_json::{Value, json};

use crate::{ToolDefinition, wire::items};

pub(super) fn client_tool_names(request: &Value) -> Vec<&str> {
    items(&request["tools"]).iter().filter_map(|tool| tool["name"].as_str()).collect()
}

pub(super) fn texts(request: &Value) -> Vec<&str> {
    let mut texts = Vec::new();
    add_texts(&request["system"], &mut texts);
    for message in items(&request["messages"]) {
        add_texts(&message["content"], &mut texts);
    }
    texts
}

pub(super) fn definition(tool: &ToolDefinition) -> Value {
    json!({"name": *tool.name, "description": *tool.description, "input_schema": *tool.parameters})
}

/// Content is a text or a list of blocks. A block's text stands in `text`, in the `content` of a result, or in the
/// `source` of a document; thinking has none of these and is left out.
fn add_texts<'a>(content: &'a Value, texts: &mut Vec<&'a str>) {
    if let Some(text) = content.as_str() {
        texts.push(text);
    }
    for block in items(content) {
        texts.extend(block.as_str().or_else(|| block["text"].as_str()));
        let source = &block["source"];
        texts.extend(source["data"].as_str().filter(|_| source["type"] == "text"));
        add_texts(&source["content"], texts);
        add_texts(&block["content"], texts);
    }
}

#[cfg(test)]
mod tests;

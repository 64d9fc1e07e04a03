//! A Gemini request: its tools and its texts.

use serde_json::{Value, json};

use super::either;
use crate::{ToolDefinition, wire::items};

pub(super) fn client_tool_names(request: &Value) -> Vec<&str> {
    let tools = items(&request["tools"]).iter();
    let functions =
        tools.flat_map(|tool| items(either(tool, "functionDeclarations", "function_declarations")));
    functions.filter_map(|function| function["name"].as_str()).collect()
}

pub(super) fn texts(request: &Value) -> Vec<&str> {
    let mut texts = Vec::new();
    add_texts(either(request, "systemInstruction", "system_instruction"), &mut texts);
    for content in items(&request["contents"]) {
        add_texts(content, &mut texts);
    }
    texts
}

/// One entry of `tools` with all functions.
///
/// `parametersJsonSchema` takes JSON Schema as it is. `parameters` takes only Google's subset of OpenAPI, and Google
/// refuses the request for any other keyword.
pub(super) fn function_declarations(tools: &[ToolDefinition]) -> Value {
    let declaration = |tool: &ToolDefinition| json!({"name": *tool.name, "description": *tool.description, "parametersJsonSchema": *tool.parameters});
    json!({"functionDeclarations": tools.iter().map(declaration).collect::<Value>()})
}

/// Texts of a content's parts, thoughts left out, and all strings of the responses of functions.
fn add_texts<'a>(content: &'a Value, texts: &mut Vec<&'a str>) {
    texts.extend(content.as_str());
    for part in items(&content["parts"]) {
        texts.extend(part["text"].as_str().filter(|_| part["thought"] != true));
        add_strings(&either(part, "functionResponse", "function_response")["response"], texts);
    }
}

fn add_strings<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(list) => list.iter().for_each(|item| add_strings(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| add_strings(field, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;

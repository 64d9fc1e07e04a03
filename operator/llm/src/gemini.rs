//! Gemini: `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`.
//!
//! Here is the request: where its tools and its text are. The answer is in `answer`, the stream in `stream`. Google's
//! JSON has camel case and is read in snake case too, as its servers do; what is written is camel case.

mod answer;
mod framing;
mod partial;
mod round;
mod sent;
mod stream;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    Dialect, DialectError, Offered, StreamFilter, ToolCall, ToolDefinition, ToolResult, Usage,
    sent::{Place, SentCall},
};

/// The dialect of Gemini's generateContent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemini;

impl Dialect for Gemini {
    /// The entries of `tools`: each holds one tool of the provider's, or a list of functions.
    fn client_tools<'a>(&self, request: &'a Value) -> Vec<&'a Value> {
        items(&request["tools"]).iter().collect()
    }

    fn client_tool_names<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        let tools = items(&request["tools"]).iter();
        let functions =
            tools.flat_map(|tool| items(either(tool, "functionDeclarations", "function_declarations")));
        functions.filter_map(|function| function["name"].as_str()).collect()
    }

    fn texts<'a>(&self, request: &'a Value) -> Vec<&'a str> {
        let mut texts = Vec::new();
        add_texts(either(request, "systemInstruction", "system_instruction"), &mut texts);
        for content in items(&request["contents"]) {
            add_texts(content, &mut texts);
        }
        texts
    }

    fn is_streaming(&self, _request: &Value) -> bool {
        false
    }

    fn offer(&self, request: &mut Value, tools: &[ToolDefinition]) -> Result<(), DialectError> {
        if tools.is_empty() {
            return Ok(());
        }
        let refused = |field: &str, message: &str| DialectError {
            field: field.to_owned(),
            message: message.to_owned(),
        };
        let Some(request) = request.as_object_mut() else {
            return Err(refused("", "the request must be an object"));
        };
        let ours = json!({"functionDeclarations": tools.iter().map(declaration).collect::<Value>()});
        match request.get_mut("tools") {
            None | Some(Value::Null) => {
                request.insert("tools".to_owned(), json!([ours]));
            }
            Some(Value::Array(list)) => match list.iter().position(|tool| !tool.is_object()) {
                Some(place) => return Err(refused(&format!("/tools/{place}"), "a tool must be an object")),
                None => list.push(ours),
            },
            Some(_) => return Err(refused("/tools", "tools must be a list")),
        }
        Ok(())
    }

    fn calls(&self, answer: &Value) -> Vec<ToolCall> {
        answer::placed_calls(answer).into_iter().map(|placed| placed.call).collect()
    }

    fn next_request(&self, request: &Value, answer: &Value, results: &[ToolResult]) -> Value {
        answer::next_request(request, answer, results)
    }

    fn mixed_answer(&self, answer: &Value, results: &[ToolResult]) -> Value {
        answer::mixed_answer(answer, results)
    }

    fn sent_calls<'a>(&self, request: &'a Value) -> Vec<SentCall<'a>> {
        sent::calls(request)
    }

    fn put_result(&self, request: &mut Value, place: Place, result: &ToolResult) {
        sent::put_result(request, place, result);
    }

    fn put_text_before_calls(&self, answer: &mut Value, text: &str) -> bool {
        answer::put_text_before_calls(answer, text)
    }

    fn usage(&self, answer: &Value) -> Usage {
        let usage = either(answer, "usageMetadata", "usage_metadata");
        let tokens = |camel: &str, snake: &str| either(usage, camel, snake).as_u64().unwrap_or_default();
        Usage {
            input: tokens("promptTokenCount", "prompt_token_count"),
            output: tokens("candidatesTokenCount", "candidates_token_count"),
        }
    }

    /// The total stays the sum of its parts: what it counts beside both, such as thoughts, is of the last round.
    fn put_usage(&self, answer: &mut Value, total: Usage) {
        let own = self.usage(answer);
        let Some(usage) = answer.get_mut("usageMetadata").and_then(Value::as_object_mut) else { return };
        put_tokens(usage, "promptTokenCount", total.input);
        put_tokens(usage, "candidatesTokenCount", total.output);
        if let Some(all) = usage.get("totalTokenCount").and_then(Value::as_u64) {
            let beside = all.saturating_sub(own.input).saturating_sub(own.output);
            let all = beside.saturating_add(total.input).saturating_add(total.output);
            put_tokens(usage, "totalTokenCount", all);
        }
    }

    fn stream(&self, offered: Arc<Offered>) -> Box<dyn StreamFilter> {
        Box::new(stream::Filter::new(offered))
    }
}

/// A count of zero is left out, as Google's JSON does.
fn put_tokens(usage: &mut Map<String, Value>, field: &str, tokens: u64) {
    if tokens > 0 || usage.contains_key(field) {
        usage.insert(field.to_owned(), tokens.into());
    }
}

/// `parametersJsonSchema` takes JSON Schema as it is. `parameters` takes Google's part of OpenAPI only, and refuses a
/// request for one keyword that it does not know.
fn declaration(tool: &ToolDefinition) -> Value {
    json!({"name": *tool.name, "description": *tool.description, "parametersJsonSchema": *tool.parameters})
}

/// A field by its camel case name, else by its snake case name.
fn either<'a>(value: &'a Value, camel: &str, snake: &str) -> &'a Value {
    value.get(camel).unwrap_or_else(|| &value[snake])
}

/// The items of a list; none where it is something else.
fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
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
#[path = "gemini/request_tests.rs"]
mod tests;

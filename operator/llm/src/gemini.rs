//! Gemini: `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`.
//!
//! Google's JSON has camel case. Snake case is read too, as Google's servers do; camel case is written. Calls are in the
//! parts of candidates. The top-level `functionCalls` of the SDKs repeats them; it is read where the candidates have
//! none.

mod signature;
mod stream;

use serde_json::{Map, Value, json};

use crate::{
    ToolDefinition, ToolResult,
    codec::{ClientText, Codec, PlacedCall, RawCall, RawResult},
    wire::{items, object, text},
};
use signature::Signature;

/// Names of the SDK's list of calls.
const SDK_LISTS: [&str; 2] = ["functionCalls", "function_calls"];

/// The dialect of Gemini's generateContent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemini;

impl Codec for Gemini {
    type Stream = stream::Chunks;

    const TURNS: &'static str = "contents";
    const PARTS: &'static str = "/parts";

    fn client_tool_names(request: &Value) -> Vec<&str> {
        let tools = items(&request["tools"]).iter();
        let functions =
            tools.flat_map(|tool| items(either(tool, "functionDeclarations", "function_declarations")));
        functions.filter_map(|function| function["name"].as_str()).collect()
    }

    fn texts(request: &Value) -> Vec<&str> {
        let mut texts = Vec::new();
        add_texts(either(request, "systemInstruction", "system_instruction"), &mut texts);
        for content in items(&request["contents"]) {
            add_texts(content, &mut texts);
        }
        texts
    }

    fn is_streaming(_request: &Value) -> bool {
        false
    }

    /// One entry of `tools` with all functions.
    ///
    /// `parametersJsonSchema` takes JSON Schema as it is. `parameters` takes only Google's subset of OpenAPI, and Google
    /// refuses the request for any other keyword.
    fn tool_entries(tools: &[ToolDefinition]) -> Vec<Value> {
        let declaration = |tool: &ToolDefinition| json!({"name": *tool.name, "description": *tool.description, "parametersJsonSchema": *tool.parameters});
        vec![json!({"functionDeclarations": tools.iter().map(declaration).collect::<Value>()})]
    }

    fn is_model_turn(turn: &Value) -> bool {
        turn["role"] == "model"
    }

    /// A part's call, or a call of the SDK's list. Only such a call has its name outside a part's `functionCall`.
    fn read_call(part: &Value) -> Option<RawCall<'_>> {
        let call = call_of(part).or_else(|| part["name"].is_string().then_some(part))?;
        let (id, name) = (text(&call["id"]), text(&call["name"]));
        Some(RawCall { id, kind: None, name, arguments: object(&call["args"]) })
    }

    fn read_result(part: &Value) -> Option<RawResult<'_>> {
        let response = either(part, "functionResponse", "function_response");
        let (id, name, content) = (text(&response["id"]), text(&response["name"]), &response["response"]);
        response.is_object().then_some(RawResult { id, name, content })
    }

    fn write_result(part: &mut Map<String, Value>, result: &ToolResult) {
        for name in ["functionResponse", "function_response"] {
            if let Some(response) = part.get_mut(name).and_then(Value::as_object_mut) {
                response.insert("response".to_owned(), response_object(result));
            }
        }
    }

    fn call_lists(response: &Value) -> Vec<String> {
        let calls = |candidate: &Value| Self::first_call(items(&candidate["content"]["parts"]));
        let candidates = items(&response["candidates"]).iter().enumerate();
        let lists: Vec<String> = candidates
            .filter_map(|(index, candidate)| {
                calls(candidate).map(|_| format!("/candidates/{index}/content/parts"))
            })
            .collect();
        let listed = || SDK_LISTS.iter().filter(|name| response.get(**name).is_some());
        if lists.is_empty() { listed().map(|name| format!("/{name}")).take(1).collect() } else { lists }
    }

    fn is_cut(response: &Value) -> bool {
        let reason = |candidate| either(candidate, "finishReason", "finish_reason");
        items(&response["candidates"]).iter().any(|candidate| reason(candidate) == "MAX_TOKENS")
    }

    fn wants_json(request: &Value) -> bool {
        let config = either(request, "generationConfig", "generation_config");
        either(config, "responseMimeType", "response_mime_type") == "application/json"
    }

    fn usage_pointer(response: &Value) -> &'static str {
        if response.get("usageMetadata").is_some() { "/usageMetadata" } else { "/usage_metadata" }
    }

    /// The candidate's content as it was: its thought signatures are checked by the provider. Calls of the SDK's list are
    /// written as the parts that they were. Without parts there is no turn: an empty content is refused.
    fn model_turn(_request: &Map<String, Value>, response: &Value, calls: &[PlacedCall]) -> Vec<Value> {
        let list = calls.first().map_or("", |placed| &*placed.list);
        let candidate = list.strip_suffix("/parts").unwrap_or("/candidates/0/content");
        let content = response.pointer(candidate).and_then(Value::as_object);
        let mut turn = content.cloned().unwrap_or_default();
        turn.entry("role").or_insert_with(|| "model".into());
        if let Some(name) = list.strip_prefix('/').filter(|name| SDK_LISTS.contains(name)) {
            let listed = items(&response[name]).iter().filter(|call| call.is_object());
            turn.insert("parts".to_owned(), listed.map(|call| json!({"functionCall": call})).collect());
        }
        let has_parts = turn.get("parts").and_then(Value::as_array).is_some_and(|parts| !parts.is_empty());
        has_parts.then(|| turn.into()).into_iter().collect()
    }

    /// One turn continues one candidate: the first that calls. Results of calls in another one have no place.
    fn result_turns(results: &[(&PlacedCall, &ToolResult)]) -> Vec<Value> {
        let first = results.first().map_or("", |(placed, _)| &*placed.list);
        let of_first = results.iter().filter(|(placed, _)| placed.list == first);
        let parts: Vec<Value> = of_first.map(|(placed, result)| response_part(placed, result)).collect();
        if parts.is_empty() { parts } else { vec![json!({"role": "user", "parts": parts})] }
    }

    /// A client that reads the SDK's list gets texts in the first candidate, which is created if there is none.
    fn insert_texts(response: &mut Value, list: &str, texts: &[ClientText]) -> bool {
        let parts = Self::text_parts(texts);
        if !list.strip_prefix('/').is_some_and(|name| SDK_LISTS.contains(&name)) {
            let Some(own) = response.pointer_mut(list).and_then(Value::as_array_mut) else { return false };
            let at = Self::first_call(own).unwrap_or(own.len());
            own.splice(at..at, parts);
            return true;
        }
        let Some(candidates) =
            response.as_object_mut().map(|fields| fields.entry("candidates").or_insert(Value::Null))
        else {
            return false;
        };
        if candidates.is_null() || candidates.as_array().is_some_and(Vec::is_empty) {
            *candidates =
                json!([{"content": {"role": "model", "parts": []}, "finishReason": "STOP", "index": 0}]);
        }
        candidates.get_mut(0).is_some_and(|candidate| add_parts(candidate, parts))
    }

    fn text_parts(texts: &[ClientText]) -> Vec<Value> {
        texts.iter().map(|text| json!({"text": text.text})).collect()
    }

    fn round_texts(response: &Value) -> Vec<Value> {
        let parts = items(&response["candidates"][0]["content"]["parts"]).iter();
        let said: String =
            parts.filter(|part| part["thought"] != true).map(|part| text(&part["text"])).collect();
        if said.is_empty() { Vec::new() } else { vec![json!({ "text": said })] }
    }

    /// Clients join the texts of parts, so that each ends with a blank line.
    fn prepend_texts(response: &mut Value, texts: Vec<Value>) {
        let apart = texts.iter().map(|part| json!({"text": format!("{}\n\n", text(&part["text"]))}));
        if let Some(candidate) = response.pointer_mut("/candidates/0") {
            add_parts(candidate, apart.collect());
        }
    }

    fn inherit(removed: &[Value], next: &mut Value) {
        let mut signature = Signature::default();
        removed.iter().for_each(|part| signature.take_from(part));
        signature.apply_to(next);
    }

    /// Removes calls from the SDK's lists too, which repeat those of the candidates.
    fn settle(response: &mut Value, removed: &[(&PlacedCall, &ToolResult)]) {
        let is_removed = |name: &str| removed.iter().any(|(placed, _)| placed.call.name == name);
        for list in SDK_LISTS {
            if let Some(calls) = response.get_mut(list).and_then(Value::as_array_mut) {
                calls.retain(|call| !is_removed(text(&call["name"])));
            }
        }
    }
}

/// A field by its camel case name, else by its snake case name.
fn either<'a>(value: &'a Value, camel: &str, snake: &str) -> &'a Value {
    value.get(camel).unwrap_or_else(|| &value[snake])
}

/// The call that a part is, if it is one.
fn call_of(part: &Value) -> Option<&Value> {
    Some(either(part, "functionCall", "function_call")).filter(|call| call.is_object())
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

/// The id goes back only if the provider gave it: it refuses one that it does not know.
fn response_part(placed: &PlacedCall, result: &ToolResult) -> Value {
    let mut response = json!({"name": placed.call.name, "response": response_object(result)});
    if placed.has_own_id {
        response["id"] = placed.call.id.as_str().into();
    }
    json!({"functionResponse": response})
}

/// The object that Gemini requires as a function response; its key `error` marks an error. A truncated result is not
/// JSON any more and becomes text.
fn response_object(result: &ToolResult) -> Value {
    let content = serde_json::from_str(&result.content).unwrap_or_else(|_| result.content.as_str().into());
    match (content, result.is_error) {
        (Value::Object(fields), false) => fields.into(),
        (Value::Object(fields), true) if fields.contains_key("error") => fields.into(),
        (content, true) => json!({ "error": content }),
        (content, false) => json!({ "result": content }),
    }
}

/// Adds parts before those of a candidate. Returns false if it has no place for them.
fn add_parts(candidate: &mut Value, mut parts: Vec<Value>) -> bool {
    let Some(candidate) = candidate.as_object_mut() else { return false };
    let content = candidate.entry("content").or_insert_with(|| json!({"role": "model"}));
    let Some(content) = content.as_object_mut() else { return false };
    let list = content.entry("parts").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return false };
    parts.append(list);
    *list = parts;
    true
}

#[cfg(test)]
mod tests;

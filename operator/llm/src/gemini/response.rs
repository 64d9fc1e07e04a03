//! A whole Gemini response: its calls, the turns that continue it, and the form that a client gets.
//!
//! Calls are in the parts of candidates. The top-level `functionCalls` of the SDKs repeats them; it is read where the
//! candidates have none.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::either;
use crate::{Arguments, ToolCall, ToolResult, Usage, history::ResultsById, wire::items};

pub(super) fn tool_calls(response: &Value) -> Vec<ToolCall> {
    placed_calls(response).into_iter().map(|placed| placed.call).collect()
}

/// A call and its place in the response.
#[derive(Debug)]
pub(super) struct PlacedCall {
    /// The candidate by its place in the list, and the part. None for the SDK's list.
    pub(super) place: Option<(usize, usize)>,
    /// True if the provider gave the id.
    has_own_id: bool,
    pub(super) call: ToolCall,
}

/// Every call of a response, in order. Gemini gives ids to some calls only; the others get ids that no other call
/// has.
pub(super) fn placed_calls(response: &Value) -> Vec<PlacedCall> {
    let mut found: Vec<(Option<(usize, usize)>, &Value)> = Vec::new();
    for (candidate, value) in items(&response["candidates"]).iter().enumerate() {
        for (place, part) in items(&value["content"]["parts"]).iter().enumerate() {
            found.extend(call_of(part).map(|call| (Some((candidate, place)), call)));
        }
    }
    if found.is_empty() {
        let calls = items(either(response, "functionCalls", "function_calls"));
        found.extend(calls.iter().filter(|call| call.is_object()).map(|call| (None, call)));
    }
    let given: HashSet<&str> = found.iter().filter_map(|(_, call)| own_id(call)).collect();
    let mut ids = (0..).map(|number: usize| format!("call_skillet_{number}"));
    let mut made = || ids.find(|id| !given.contains(id.as_str())).unwrap_or_default();
    let read = |(place, call): &(Option<(usize, usize)>, &Value)| {
        let own = own_id(call);
        let id = own.map_or_else(&mut made, str::to_owned);
        let name = call["name"].as_str().unwrap_or_default().to_owned();
        let arguments = match &call["args"] {
            Value::Null => json!({}),
            args => args.clone(),
        };
        let call = ToolCall { id, name, arguments: Arguments::Json(arguments) };
        PlacedCall { place: *place, has_own_id: own.is_some(), call }
    };
    found.iter().map(read).collect()
}

/// The call that a part is, if it is one.
pub(super) fn call_of(part: &Value) -> Option<&Value> {
    Some(either(part, "functionCall", "function_call")).filter(|call| call.is_object())
}

fn own_id(call: &Value) -> Option<&str> {
    call["id"].as_str().filter(|id| !id.is_empty())
}

/// One turn continues one candidate: the first that calls. Results of calls in another one have no place.
pub(super) fn next_request(request: &Value, response: &Value, results: &[ToolResult]) -> Value {
    let mut next = request.clone();
    let calls = placed_calls(response);
    let candidate = calls.first().and_then(|placed| placed.place).map(|place| place.0);
    let mut turns: Vec<Value> = model_turn(response, candidate, &calls).into_iter().collect();
    let mut left = ResultsById::of(results);
    let of_candidate = calls.iter().filter(|placed| placed.place.map(|place| place.0) == candidate);
    let parts: Vec<Value> = of_candidate
        .filter_map(|placed| left.take(&placed.call.id).map(|result| response_part(placed, result)))
        .collect();
    if !parts.is_empty() {
        turns.push(json!({"role": "user", "parts": parts}));
    }
    if let Some(next) = next.as_object_mut() {
        let contents = next.entry("contents").or_insert_with(|| json!([]));
        if let Some(contents) = contents.as_array_mut() {
            contents.extend(turns);
        }
    }
    next
}

/// The candidate's content as it was: its thought signatures are checked by the provider. Calls of the SDK's list are
/// written as the parts that they were. None where there are no parts: an empty content is refused.
fn model_turn(response: &Value, candidate: Option<usize>, calls: &[PlacedCall]) -> Option<Value> {
    let content = &response["candidates"][candidate.unwrap_or_default()]["content"];
    let mut turn = content.as_object().cloned().unwrap_or_default();
    turn.entry("role").or_insert_with(|| "model".into());
    if candidate.is_none() && !calls.is_empty() {
        let listed = items(either(response, "functionCalls", "function_calls"));
        let parts = listed.iter().filter(|call| call.is_object()).map(|call| json!({"functionCall": call}));
        turn.insert("parts".to_owned(), parts.collect());
    }
    let has_parts = turn.get("parts").and_then(Value::as_array).is_some_and(|parts| !parts.is_empty());
    has_parts.then(|| turn.into())
}

/// The id goes back only where the provider gave it: it refuses one that it does not know.
fn response_part(placed: &PlacedCall, result: &ToolResult) -> Value {
    let mut response = Map::new();
    response.insert("name".to_owned(), placed.call.name.as_str().into());
    if placed.has_own_id {
        response.insert("id".to_owned(), placed.call.id.as_str().into());
    }
    response.insert("response".to_owned(), response_object(result));
    json!({"functionResponse": response})
}

/// The object that Gemini requires as a function response; its key `error` marks an error. A truncated result is not
/// JSON any more and becomes text.
pub(super) fn response_object(result: &ToolResult) -> Value {
    let content = serde_json::from_str(&result.content).unwrap_or_else(|_| result.content.as_str().into());
    match (content, result.is_error) {
        (Value::Object(fields), false) => fields.into(),
        (Value::Object(fields), true) if fields.contains_key("error") => fields.into(),
        (content, true) => json!({ "error": content }),
        (content, false) => json!({ "result": content }),
    }
}

pub(super) fn client_response(response: &Value, results: &[ToolResult]) -> Value {
    let mut mixed = response.clone();
    let mut left = ResultsById::of(results);
    let mut ours: Vec<(Option<(usize, usize)>, &ToolResult)> = Vec::new();
    for placed in placed_calls(response) {
        if let Some(result) = left.take(&placed.call.id) {
            ours.push((placed.place, result));
        }
    }
    let Some(fields) = mixed.as_object_mut().filter(|_| !ours.is_empty()) else { return mixed };
    let names: HashSet<&str> = ours.iter().map(|(_, result)| result.name.as_str()).collect();
    let is_ours = |call: &Value| call["name"].as_str().is_some_and(|name| names.contains(name));
    for list in ["functionCalls", "function_calls"] {
        if let Some(calls) = fields.get_mut(list).and_then(Value::as_array_mut) {
            calls.retain(|call| !is_ours(call));
        }
    }
    if ours.iter().any(|(place, _)| place.is_none()) {
        let parts: Vec<Value> = ours.iter().map(|(_, result)| result_text_part(result)).collect();
        insert_parts(fields, parts);
        return mixed;
    }
    let by_place: HashMap<_, _> =
        ours.into_iter().filter_map(|(place, result)| Some((place?, result))).collect();
    for (number, candidate) in
        fields.get_mut("candidates").and_then(Value::as_array_mut).into_iter().flatten().enumerate()
    {
        let parts = candidate.pointer_mut("/content/parts").and_then(Value::as_array_mut);
        if let Some(parts) = parts {
            *parts = without_ours(std::mem::take(parts), |place| by_place.get(&(number, place)).copied());
        }
    }
    mixed
}

/// The parts with the results of our calls as text before the first call that is left.
fn without_ours<'a>(parts: Vec<Value>, result: impl Fn(usize) -> Option<&'a ToolResult>) -> Vec<Value> {
    let mut kept = Vec::new();
    let mut texts = Vec::new();
    let mut first_call = None;
    let mut signature = Signature::default();
    for (place, mut part) in parts.into_iter().enumerate() {
        if let Some(result) = result(place) {
            signature.take_from(&part);
            texts.push(result_text_part(result));
            continue;
        }
        if call_of(&part).is_some() {
            first_call = first_call.or(Some(kept.len()));
            signature.apply_to(&mut part);
        }
        kept.push(part);
    }
    let at = first_call.unwrap_or(kept.len());
    kept.splice(at..at, texts);
    kept
}

/// Of parallel calls only the first has the thought signature, without which the provider takes no call back. Where
/// that one is ours, the next call of the client's must carry it.
#[derive(Debug, Default)]
pub(super) struct Signature(Option<(String, Value)>);

impl Signature {
    /// Takes the signature of a call that is removed.
    pub(super) fn take_from(&mut self, part: &Value) {
        if self.0.is_none() {
            let names = ["thoughtSignature", "thought_signature"];
            self.0 = names.iter().find_map(|name| Some(((*name).to_owned(), part.get(name)?.clone())));
        }
    }

    /// Puts the signature on a call that stays. Returns true if that changed the call.
    pub(super) fn apply_to(&mut self, part: &mut Value) -> bool {
        let is_signed = !either(part, "thoughtSignature", "thought_signature").is_null();
        match (self.0.take(), part.as_object_mut()) {
            (Some((name, signature)), Some(part)) if !is_signed => {
                part.insert(name, signature);
                true
            }
            _ => false,
        }
    }
}

pub(super) fn insert_text_before_calls(response: &mut Value, text: &str) -> bool {
    let part = json!({ "text": text });
    let mut is_put = false;
    let candidates = response.get_mut("candidates").and_then(Value::as_array_mut).into_iter().flatten();
    for candidate in candidates {
        let parts = candidate.pointer_mut("/content/parts").and_then(Value::as_array_mut);
        let Some(parts) = parts else { continue };
        if let Some(first) = parts.iter().position(|part| call_of(part).is_some()) {
            parts.insert(first, part.clone());
            is_put = true;
        }
    }
    let has_list = items(either(response, "functionCalls", "function_calls")).iter().any(Value::is_object);
    if let Some(fields) = response.as_object_mut().filter(|_| has_list && !is_put) {
        is_put = insert_parts(fields, vec![part]);
    }
    is_put
}

/// Inserts parts for a client that reads the SDK's list, into the first candidate, which is created if there is none.
/// Returns false if there is no place for them.
fn insert_parts(fields: &mut Map<String, Value>, texts: Vec<Value>) -> bool {
    let candidates = fields.entry("candidates").or_insert(Value::Null);
    if candidates.is_null() {
        *candidates = json!([]);
    }
    let Some(candidates) = candidates.as_array_mut() else { return false };
    if candidates.is_empty() {
        candidates
            .push(json!({"content": {"role": "model", "parts": []}, "finishReason": "STOP", "index": 0}));
    }
    candidates.first_mut().is_some_and(|candidate| add_parts(candidate, texts))
}

/// Adds parts before those of a candidate. Returns false if it has no place for them.
pub(super) fn add_parts(candidate: &mut Value, mut parts: Vec<Value>) -> bool {
    let Some(candidate) = candidate.as_object_mut() else { return false };
    let content = candidate.entry("content").or_insert_with(|| json!({"role": "model"}));
    let Some(content) = content.as_object_mut() else { return false };
    let list = content.entry("parts").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return false };
    parts.append(list);
    *list = parts;
    true
}

pub(super) fn result_text_part(result: &ToolResult) -> Value {
    json!({"text": result.to_text()})
}

pub(super) fn usage(response: &Value) -> Usage {
    let usage = either(response, "usageMetadata", "usage_metadata");
    let tokens = |camel: &str, snake: &str| either(usage, camel, snake).as_u64().unwrap_or_default();
    Usage {
        input: tokens("promptTokenCount", "prompt_token_count"),
        output: tokens("candidatesTokenCount", "candidates_token_count"),
    }
}

/// The total stays the sum of its parts: its other parts, such as thoughts, are those of the last round.
pub(super) fn set_usage(response: &mut Value, total: Usage) {
    let own = usage(response);
    let Some(usage) = response.get_mut("usageMetadata").and_then(Value::as_object_mut) else { return };
    put_tokens(usage, "promptTokenCount", total.input);
    put_tokens(usage, "candidatesTokenCount", total.output);
    if let Some(all) = usage.get("totalTokenCount").and_then(Value::as_u64) {
        let beside = all.saturating_sub(own.input).saturating_sub(own.output);
        let all = beside.saturating_add(total.input).saturating_add(total.output);
        put_tokens(usage, "totalTokenCount", all);
    }
}

/// A count of zero is left out, as Google's JSON does.
fn put_tokens(usage: &mut Map<String, Value>, field: &str, tokens: u64) {
    if tokens > 0 || usage.contains_key(field) {
        usage.insert(field.to_owned(), tokens.into());
    }
}

#[cfg(test)]
mod tests;

//! Gemini: a seal is the thought signature of a thought before the answer, or of the first client call.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    Format, SEAL_THOUGHT, Seal, is_seal,
    restore::{CoveredTexts, Seals, has_seal, push_merged},
};
use crate::wire::items;

const SIGNATURES: [&str; 2] = ["thoughtSignature", "thought_signature"];

pub(super) const FORMAT: Format = Format { field: "contents", restore, results, insert };

fn restore(contents: Vec<Value>, seals: &mut Seals<'_>) -> Vec<Value> {
    let mut restored = Vec::with_capacity(contents.len());
    for content in contents {
        if content["role"] == "model" && has_seal(&content) {
            restore_content(content, seals, &mut restored);
        } else {
            push_merged(&mut restored, content, "parts", |text| json!({"text": text}));
        }
    }
    restored
}

fn restore_content(mut content: Value, seals: &mut Seals<'_>, restored: &mut Vec<Value>) {
    let Value::Array(parts) = content["parts"].take() else { return };
    let opened = parts.iter().enumerate().rev().find_map(|(place, part)| {
        let continuation = signature(part).and_then(|seal| seals.open(seal))?;
        Some((place, continuation))
    });
    let Some((place, continuation)) = opened else {
        let mut parts = parts;
        parts.retain_mut(unseal);
        content["parts"] = parts.into();
        restored.push(content);
        return;
    };
    if continuation.call_id.is_some() {
        restored.extend(continuation.turns);
        return;
    }
    let carried = || continuation.turns.iter().filter(|turn| turn["role"] == "model");
    let carried_parts = || carried().flat_map(|turn| items(&turn["parts"]));
    let signatures: HashSet<&str> = carried_parts().filter_map(signature).collect();
    let mut covered = CoveredTexts::new(carried_parts().filter_map(|part| part["text"].as_str()));
    let mut left = Vec::new();
    for mut part in parts.into_iter().skip(place) {
        let is_carried = signature(&part).is_some_and(|own| signatures.contains(own));
        if !is_carried && unseal(&mut part) && covered.cut_field(&mut part, "text") {
            left.push(part);
        }
    }
    restored.extend(continuation.turns);
    if !left.is_empty() {
        content["parts"] = left.into();
        restored.push(content);
    }
}

/// Removes a seal from a part. Returns false if the part was made for the seal alone.
fn unseal(part: &mut Value) -> bool {
    let is_sealed = signature(part).is_some_and(is_seal);
    if let Some(fields) = part.as_object_mut().filter(|_| is_sealed) {
        SIGNATURES.iter().for_each(|field| {
            fields.remove(*field);
        });
    }
    !is_sealed || part["thought"] != true || is_call(part)
}

fn signature(part: &Value) -> Option<&str> {
    SIGNATURES.iter().find_map(|field| part[*field].as_str())
}

fn results(content: &mut Value) -> Vec<&mut Value> {
    let parts = content.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten();
    parts.filter_map(|part| part.get_mut("functionResponse")?.get_mut("response")).collect()
}

/// The thought that carries a seal.
pub(crate) fn sealed_part(seal: &Seal) -> Value {
    json!({"text": SEAL_THOUGHT, "thought": true, "thoughtSignature": seal.to_bytes_field()})
}

fn insert(response: &mut Value, seal: &Seal) -> bool {
    let Some(parts) = parts_mut(response) else { return false };
    parts.insert(0, sealed_part(seal));
    true
}

/// Puts a seal into the first call of a response. Its own signature is in the seal.
pub(crate) fn seal_call(response: &mut Value, seal: &str) -> bool {
    let mut calls = parts_mut(response).into_iter().flatten().filter(|part| is_call(part));
    let Some(call) = calls.find_map(Value::as_object_mut) else { return false };
    call.remove("thought_signature");
    call.insert("thoughtSignature".to_owned(), seal.into());
    true
}

fn parts_mut(response: &mut Value) -> Option<&mut Vec<Value>> {
    response.pointer_mut("/candidates/0/content/parts")?.as_array_mut()
}

fn is_call(part: &Value) -> bool {
    ["functionCall", "function_call"].iter().any(|field| part[*field].is_object())
}

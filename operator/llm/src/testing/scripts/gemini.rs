//! Random rounds of a Gemini stream, as events or as one JSON list.

use serde_json::{Value, json};

use super::{
    super::contract::{Provider, SECRET, Script, View, separate_texts},
    events, json_of,
};
use crate::{ToolResult, sse, wire::items};
use skillet_core::test_rng::TestRng;

const TEXT: &str = "ab \"\\\n{}[],é😀";
const SKILL: &str = "s3cr3t-tool";

pub(in super::super) struct Chunks {
    pub(in super::super) is_list: bool,
}

impl Provider for Chunks {
    fn offered(&self) -> Vec<&'static str> {
        vec![SKILL]
    }

    fn script(&self, rng: &mut TestRng, round: u32) -> Script {
        let count = rng.below(5);
        let mut parts: Vec<Value> = (0..count).flat_map(|number| streamed(rng, number)).collect();
        if parts.is_empty() {
            parts.push(json!({"text": "x"}));
        }
        let mut chunks = Vec::new();
        let mut rest = &parts[..];
        while !rest.is_empty() {
            let length = (1 + rng.below(3) as usize).min(rest.len());
            chunks.push(chunk(&rest[..length]));
            rest = &rest[length..];
        }
        if rng.below(2) == 0 {
            chunks.push(chunk(&[json!({"text": ""})]));
        }
        let whole = joined(&parts);
        let mut response = chunk(&whole);
        for end in [chunks.last_mut().unwrap(), &mut response] {
            end["candidates"][0]["finishReason"] = "STOP".into();
            end["usageMetadata"] = json!({"promptTokenCount": 10 + round, "candidatesTokenCount": 20, "totalTokenCount": 30 + round});
        }
        let (skills, client_parts): (Vec<Value>, Vec<Value>) =
            whole.into_iter().partition(|part| part["functionCall"]["name"] == SKILL);
        Script {
            bytes: self.write(&chunks),
            response,
            has_client_calls: client_parts.iter().any(|part| part.get("functionCall").is_some()),
            client_parts,
            skills: vec![SKILL.to_owned(); skills.len()],
        }
    }

    fn usage<'a>(&self, response: &'a Value) -> &'a Value {
        &response["usageMetadata"]
    }

    fn read(&self, bytes: &[u8], _is_changed: bool) -> View {
        let chunks: Vec<Value> = if self.is_list {
            serde_json::from_slice(bytes).unwrap()
        } else {
            events(bytes).iter().map(json_of).collect()
        };
        let ends = chunks.iter().filter(|chunk| chunk["candidates"][0].get("finishReason").is_some());
        assert_eq!(ends.count(), 1);
        let parts = chunks.iter().flat_map(|chunk| items(&chunk["candidates"][0]["content"]["parts"]));
        View {
            parts: parts.filter(|part| **part != json!({"text": ""})).cloned().collect(),
            usage: self.usage(chunks.last().unwrap()).clone(),
            awaits_client: None,
        }
    }

    fn result_parts(&self, results: &[ToolResult]) -> Vec<Value> {
        let text = results.iter().map(ToolResult::to_text).collect::<Vec<_>>().join("\n\n");
        if text.is_empty() { Vec::new() } else { vec![json!({"result": text})] }
    }

    fn separate(&self, before: &[Value], round: &mut [Value]) {
        separate_texts(before, round);
    }

    fn join(&self, parts: Vec<Value>) -> Vec<Value> {
        joined(&parts)
    }

    fn size_limit(&self, given: usize) -> usize {
        2 * given + 400
    }
}

impl Chunks {
    fn write(&self, chunks: &[Value]) -> Vec<u8> {
        if self.is_list {
            let items: Vec<String> = chunks.iter().map(Value::to_string).collect();
            return format!("[{}\n]\n", items.join("\n,\r\n")).into();
        }
        let mut bytes = Vec::new();
        chunks.iter().for_each(|chunk| sse::write(None, &chunk.to_string(), &mut bytes));
        bytes
    }
}

fn text_parts(rng: &mut TestRng, is_thought: bool) -> Vec<Value> {
    let part = |text: String| {
        if is_thought { json!({"text": text, "thought": true}) } else { json!({"text": text}) }
    };
    (0..=rng.below(3)).map(|_| part(rng.text(TEXT, 9) + "x")).collect()
}

/// Parts as they are streamed, one a chunk or several.
fn streamed(rng: &mut TestRng, number: u32) -> Vec<Value> {
    let (name, owner) = if rng.below(5) == 0 { ("client", "c") } else { (SKILL, SECRET) };
    let mut call = json!({"functionCall": {"name": name, "args": {"x": rng.text(TEXT, 20)}}});
    if rng.below(2) == 0 {
        call["functionCall"]["id"] = format!("{owner}{number}").into();
    }
    match rng.below(6) {
        0 | 1 => text_parts(rng, false),
        2 => text_parts(rng, true),
        3 => vec![json!({"text": rng.text(TEXT, 5), "thoughtSignature": "c2ln"})],
        _ => vec![call],
    }
}

/// The text of a part that is nothing but text, or a thought's text.
fn plain_text(part: &Value) -> Option<&str> {
    let is_plain = part.as_object()?.keys().all(|name| matches!(name.as_str(), "text" | "thought"));
    if is_plain { part["text"].as_str() } else { None }
}

/// Results have a blank line before them if there is other text.
fn shown(part: &Value, before: &[Value]) -> Value {
    let Some(result) = part["result"].as_str() else { return part.clone() };
    let has_text = before
        .iter()
        .any(|part| part["thought"] != true && part["text"].as_str().is_some_and(|text| !text.is_empty()));
    json!({"text": format!("{}{result}", if has_text { "\n\n" } else { "" })})
}

/// Adjacent plain texts as one.
fn joined(parts: &[Value]) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for part in parts {
        let part = &shown(part, &joined);
        match (joined.last_mut(), plain_text(part)) {
            (Some(last), Some(text))
                if plain_text(last).is_some() && last.get("thought") == part.get("thought") =>
            {
                last["text"] = format!("{}{text}", last["text"].as_str().unwrap()).into();
            }
            _ => joined.push(part.clone()),
        }
    }
    joined
}

fn chunk(parts: &[Value]) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": "g"})
}

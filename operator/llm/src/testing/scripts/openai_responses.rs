//! Random rounds of a stream of the Responses API.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    super::contract::{Provider, SECRET, Script, View},
    events,
};
use crate::{ToolResult, sse::write, wire::items};
use skillet_core::test_rng::TestRng;

const SKILL: &str = "s3cr3t-weather";

pub(in super::super) struct Responses;

impl Provider for Responses {
    fn offered(&self) -> Vec<&'static str> {
        vec![SKILL]
    }

    fn script(&self, rng: &mut TestRng, round: u32) -> Script {
        let count = rng.below(5);
        let output: Vec<Value> = (0..count).map(|place| item(rng, &format!("{round}_{place}"))).collect();
        let usage = json!({"input_tokens": rng.below(99), "output_tokens": rng.below(99), "total_tokens": rng.below(99)});
        let response = json!({"id": format!("resp_{round}"), "created_at": round, "status": "completed",
            "output": output, "usage": usage});
        let begun = json!({"id": format!("resp_{round}"), "created_at": round, "status": "in_progress", "output": []});
        let mut events = vec![
            json!({"type": "response.created", "response": begun}),
            json!({"type": "response.in_progress", "response": begun}),
        ];
        interleave(rng, &output, &mut events);
        let mut last = response.clone();
        if rng.below(8) == 0 {
            last["output"] = json!([]);
        }
        events.push(json!({"type": "response.completed", "response": last}));
        let mut bytes = Vec::new();
        for (number, mut event) in events.into_iter().enumerate() {
            event["sequence_number"] = json!(number);
            write(event["type"].as_str(), &event.to_string(), &mut bytes);
            if rng.below(10) == 0 {
                bytes.extend_from_slice(b": ping\n\n");
            }
        }
        let is_clients: Vec<bool> = (0..output.len()).map(|index| is_clients(&output[index..])).collect();
        let skills: Vec<Value> = output.iter().filter(|item| item["name"] == SKILL).cloned().collect();
        let client_parts: Vec<Value> = output
            .into_iter()
            .zip(is_clients)
            .filter_map(|(item, is_clients)| is_clients.then_some(item))
            .collect();
        Script {
            bytes,
            response,
            has_client_calls: client_parts.iter().any(|item| item["name"].is_string()),
            client_parts,
            skills: vec![SKILL.to_owned(); skills.len()],
        }
    }

    fn read(&self, bytes: &[u8], is_changed: bool) -> View {
        let events: Vec<Value> = events(bytes)
            .iter()
            .filter_map(|event| {
                let data: Value = serde_json::from_str(&event.data()?).unwrap();
                assert_eq!(data["type"].as_str(), event.event_type());
                Some(data)
            })
            .collect();
        let mut open: BTreeMap<u64, (Value, String)> = BTreeMap::new();
        let mut done: BTreeMap<u64, Value> = BTreeMap::new();
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], number);
            let Some(index) = event["output_index"].as_u64() else { continue };
            match event["type"].as_str().unwrap() {
                "response.output_item.added" => {
                    assert_eq!(usize::try_from(index).unwrap(), open.len() + done.len(), "{event}");
                    open.insert(index, (event["item"]["id"].clone(), String::new()));
                }
                "response.output_item.done" => {
                    let (id, text) = open.remove(&index).unwrap();
                    assert_eq!(event["item"]["id"], id);
                    check_text(&event["item"], &text);
                    done.insert(index, event["item"].clone());
                }
                _ => {
                    let (id, text) = open.get_mut(&index).unwrap();
                    assert_eq!(event["item_id"], *id);
                    text.push_str(event["delta"].as_str().unwrap_or_default());
                }
            }
        }
        let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
        assert_eq!((count("response.created"), count("response.completed"), open.len()), (1, 1, 0));
        assert_eq!(events[0]["type"], "response.created");
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.completed");
        // SDKs abort if it changes.
        assert_eq!(last["response"]["id"], events[0]["response"]["id"]);
        let parts: Vec<Value> = done.into_values().collect();
        if is_changed {
            assert_eq!(items(&last["response"]["output"]), parts);
        }
        View { parts, usage: last["response"]["usage"].clone(), awaits_client: None }
    }

    fn result_parts(&self, results: &[ToolResult]) -> Vec<Value> {
        let texts: Vec<String> = results.iter().map(ToolResult::to_text).collect();
        let part =
            json!({"type": "output_text", "text": texts.join("\n\n"), "annotations": [], "logprobs": []});
        let message = |first: &ToolResult| {
            json!({"type": "message", "id": format!("msg_skillet_{}", first.id), "role": "assistant",
                "status": "completed", "content": [part]})
        };
        results.first().map(message).into_iter().collect()
    }

    fn size_limit(&self, given: usize) -> usize {
        2 * given + 4_096
    }
}

fn item(rng: &mut TestRng, id: &str) -> Value {
    let text = rng.text("ab é\n\"{}🙂", 12);
    let call = |name: &str, id: &str| {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"), "name": name,
            "arguments": json!({ "text": text }).to_string(), "status": "completed"})
    };
    match rng.below(6) {
        0 => call(SKILL, &format!("{SECRET}_{id}")),
        1 => call("own", id),
        2 => {
            json!({"type": "reasoning", "id": format!("rs_{id}"), "summary": [{"type": "summary_text", "text": text}], "encrypted_content": "x"})
        }
        3 => json!({"type": "web_search_call", "id": format!("ws_{id}"), "status": "completed"}),
        4 => {
            json!({"type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": format!("call_{id}"), "name": "grammar", "input": text})
        }
        _ => json!({"type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}),
    }
}

/// Each item's events in their order, items begun in order of index, all else mixed.
fn interleave(rng: &mut TestRng, items: &[Value], events: &mut Vec<Value>) {
    let mut waiting: Vec<Vec<Value>> =
        items.iter().enumerate().map(|(index, item)| item_events(rng, index, item)).collect();
    waiting.iter_mut().for_each(|events| events.reverse());
    let mut begun = 0;
    while waiting.iter().any(|events| !events.is_empty()) {
        let limit = (begun + 1).min(waiting.len());
        let next = rng.below(u32::try_from(limit).unwrap()) as usize;
        begun = begun.max(next + 1);
        events.extend(waiting[next].pop());
    }
}

fn item_events(rng: &mut TestRng, index: usize, item: &Value) -> Vec<Value> {
    let mut begun = item.clone();
    let (kind, text) = match item["type"].as_str().unwrap() {
        "function_call" => {
            begun["arguments"] = json!("");
            ("function_call_arguments", item["arguments"].as_str().unwrap())
        }
        "custom_tool_call" => ("custom_tool_call_input", item["input"].as_str().unwrap()),
        "reasoning" => ("reasoning_summary_text", item["summary"][0]["text"].as_str().unwrap()),
        "message" => ("output_text", item["content"][0]["text"].as_str().unwrap()),
        _ => ("web_search_call", ""),
    };
    let mut events = vec![json!({"type": "response.output_item.added", "item": begun})];
    for piece in super::pieces(rng, text).iter().filter(|piece| !piece.is_empty()) {
        events.push(json!({"type": format!("response.{kind}.delta"), "item_id": item["id"], "delta": piece}));
    }
    events.push(json!({"type": format!("response.{kind}.done"), "item_id": item["id"], "text": text}));
    if kind == "function_call_arguments" {
        events.last_mut().unwrap()["arguments"] = json!(text);
    }
    events.push(json!({"type": "response.output_item.done", "item": item}));
    events.iter_mut().for_each(|event| event["output_index"] = json!(index));
    events
}

fn check_text(item: &Value, deltas: &str) {
    let fields = ["/arguments", "/input", "/summary/0/text", "/content/0/text"];
    let text = fields.iter().find_map(|field| item.pointer(field)).and_then(Value::as_str);
    assert_eq!(deltas, text.unwrap_or_default());
}

/// Returns true if the first of these items goes to the client. Reasoning goes where the item after it goes.
fn is_clients(items: &[Value]) -> bool {
    match items.iter().find(|item| item["type"] != "reasoning") {
        Some(next) => next["name"] != SKILL,
        None => true,
    }
}

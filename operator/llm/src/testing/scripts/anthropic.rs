//! Random rounds of an Anthropic stream.

use serde_json::{Value, json};

use super::{
    super::contract::{Provider, SECRET, Script, View},
    events, json_of, pieces,
};
use crate::{ToolResult, sse};
use skillet_core::test_rng::TestRng;

const TEXT: &str = "ab \"\\\n{}[]é😀";
const SKILL: &str = "s3cr3t-tool";

pub(in super::super) struct Messages;

impl Provider for Messages {
    fn offered(&self) -> Vec<&'static str> {
        vec![SKILL]
    }

    fn script(&self, rng: &mut TestRng, round: u32) -> Script {
        let content: Vec<Value> = (0..rng.below(5)).map(|number| block(rng, number)).collect();
        let is_called = content.iter().any(|block| block["type"] == "tool_use");
        let reason = if is_called { "tool_use" } else { "end_turn" };
        let mut message = json!({"id": format!("m{round}"), "type": "message", "role": "assistant", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 10 + round, "output_tokens": 1}});
        let mut lines = vec![json!({"type": "message_start", "message": message})];
        for (index, block) in content.iter().enumerate() {
            let (begun, deltas) = deltas(rng, block);
            lines.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
            for delta in deltas {
                lines.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
                if rng.below(10) == 0 {
                    lines.push(json!({"type": "ping"}));
                }
            }
            lines.push(json!({"type": "content_block_stop", "index": index}));
        }
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        lines.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}}));
        lines.push(json!({"type": "message_stop"}));
        let mut bytes = Vec::new();
        for line in lines {
            sse::write(line["type"].as_str(), &line.to_string(), &mut bytes);
        }
        let (skills, client_parts): (Vec<Value>, Vec<Value>) =
            content.iter().cloned().partition(|block| block["name"] == SKILL);
        message["content"] = content.into();
        message["stop_reason"] = reason.into();
        message["usage"]["output_tokens"] = 20.into();
        Script {
            bytes,
            response: message,
            has_client_calls: client_parts.iter().any(|block| block["type"] == "tool_use"),
            client_parts,
            skills: vec![SKILL.to_owned(); skills.len()],
        }
    }

    fn read(&self, bytes: &[u8], _is_changed: bool) -> View {
        let mut message = Value::Null;
        let (mut open, mut is_stopped) = (None, false);
        let mut blocks: Vec<(Value, String)> = Vec::new();
        for event in events(bytes) {
            let data = json_of(&event);
            assert_eq!(event.event_type(), data["type"].as_str());
            assert!(!is_stopped);
            let index = data["index"].as_u64();
            match data["type"].as_str().unwrap() {
                "ping" => {}
                "message_start" => {
                    assert!(message.is_null());
                    message = data["message"].clone();
                }
                "content_block_start" => {
                    assert_eq!((open, index), (None, Some(blocks.len() as u64)));
                    open = index;
                    blocks.push((data["content_block"].clone(), String::new()));
                }
                "content_block_delta" => {
                    assert_eq!(index, open);
                    add_delta(blocks.last_mut().unwrap(), &data["delta"]);
                }
                "content_block_stop" => assert_eq!(index, open.take()),
                "message_delta" => {
                    assert_eq!(open, None);
                    message["stop_reason"] = data["delta"]["stop_reason"].clone();
                    let usage = data["usage"].as_object().unwrap().clone();
                    message["usage"].as_object_mut().unwrap().extend(usage);
                }
                "message_stop" => is_stopped = true,
                other => panic!("{other}"),
            }
        }
        assert!(is_stopped);
        assert_eq!(message["id"], "m0");
        let whole = |(mut block, input): (Value, String)| {
            if !input.is_empty() {
                block["input"] = serde_json::from_str(&input).unwrap();
            }
            block
        };
        let reason = message["stop_reason"].as_str().unwrap();
        assert!(["tool_use", "end_turn"].contains(&reason));
        View {
            parts: blocks.into_iter().map(whole).collect(),
            usage: message["usage"].clone(),
            awaits_client: Some(reason == "tool_use"),
        }
    }

    fn result_parts(&self, results: &[ToolResult]) -> Vec<Value> {
        results.iter().map(|result| json!({"type": "text", "text": result.to_text()})).collect()
    }

    fn size_limit(&self, given: usize) -> usize {
        2 * given + 400
    }
}

fn block(rng: &mut TestRng, number: u32) -> Value {
    let text = rng.text(TEXT, 30);
    let input = match rng.below(3) {
        0 => json!({}),
        _ => json!({"x": rng.text(TEXT, 20), "n": {"list": [1, 2.5, null]}}),
    };
    let id = format!("t{number}");
    match rng.below(9) {
        0 | 1 => json!({"type": "text", "text": text}),
        2 => json!({"type": "thinking", "thinking": text, "signature": "c2ln"}),
        3 => json!({"type": "redacted_thinking", "data": "ZGF0YQ"}),
        4 => json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": input}),
        5 => json!({"type": "tool_use", "id": id, "name": "client", "input": input}),
        _ => json!({"type": "tool_use", "id": format!("{SECRET}-{number}"), "name": SKILL, "input": input}),
    }
}

/// A block as it begins, and the deltas that complete it.
fn deltas(rng: &mut TestRng, block: &Value) -> (Value, Vec<Value>) {
    let mut begun = block.clone();
    let mut deltas = Vec::new();
    let mut cut = |rng: &mut TestRng, kind: &str, field: &str, text: &str| {
        deltas.extend(pieces(rng, text).into_iter().map(|piece| json!({"type": kind, field: piece})));
    };
    match block["type"].as_str().unwrap() {
        "text" => cut(rng, "text_delta", "text", block["text"].as_str().unwrap()),
        "thinking" => {
            cut(rng, "thinking_delta", "thinking", block["thinking"].as_str().unwrap());
            deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            begun["signature"] = "".into();
        }
        "tool_use" | "server_tool_use" => {
            let input = &block["input"];
            if *input != json!({}) || rng.below(2) == 0 {
                cut(rng, "input_json_delta", "partial_json", &input.to_string());
            }
            begun["input"] = json!({});
        }
        _ => {}
    }
    for field in ["text", "thinking"] {
        if begun.get(field).is_some() {
            begun[field] = "".into();
        }
    }
    (begun, deltas)
}

fn add_delta((block, input): &mut (Value, String), delta: &Value) {
    for (field, value) in delta.as_object().unwrap() {
        let more = value.as_str().unwrap();
        if field == "partial_json" {
            input.push_str(more);
        } else if field != "type" {
            let so_far = block[field].as_str().unwrap();
            block[field] = format!("{so_far}{more}").into();
        }
    }
}

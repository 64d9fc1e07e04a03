//! Random conversations: well-formed for the client however they are cut, and harmless when they are damaged.

use super::*;
use crate::{
    ToolCall,
    testing::corruption::{damage, feed_cut},
};
use skillet_core::test_rng::{TestRng, cases};

const TEXT: &str = "ab \"\\\n{}[]é😀";

/// One round as the provider means it.
struct Script {
    response: Value,
    bytes: Vec<u8>,
}

fn block(rng: &mut TestRng, number: usize, has_client_calls: bool) -> Value {
    let text = rng.text(TEXT, 30);
    let input = match rng.below(3) {
        0 => json!({}),
        _ => json!({"x": rng.text(TEXT, 20), "n": {"list": [1, 2.5, null]}}),
    };
    let id = format!("t{number}");
    match rng.below(8) {
        0 | 1 => json!({"type": "text", "text": text}),
        2 => json!({"type": "thinking", "thinking": text, "signature": "c2ln"}),
        3 => json!({"type": "redacted_thinking", "data": "ZGF0YQ"}),
        4 => json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": input}),
        5 if has_client_calls => json!({"type": "tool_use", "id": id, "name": "client", "input": input}),
        _ => json!({"type": "tool_use", "id": format!("ours-{number}"), "name": "ours-tool", "input": input}),
    }
}

/// Pieces of a text, cut between characters.
fn pieces(rng: &mut TestRng, text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for letter in text.chars() {
        if rng.below(6) == 0 {
            pieces.push(String::new());
        }
        pieces.last_mut().unwrap().push(letter);
    }
    pieces
}

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

fn script(rng: &mut TestRng, number: u64, has_client_calls: bool) -> Script {
    let count = rng.below(5) as usize;
    let content: Vec<Value> = (0..count).map(|place| block(rng, place, has_client_calls)).collect();
    let is_called = content.iter().any(|block| block["type"] == "tool_use");
    let reason = if is_called { "tool_use" } else { "end_turn" };
    let mut message = json!({"id": format!("m{number}"), "type": "message", "role": "assistant", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 10 + number, "output_tokens": 1}});
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
    message["content"] = content.into();
    message["stop_reason"] = reason.into();
    message["usage"]["output_tokens"] = 20.into();
    let mut bytes = Vec::new();
    for line in lines {
        sse::write(line["type"].as_str(), &line.to_string(), &mut bytes);
    }
    Script { response: message, bytes }
}

/// Reads a stream as strictly as an SDK could; gives the message.
fn read(bytes: &[u8]) -> Value {
    let mut splitter = EventSplitter::default();
    let events = splitter.feed(bytes).unwrap();
    assert_eq!(splitter.rest(), None);
    let (mut message, mut open, mut is_stopped) = (Value::Null, None, false);
    let mut blocks: Vec<(Value, String)> = Vec::new();
    for event in events {
        let data: Value = serde_json::from_str(&event.data().unwrap()).unwrap();
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
                let (block, input) = blocks.last_mut().unwrap();
                for (field, value) in data["delta"].as_object().unwrap() {
                    let more = value.as_str().unwrap();
                    if field == "partial_json" {
                        input.push_str(more);
                    } else if field != "type" {
                        let so_far = block[field].as_str().unwrap();
                        block[field] = format!("{so_far}{more}").into();
                    }
                }
            }
            "content_block_stop" => assert_eq!(index, open.take()),
            "message_delta" => {
                assert_eq!(open, None);
                message["stop_reason"] = data["delta"]["stop_reason"].clone();
                message["usage"].as_object_mut().unwrap().extend(data["usage"].as_object().unwrap().clone());
            }
            "message_stop" => is_stopped = true,
            other => panic!("{other}"),
        }
    }
    assert!(is_stopped);
    let whole = |(mut block, input): (Value, String)| {
        if !input.is_empty() {
            block["input"] = serde_json::from_str(&input).unwrap();
        }
        block
    };
    message["content"] = blocks.into_iter().map(whole).collect();
    message
}

fn results(ours: &[ToolCall]) -> Vec<ToolResult> {
    let result = |call: &ToolCall| {
        let (id, name) = (call.id.clone(), "told".to_owned());
        ToolResult { id, name, content: "{\"sum\":1}".into(), is_error: false }
    };
    ours.iter().map(result).collect()
}

fn filter() -> Filter {
    Filter::new(Arc::new(OfferedNames::from(["ours-tool".into()])))
}

#[test]
fn the_client_gets_one_well_formed_message_of_all_rounds_without_our_calls() {
    for seed in 0..cases(400) {
        let rng = &mut TestRng::new(seed);
        let (mut filter, mut out) = (filter(), Vec::new());
        let (mut seen, mut total) = (Vec::new(), Usage::default());
        let last = u64::from(rng.below(4));
        let mut reason = "end_turn";
        for number in 0..=last {
            let script = script(rng, number, number == last);
            let ended = feed_cut(&mut filter, &script.bytes, rng, &mut out).unwrap();
            assert_eq!(ended.response, script.response, "seed {seed}");
            let content = script.response["content"].as_array().unwrap();
            let is_ours = |block: &&Value| block["name"] == "ours-tool";
            assert_eq!(ended.skill_calls.len(), content.iter().filter(is_ours).count());
            seen.extend(content.iter().filter(|block| !is_ours(block)).cloned());
            total = total.plus(Usage { input: 10 + number, output: 20 });
            if number == 0 && ended.skill_calls.is_empty() {
                assert_eq!(out, script.bytes, "seed {seed}");
            }
            if ended.skill_calls.is_empty() || number == last {
                let results = results(&ended.skill_calls);
                let told = results.iter().map(|result| json!({"type": "text", "text": result.to_text()}));
                seen.extend(told);
                filter.finish(&results, &mut out);
                reason = if ended.has_client_calls { "tool_use" } else { reason };
                break;
            }
        }
        assert!(!String::from_utf8_lossy(&out).contains("ours-"), "seed {seed}");
        let message = read(&out);
        assert_eq!(message["content"], Value::from(seen), "seed {seed}");
        let usage = json!({"input_tokens": total.input, "output_tokens": total.output});
        assert_eq!((&message["usage"], &message["stop_reason"]), (&usage, &json!(reason)), "seed {seed}");
        assert_eq!(message["id"], "m0");
    }
}

#[test]
fn damaged_streams_neither_panic_nor_grow() {
    for seed in 0..cases(1500) {
        let rng = &mut TestRng::new(seed);
        let (mut filter, mut out) = (filter(), Vec::new());
        let mut given = 0;
        for number in 0..=u64::from(rng.below(2)) {
            let mut bytes = script(rng, number, true).bytes;
            damage(&mut bytes, rng);
            given += bytes.len();
            let Ok(ended) = feed_cut(&mut filter, &bytes, rng, &mut out) else { break };
            let results = results(&ended.skill_calls);
            given += results.len() * 400;
            if rng.below(2) == 0 {
                filter.finish(&results, &mut out);
            }
        }
        filter.finish(&[], &mut out);
        assert!(out.len() <= 2 * given + 400, "seed {seed}: {} of {given}", out.len());
    }
}

//! Random conversations, cut anywhere, and random damage: what holds for every stream.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::sse::write;
use skillet_core::test_rng::{TestRng, cases};

const OURS: &str = "weather";

/// One answer of a model: the whole of it, and the events in which it is streamed.
struct Script {
    response: Value,
    bytes: Vec<u8>,
    has_ours: bool,
    has_clients: bool,
}

fn script(rng: &mut TestRng, round: u32) -> Script {
    let count = rng.below(5);
    let items: Vec<Value> = (0..count).map(|place| random_item(rng, &format!("{round}_{place}"))).collect();
    let usage =
        json!({"input_tokens": rng.below(99), "output_tokens": rng.below(99), "total_tokens": rng.below(99)});
    let response = json!({"id": format!("resp_{round}"), "created_at": round, "status": "completed", "output": items, "usage": usage});
    let begun =
        json!({"id": format!("resp_{round}"), "created_at": round, "status": "in_progress", "output": []});
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    interleave(rng, &items, &mut events);
    let told = if rng.below(8) == 0 { json!([]) } else { response["output"].clone() };
    let mut last = response.clone();
    last["output"] = told;
    events.push(json!({"type": "response.completed", "response": last}));
    let mut bytes = Vec::new();
    for (number, mut event) in events.into_iter().enumerate() {
        event["sequence_number"] = json!(number);
        write(event["type"].as_str(), &event.to_string(), &mut bytes);
        if rng.below(10) == 0 {
            bytes.extend_from_slice(b": ping\n\n");
        }
    }
    let has_ours = items.iter().any(|item| item["name"] == OURS);
    let has_clients = items.iter().any(|item| item["name"].is_string() && item["name"] != OURS);
    Script { response, bytes, has_ours, has_clients }
}

fn random_item(rng: &mut TestRng, id: &str) -> Value {
    let text = rng.text("ab é\n\"{}🙂", 12);
    let call = |name: &str| {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"), "name": name,
            "arguments": json!({ "text": text }).to_string(), "status": "completed"})
    };
    match rng.below(6) {
        0 => call(OURS),
        1 => call("own"),
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

/// Every item's events in their order, items begun in order of index, all else mixed.
fn interleave(rng: &mut TestRng, items: &[Value], events: &mut Vec<Value>) {
    let mut waiting: Vec<Vec<Value>> =
        items.iter().enumerate().map(|(index, item)| item_events(rng, index, item)).collect();
    waiting.iter_mut().for_each(|events| events.reverse());
    let mut begun = 0;
    while waiting.iter().any(|events| !events.is_empty()) {
        let limit = (begun + 1).min(waiting.len());
        let pick = rng.below(u32::try_from(limit).unwrap()) as usize;
        begun = begun.max(pick + 1);
        events.extend(waiting[pick].pop());
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
    let mut rest = text;
    while let Some(last) = rest.chars().count().checked_sub(1) {
        let cut = 1 + rng.below(u32::try_from(last + 1).unwrap()) as usize;
        let end = rest.char_indices().nth(cut).map_or(rest.len(), |(at, _)| at);
        events.push(
            json!({"type": format!("response.{kind}.delta"), "item_id": item["id"], "delta": &rest[..end]}),
        );
        rest = &rest[end..];
    }
    events.push(json!({"type": format!("response.{kind}.done"), "item_id": item["id"], "text": text}));
    if kind == "function_call_arguments" {
        events.last_mut().unwrap()["arguments"] = json!(text);
    }
    events.push(json!({"type": "response.output_item.done", "item": item}));
    events.iter_mut().for_each(|event| event["output_index"] = json!(index));
    events
}

fn feed_cut(
    rng: &mut TestRng,
    filter: &mut ResponsesFilter,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), StreamError> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (now, later) = rest.split_at((1 + rng.below(200) as usize).min(rest.len()));
        filter.feed(now, out)?;
        rest = later;
    }
    Ok(())
}

/// What the client must have seen: checks the form of its stream and gives its items.
fn check_form(bytes: &[u8]) -> Vec<Value> {
    let mut splitter = EventSplitter::default();
    let events = splitter.feed(bytes).unwrap();
    assert_eq!(splitter.rest(), None);
    let events: Vec<Value> = events
        .iter()
        .filter_map(|event| Some((event.event_type().map(str::to_owned), event.data()?)))
        .map(|(kind, data)| {
            let event: Value = serde_json::from_str(&data).unwrap();
            assert_eq!(event["type"].as_str(), kind.as_deref());
            event
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
    // SDKs break off where it changes.
    assert_eq!(last["response"]["id"], events[0]["response"]["id"]);
    done.into_values().collect()
}

fn check_text(item: &Value, deltas: &str) {
    let fields = ["/arguments", "/input", "/summary/0/text", "/content/0/text"];
    let text = fields.iter().find_map(|field| item.pointer(field)).and_then(Value::as_str);
    assert_eq!(deltas, text.unwrap_or_default());
}

fn last_response(bytes: &[u8]) -> Value {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let last = text.lines().rfind(|line| line.starts_with("data: ")).unwrap();
    let event: Value = serde_json::from_str(&last["data: ".len()..]).unwrap();
    event["response"].clone()
}

fn without_ours(scripts: &[Script]) -> Vec<Value> {
    let items = scripts.iter().flat_map(|script| script.response["output"].as_array().unwrap());
    items.filter(|item| item["name"] != OURS).cloned().collect()
}

fn check_conversation(seed: u64) {
    let mut rng = TestRng::new(seed);
    let mut filter = ResponsesFilter::new(Arc::new(OfferedNames::from([OURS.into()])));
    let (mut out, mut scripts, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..4 {
        let script = script(&mut rng, round);
        feed_cut(&mut rng, &mut filter, &script.bytes, &mut out).unwrap();
        let end = filter.end_round(&mut out).unwrap();
        assert_eq!(end.response, script.response, "seed {seed}");
        assert_eq!(end.skill_calls.is_empty(), !script.has_ours);
        assert_eq!(end.has_client_calls, script.has_clients);
        if round == 0 && !script.has_ours {
            assert_eq!(out, script.bytes);
        }
        let is_last = !script.has_ours || script.has_clients;
        scripts.push(script);
        results = end
            .skill_calls
            .into_iter()
            .map(|call| ToolResult {
                id: call.id,
                name: "shown".into(),
                content: "1".into(),
                is_error: false,
            })
            .collect();
        if is_last {
            break;
        }
    }
    filter.finish(&results, &mut out);
    assert!(!String::from_utf8_lossy(&out).contains(OURS), "seed {seed}");
    let (shown, response) = (check_form(&out), last_response(&out));
    if scripts.len() > 1 || !results.is_empty() {
        assert_eq!(response["output"], json!(shown), "seed {seed}");
    }
    let mut expected = without_ours(&scripts);
    expected.extend(item_of(&results));
    assert_eq!(shown, expected, "seed {seed}");
    for field in ["input_tokens", "output_tokens", "total_tokens"] {
        let sum: u64 = scripts.iter().filter_map(|script| script.response["usage"][field].as_u64()).sum();
        assert_eq!(response["usage"][field], sum);
    }
}

fn item_of(results: &[ToolResult]) -> Option<Value> {
    crate::openai_responses::item::results_message(results)
}

#[test]
fn every_conversation_is_one_well_formed_stream_without_our_calls() {
    for seed in 0..cases(1_500) {
        check_conversation(seed);
    }
}

fn damage(rng: &mut TestRng, bytes: &mut Vec<u8>) {
    for _ in 0..=rng.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = |rng: &mut TestRng| rng.below(u32::try_from(bytes.len()).unwrap()) as usize;
        let (one, other) = (at(rng), at(rng));
        let (start, end) = (one.min(other), one.max(other));
        match rng.below(6) {
            0 => bytes[one] ^= 1 << rng.below(8),
            1 => bytes.truncate(one.max(1)),
            2 => {
                let copy = bytes[start..end].to_vec();
                bytes.splice(one..one, copy);
            }
            3 => drop(bytes.splice(one..one, "[{\"a\":".repeat(300).into_bytes())),
            4 => drop(bytes.splice(one..one, [0xff, 0xc3, 0x28])),
            _ => drop(bytes.drain(start..end)),
        }
    }
}

/// Whole events twice, gone, or in another order.
fn shuffle(rng: &mut TestRng, bytes: &[u8]) -> Vec<u8> {
    let mut events = EventSplitter::default().feed(bytes).unwrap();
    for _ in 0..=rng.below(3) {
        let count = u32::try_from(events.len()).unwrap();
        let (one, other) = (rng.below(count) as usize, rng.below(count) as usize);
        match rng.below(3) {
            0 => events.swap(one, other),
            1 => events.insert(one, events[other].clone()),
            _ if count > 1 => drop(events.remove(one)),
            _ => {}
        }
    }
    events.into_iter().flat_map(|event| event.0).collect()
}

#[test]
fn no_damage_makes_it_panic_or_say_more_than_it_was_told() {
    for seed in 0..cases(2_000) {
        let mut rng = TestRng::new(seed);
        let mut filter = ResponsesFilter::new(Arc::new(OfferedNames::from([OURS.into()])));
        let (mut out, mut taken) = (Vec::new(), 0);
        for round in 0..3 {
            let mut bytes = script(&mut rng, round).bytes;
            if rng.below(2) == 0 {
                bytes = shuffle(&mut rng, &bytes);
            }
            if rng.below(2) == 0 {
                damage(&mut rng, &mut bytes);
            }
            taken += bytes.len();
            let fed = feed_cut(&mut rng, &mut filter, &bytes, &mut out);
            let Ok(end) = fed.and_then(|()| filter.end_round(&mut out)) else { break };
            let results: Vec<ToolResult> = end
                .skill_calls
                .iter()
                .map(|call| ToolResult {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    content: "1".into(),
                    is_error: false,
                })
                .collect();
            let next = crate::openai_responses::response::next_request(&json!({}), &end.response, &results);
            assert!(next["input"].is_array());
            if end.skill_calls.is_empty() || rng.below(3) == 0 {
                filter.finish(&results, &mut out);
            }
        }
        assert!(out.len() <= 2 * taken + 4_096, "seed {seed}: {} bytes from {taken}", out.len());
    }
}

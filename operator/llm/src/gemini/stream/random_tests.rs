//! Random conversations: well-formed for the client however they are cut, and harmless when they are damaged.

use super::*;
use crate::{
    Dialect as _, ToolCall,
    gemini::Gemini,
    gemini::response::result_text_part,
    sse::{self, EventSplitter},
    testing::corruption::{damage, feed_cut},
};
use skillet_core::test_rng::{TestRng, cases};

const TEXT: &str = "ab \"\\\n{}[],é😀";

/// One round as the provider means it.
struct Script {
    response: Value,
    chunks: Vec<Value>,
}

fn text_parts(rng: &mut TestRng, is_thought: bool) -> Vec<Value> {
    let part = |text: String| {
        if is_thought { json!({"text": text, "thought": true}) } else { json!({"text": text}) }
    };
    (0..=rng.below(3)).map(|_| part(rng.text(TEXT, 9) + "x")).collect()
}

/// Parts as they are streamed, one a chunk or several.
fn streamed(rng: &mut TestRng, number: u32, has_client_calls: bool) -> Vec<Value> {
    let is_client = has_client_calls && rng.below(3) == 0;
    let name = if is_client { "client" } else { "ours-tool" };
    let mut call = json!({"functionCall": {"name": name, "args": {"x": rng.text(TEXT, 20)}}});
    if rng.below(2) == 0 {
        let owner = if is_client { "c" } else { "ours-" };
        call["functionCall"]["id"] = format!("{owner}{number}").into();
    }
    match rng.below(6) {
        0 | 1 => text_parts(rng, false),
        2 => text_parts(rng, true),
        3 => vec![json!({"text": rng.text(TEXT, 5), "thoughtSignature": "c2ln"})],
        _ => vec![call],
    }
}

/// Neighbouring plain texts as one.
fn whole(parts: &[Value]) -> Vec<Value> {
    let mut whole: Vec<Value> = Vec::new();
    for part in parts {
        match (whole.last_mut(), plain_text(part)) {
            (Some(last), Some(text))
                if plain_text(last).is_some() && last.get("thought") == part.get("thought") =>
            {
                last["text"] = format!("{}{text}", last["text"].as_str().unwrap()).into();
            }
            _ => whole.push(part.clone()),
        }
    }
    whole
}

fn chunk(parts: &[Value]) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": "g"})
}

fn script(rng: &mut TestRng, round: u64, has_client_calls: bool) -> Script {
    let count = rng.below(5);
    let mut parts: Vec<Value> =
        (0..count).flat_map(|number| streamed(rng, number, has_client_calls)).collect();
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
    let mut response = chunk(&whole(&parts));
    for end in [chunks.last_mut().unwrap(), &mut response] {
        end["candidates"][0]["finishReason"] = "STOP".into();
        end["usageMetadata"] = json!({"promptTokenCount": 10 + round, "candidatesTokenCount": 20, "totalTokenCount": 30 + round});
    }
    Script { response, chunks }
}

fn written(chunks: &[Value], is_list: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    if is_list {
        bytes = format!("[{}\n]\n", chunks.iter().map(Value::to_string).collect::<Vec<_>>().join("\n,\r\n"))
            .into();
    } else {
        chunks.iter().for_each(|chunk| sse::write(None, &chunk.to_string(), &mut bytes));
    }
    bytes
}

fn read(bytes: &[u8], is_list: bool) -> Vec<Value> {
    if is_list {
        return serde_json::from_slice(bytes).unwrap();
    }
    let mut splitter = EventSplitter::default();
    let events = splitter.feed(bytes).unwrap();
    assert_eq!(splitter.rest(), None);
    events.iter().map(|event| serde_json::from_str(&event.data().unwrap()).unwrap()).collect()
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
fn the_client_gets_one_well_formed_stream_of_all_rounds_without_our_calls() {
    for seed in 0..cases(400) {
        let rng = &mut TestRng::new(seed);
        let (mut filter, mut out) = (filter(), Vec::new());
        let (mut expected, mut total) = (Vec::new(), Usage::default());
        let is_list = rng.below(3) == 0;
        let last = u64::from(rng.below(4));
        for round in 0..=last {
            let script = script(rng, round, round == last);
            let bytes = written(&script.chunks, is_list);
            let ended = feed_cut(&mut filter, &bytes, rng, &mut out).unwrap();
            assert_eq!(ended.response, script.response, "seed {seed}");
            let parts = script.response["candidates"][0]["content"]["parts"].as_array().unwrap();
            let is_ours = |part: &&Value| part["functionCall"]["name"] == "ours-tool";
            assert_eq!(ended.skill_calls.len(), parts.iter().filter(is_ours).count());
            expected.extend(parts.iter().filter(|part| !is_ours(part)).cloned());
            total = total.plus(Usage { input: 10 + round, output: 20 });
            if round == 0 && ended.skill_calls.is_empty() {
                assert_eq!(out, bytes, "seed {seed}");
            }
            if ended.skill_calls.is_empty() || round == last {
                let results = results(&ended.skill_calls);
                expected.extend(results.iter().map(result_text_part));
                filter.finish(&results, &mut out);
                break;
            }
        }
        assert!(!String::from_utf8_lossy(&out).contains("ours-"), "seed {seed}");
        let chunks = read(&out, is_list);
        let parts =
            chunks.iter().flat_map(|chunk| items(&chunk["candidates"][0]["content"]["parts"]).to_vec());
        let parts: Vec<Value> = parts.filter(|part| *part != json!({"text": ""})).collect();
        assert_eq!(whole(&parts), whole(&expected), "seed {seed}");
        let ends = chunks.iter().filter(|chunk| chunk["candidates"][0].get("finishReason").is_some());
        assert_eq!(ends.count(), 1, "seed {seed}");
        assert_eq!(Gemini.usage(chunks.last().unwrap()), total, "seed {seed}");
    }
}

#[test]
fn damaged_streams_neither_panic_nor_grow() {
    for seed in 0..cases(1500) {
        let rng = &mut TestRng::new(seed);
        let (mut filter, mut out) = (filter(), Vec::new());
        let is_list = rng.below(3) == 0;
        let mut given = 0;
        for round in 0..=u64::from(rng.below(2)) {
            let mut bytes = written(&script(rng, round, true).chunks, is_list);
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

//! Streams chunk by chunk: what passes, what is held, how rounds are joined.

// What json! makes is given away where it is written.
#![allow(clippy::needless_pass_by_value)]

use super::*;
use crate::{
    Arguments, DialectName, StreamFilter, ToolResult, sse,
    testing::fixtures::{self, data, feed_round},
};

fn events(chunks: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    chunks.iter().for_each(|chunk| sse::write(None, &chunk.to_string(), &mut bytes));
    bytes
}

fn filter() -> Box<dyn StreamFilter> {
    fixtures::filter(DialectName::Gemini, "ours")
}

fn result(content: &str) -> ToolResult {
    fixtures::result("f", "ours", content)
}

fn round(filter: &mut dyn StreamFilter, chunks: &[Value], out: &mut Vec<u8>) -> RoundEnd {
    feed_round(filter, &events(chunks), out)
}

/// A chunk with these parts and nothing else.
fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
}

/// A chunk that ends the answer.
fn last(with: Value, input: u64, output: u64) -> Value {
    let mut chunk = parts(with);
    chunk["candidates"][0]["finishReason"] = "STOP".into();
    chunk["usageMetadata"] =
        json!({"promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output});
    chunk
}

/// A result as the client reads it.
fn shown(content: &str) -> Value {
    parts(json!([{"text": format!("[Skill result: ours]\n{content}")}]))
}

/// The same after a text.
fn shown_below(content: &str) -> Value {
    parts(json!([{"text": format!("\n\n[Skill result: ours]\n{content}")}]))
}

fn call(name: &str) -> Value {
    json!({"functionCall": {"name": name, "args": {"x": 1}}})
}

#[test]
fn a_stream_without_calls_of_ours_passes_byte_for_byte_and_at_once() {
    let pieces = [
        &b"data: {\"candidates\":  [{\"content\": {\"parts\": [{\"functionCall\": {\"name\": \"client\"}}]}}]}\r\n\r\n"[..],
        b": note\n\ndata: not json\n\ndata: 7\n\n",
        b"data: {\"usageMetadata\": {\"totalTokenCount\": 1}, \"candidates\": [{\"finishReason\": \"STOP\"}]}\r\n\r\n",
    ];
    let list = [
        &b"[{\"candidates\": [] }\n"[..],
        b",\r\n{\"candidates\": [{\"finishReason\": \"STOP\"}]}",
        b"\n]\n",
    ];
    for pieces in [&pieces[..], &list[..]] {
        let (mut filter, mut out) = (filter(), Vec::new());
        for piece in pieces {
            filter.feed(piece, &mut out).unwrap();
        }
        filter.end_round(&mut out).unwrap();
        filter.finish(&[result("1")], &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(pieces.concat()).unwrap());
    }
}

#[test]
fn a_skill_call_and_the_end_are_held_and_the_next_round_continues() {
    let (mut filter, mut out) = (filter(), Vec::new());
    let first =
        [parts(json!([{"text": "a"}])), parts(json!([call("ours")])), last(json!([{"text": ""}]), 10, 5)];
    let ended = round(&mut *filter, &first, &mut out);
    assert_eq!(ended.skill_calls[0].arguments, Arguments::Json(json!({"x": 1})));
    assert_eq!(ended.response, last(json!([{"text": "a"}, call("ours")]), 10, 5));
    assert_eq!(data(&out), first[..1]);
    let second = [parts(json!([{"text": "b"}])), last(json!([{"text": "c"}]), 20, 7)];
    let ended = round(&mut *filter, &second, &mut out);
    assert_eq!(ended.response, last(json!([{"text": "bc"}]), 20, 7));
    filter.finish(&[], &mut out);
    assert_eq!(
        data(&out),
        [&first[..1], &[parts(json!([{"text": "\n\nb"}])), last(json!([{"text": "c"}]), 30, 12)]].concat()
    );
}

#[test]
fn a_chunk_that_is_ours_only_in_part_passes_without_it_and_its_end_is_held() {
    let (mut filter, mut out) = (filter(), Vec::new());
    let mut signed = call("ours");
    signed["thoughtSignature"] = "c2ln".into();
    let ended = round(&mut *filter, &[last(json!([{"text": "a"}, signed, call("client")]), 10, 5)], &mut out);
    assert!(ended.has_client_calls);
    assert_eq!(ended.response, last(json!([{"text": "a"}, signed, call("client")]), 10, 5));
    let mut client = call("client");
    client["thoughtSignature"] = "c2ln".into();
    let passed = parts(json!([{"text": "a"}, client]));
    assert_eq!(data(&out), std::slice::from_ref(&passed));
    filter.finish(&[result("{}")], &mut out);
    filter.finish(&[result("twice")], &mut out);
    assert_eq!(data(&out), [passed, shown_below("{}"), last(json!([]), 10, 5)]);
}

#[test]
fn an_end_in_two_chunks_is_held_whole() {
    let (mut filter, mut out) = (filter(), Vec::new());
    let mut usage = last(json!([]), 10, 5);
    usage.as_object_mut().unwrap().remove("candidates");
    let end = json!({"candidates": [{"finishReason": "STOP", "index": 0}]});
    round(&mut *filter, &[parts(json!([call("ours")])), end, usage], &mut out);
    assert!(out.is_empty());
    filter.finish(&[result("1")], &mut out);
    let mut end = last(json!([]), 10, 5);
    end["candidates"][0].as_object_mut().unwrap().remove("content");
    assert_eq!(data(&out), [shown("1"), end]);
}

#[test]
fn a_call_without_a_finish_reason_is_run_and_the_end_made() {
    let (mut filter, mut out) = (filter(), Vec::new());
    let ended = round(&mut *filter, &[parts(json!([call("ours")]))], &mut out);
    assert_eq!(ended.skill_calls.len(), 1);
    filter.finish(&[result("1")], &mut out);
    let made = json!({"candidates": [{"content": {"role": "model"}, "finishReason": "STOP", "index": 0}]});
    assert_eq!(data(&out), [shown("1"), made]);
}

fn piece(call: Value) -> Value {
    parts(json!([{"functionCall": call}]))
}

#[test]
fn arguments_in_pieces_are_held_until_they_are_complete() {
    let chunks = |name: &str| {
        [
            piece(json!({"name": name, "id": "f", "willContinue": true})),
            piece(
                json!({"partialArgs": [{"jsonPath": "$.city", "stringValue": "New ", "willContinue": true}], "willContinue": true}),
            ),
            piece(
                json!({"partialArgs": [{"jsonPath": "$.city", "stringValue": "Delhi"}], "willContinue": true}),
            ),
            piece(json!({})),
            last(json!([{"text": ""}]), 1, 1),
        ]
    };
    let (mut filter, mut out) = (filter(), Vec::new());
    let ended = round(&mut *filter, &chunks("ours"), &mut out);
    let whole = json!({"functionCall": {"name": "ours", "id": "f", "args": {"city": "New Delhi"}}});
    assert_eq!(ended.response, last(json!([whole]), 1, 1));
    assert_eq!((ended.skill_calls.len(), out.len()), (1, 0));
    let clients = chunks("client");
    let ended = round(&mut *filter, &clients, &mut out);
    assert!(ended.has_client_calls);
    assert_eq!(
        ended.response["candidates"][0]["content"]["parts"][0]["functionCall"]["args"],
        json!({"city": "New Delhi"})
    );
    assert_eq!(data(&out)[..4], clients[..4]);
}

#[test]
fn unreadable_argument_pieces_are_kept_as_text_and_half_a_call_is_truncated() {
    let odd = piece(json!({"name": "ours", "partialArgs": [{"jsonPath": "$..*", "stringValue": "x"}]}));
    let ended = round(&mut *filter(), &[odd], &mut Vec::new());
    let text = "{\"jsonPath\":\"$..*\",\"stringValue\":\"x\"}\n";
    assert_eq!(ended.skill_calls[0].arguments, Arguments::NotJson(text.into()));
    let (mut filter, mut out) = (filter(), Vec::new());
    filter.feed(&events(&[piece(json!({"name": "ours", "willContinue": true}))]), &mut out).unwrap();
    assert_eq!(filter.end_round(&mut out), Err(StreamError::Truncated));
    filter.finish(&[], &mut out);
    assert!(out.is_empty());
}

#[test]
fn a_list_of_chunks_stays_one_list_over_all_rounds() {
    let list =
        |chunks: &[Value]| Value::from(chunks).to_string().replace("},{\"cand", "}\n,\r\n{\"cand") + "\n";
    let (mut filter, mut out) = (filter(), Vec::new());
    let first = [parts(json!([call("ours")])), parts(json!([{"text": "a"}])), last(json!([]), 10, 5)];
    filter.feed(list(&first).as_bytes(), &mut out).unwrap();
    assert_eq!(filter.end_round(&mut out).unwrap().skill_calls.len(), 1);
    let second = [parts(json!([{"text": "b"}])), last(json!([call("ours")]), 10, 5)];
    filter.feed(list(&second).as_bytes(), &mut out).unwrap();
    assert_eq!(filter.end_round(&mut out).unwrap().skill_calls.len(), 1);
    filter.finish(&[result("1")], &mut out);
    let seen: Value = serde_json::from_slice(&out).unwrap();
    let second = parts(json!([{"text": "\n\nb"}]));
    assert_eq!(seen, json!([first[1], second, shown_below("1"), last(json!([]), 20, 10)]));
}

#[test]
fn candidates_are_kept_apart_by_index() {
    let candidate = |index: u64, text: &str| json!({"content": {"role": "model", "parts": [{"text": text}]}, "index": index});
    let chunks = [
        json!({"candidates": [candidate(1, "a"), candidate(0, "b")]}),
        json!({"candidates": [candidate(0, "c"), candidate(1, "d")], "modelVersion": "g"}),
    ];
    let ended = round(&mut *filter(), &chunks, &mut Vec::new());
    let expected = json!({"candidates": [candidate(0, "bc"), candidate(1, "ad")], "modelVersion": "g"});
    assert_eq!(ended.response, expected);
}

#[test]
fn a_part_with_a_signature_is_not_joined_with_its_neighbours() {
    let signed = json!({"text": "b", "thoughtSignature": "c2ln"});
    let thought = |text: &str| json!({"text": text, "thought": true});
    let chunks = [
        parts(json!([thought("h"), thought("m")])),
        parts(json!([{"text": "a"}, signed])),
        parts(json!([{"text": "c"}, {"text": "", "thoughtSignature": "ZW5k"}])),
    ];
    let ended = round(&mut *filter(), &chunks, &mut Vec::new());
    let whole = json!([thought("hm"), {"text": "a"}, signed, {"text": "c"}, {"text": "", "thoughtSignature": "ZW5k"}]);
    assert_eq!(ended.response, parts(whole));
}

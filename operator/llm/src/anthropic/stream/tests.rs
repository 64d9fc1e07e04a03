//! Streams event by event: what passes, what is held, how rounds are joined.

// What json! makes is given away where it is written.
#![allow(clippy::needless_pass_by_value)]

use super::*;
use crate::{
    Arguments, DialectName, StreamFilter, ToolCall, ToolResult,
    testing::fixtures::{self, data, feed_round},
};

/// Events from one JSON object a line.
fn events(lines: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines {
        sse::write(line["type"].as_str(), &line.to_string(), &mut bytes);
    }
    bytes
}

fn filter() -> Box<dyn StreamFilter> {
    fixtures::filter(DialectName::Anthropic, "ours")
}

fn result(content: &str) -> ToolResult {
    fixtures::result("t-ours-0", "ours", content)
}

fn round(filter: &mut dyn StreamFilter, lines: &[Value], out: &mut Vec<u8>) -> RoundEnd {
    feed_round(filter, &events(lines), out)
}

fn start(id: &str) -> Value {
    let usage = json!({"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 4});
    json!({"type": "message_start", "message": {"id": id, "type": "message", "role": "assistant", "model": "m",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage}})
}

fn block(index: u64, block: Value, delta: Value) -> [Value; 3] {
    [
        json!({"type": "content_block_start", "index": index, "content_block": block}),
        json!({"type": "content_block_delta", "index": index, "delta": delta}),
        json!({"type": "content_block_stop", "index": index}),
    ]
}

fn text(index: u64, text: &str) -> [Value; 3] {
    block(index, json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}))
}

fn call(index: u64, name: &str, input: &str) -> [Value; 3] {
    let call = json!({"type": "tool_use", "id": format!("t-{name}-{index}"), "name": name, "input": {}});
    block(index, call, json!({"type": "input_json_delta", "partial_json": input}))
}

fn end(reason: &str, output: u64) -> [Value; 2] {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    [
        json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": output}}),
        json!({"type": "message_stop"}),
    ]
}

fn total(reason: &str, input: u64, output: u64) -> [Value; 2] {
    let mut events = end(reason, output);
    events[0]["usage"]["input_tokens"] = input.into();
    events[0]["usage"]["cache_read_input_tokens"] = (input / 10 * 4).into();
    events
}

#[test]
fn a_stream_without_calls_of_ours_passes_byte_for_byte_and_at_once() {
    let bytes = [
        &b": note\n\nevent: message_start\r\ndata: {\"type\":\"message_start\",  \"message\":{\"usage\":{\"output_tokens\":1}}}\r\n\r\n"[..],
        b"event: ping\ndata: {\"type\": \"ping\"}\n\nevent: new\ndata: {\"type\":\"new\"}\n\ndata: not json\n\n",
        b"event: content_block_start\ndata: {\"content_block\":{\"type\":\"tool_use\",\"name\":\"client\",\"id\":\"c\"},\"index\":3,\"type\":\"content_block_start\"}\n\n",
        b"event: content_block_stop\ndata: {\"index\":3,\"type\":\"content_block_stop\"}\n\n",
        b"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ];
    let mut filter = filter();
    let (mut out, mut given) = (Vec::new(), Vec::new());
    for part in bytes {
        filter.feed(part, &mut out).unwrap();
        given.extend_from_slice(part);
        assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&given));
    }
    let ended = filter.end_round(&mut out).unwrap();
    assert_eq!((ended.skill_calls.len(), ended.has_client_calls), (0, true));
    filter.finish(&[result("1")], &mut out);
    assert_eq!(out, given);
}

#[test]
fn a_skill_call_and_the_end_are_held_and_the_next_round_continues() {
    let (mut filter, mut out) = (filter(), Vec::new());
    let first =
        [&[start("m1")][..], &text(0, "a"), &call(1, "ours", "{\"x\": 1}"), &end("tool_use", 5)].concat();
    let ended = round(&mut *filter, &first, &mut out);
    let arguments = Arguments::Json(json!({"x": 1}));
    assert_eq!(ended.skill_calls, [ToolCall { id: "t-ours-1".into(), name: "ours".into(), arguments }]);
    assert!(!ended.has_client_calls);
    assert_eq!(out, events(&[&[start("m1")][..], &text(0, "a")].concat()));

    let second = [&[start("m2")][..], &text(0, "b"), &end("end_turn", 7)].concat();
    let ended = round(&mut *filter, &second, &mut out);
    assert!(ended.skill_calls.is_empty());
    filter.finish(&[], &mut out);
    let seen = [&[start("m1")][..], &text(0, "a"), &text(1, "b"), &total("end_turn", 20, 12)].concat();
    assert_eq!(data(&out), seen);
}

#[test]
fn the_clients_call_beside_ours_ends_the_stream_with_our_results_after_it() {
    let (mut filter, mut out) = (filter(), Vec::new());
    let calls = [call(0, "ours", "{}"), call(1, "client", "{}")].concat();
    let ended = round(&mut *filter, &[&[start("m")][..], &calls, &end("tool_use", 5)].concat(), &mut out);
    assert!(ended.has_client_calls);
    filter.finish(&[result("{\"y\":2}")], &mut out);
    filter.finish(&[result("twice")], &mut out);
    let mut client = call(1, "client", "{}");
    client.iter_mut().for_each(|event| event["index"] = 0.into());
    let shown = text(1, "[Skill result: ours]\n{\"y\":2}");
    assert_eq!(data(&out), [&[start("m")][..], &client, &shown, &total("tool_use", 10, 5)].concat());
}

#[test]
fn the_response_is_put_together_from_all_kinds_of_deltas() {
    let lines = [
        start("m"),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "h"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "m"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "", "citations": null}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {"a": 1}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {"a": 2}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "t"}}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "compaction"}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "compaction_delta", "content": "c"}}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "server_tool_use", "id": "s", "name": "ours", "input": {}}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "{\"q\""}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": ":1}"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "container": {"id": "c"}}, "usage": {"output_tokens": 3}}),
    ];
    let ended = round(&mut *filter(), &lines, &mut Vec::new());
    let content = json!([
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "t", "citations": [{"a": 1}, {"a": 2}]},
        {"type": "compaction", "content": "c"},
        {"type": "server_tool_use", "id": "s", "name": "ours", "input": {"q": 1}},
    ]);
    let usage = json!({"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 4});
    let response = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": "end_turn", "stop_sequence": null, "container": {"id": "c"}, "usage": usage});
    assert_eq!(
        ended,
        RoundEnd { response, skill_calls: vec![], awaiting_confirmation: vec![], has_client_calls: false }
    );
}

#[test]
fn arguments_that_are_not_json_are_kept_as_text_and_empty_in_the_response() {
    let lines = [&[start("m")][..], &call(0, "ours", "{\"x\": "), &end("tool_use", 1)].concat();
    let ended = round(&mut *filter(), &lines, &mut Vec::new());
    assert_eq!(ended.skill_calls[0].arguments, Arguments::NotJson("{\"x\": ".into()));
    assert_eq!(ended.response["content"][0]["input"], json!({}));
}

#[test]
fn what_follows_an_event_without_blank_line_begins_an_event_of_its_own() {
    let (mut filter, mut out) = (filter(), Vec::new());
    let lines = [&[start("m")][..], &call(0, "ours", "{}"), &end("tool_use", 5)].concat();
    filter.feed(&events(&lines), &mut out).unwrap();
    filter.feed(b"data: {\"type\":\"ping\"}", &mut out).unwrap();
    filter.end_round(&mut out).unwrap();
    filter.finish(&[], &mut out);
    assert_eq!(data(&out), [&[start("m"), json!({"type": "ping"})][..], &total("end_turn", 10, 5)].concat());
}

#[test]
fn a_provider_that_only_says_stop_gets_an_end_made() {
    let (mut filter, mut out) = (filter(), Vec::new());
    let lines = [&[start("m")][..], &call(0, "ours", "{}"), &[json!({"type": "message_stop"})]].concat();
    round(&mut *filter, &lines, &mut out);
    filter.finish(&[], &mut out);
    assert_eq!(data(&out), [&[start("m")][..], &total("end_turn", 10, 1)].concat());
}

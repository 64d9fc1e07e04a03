//! Rounds of a stream are one answer for the client: one beginning, one end, one usage, and no call of ours between.

use std::sync::Arc;

use super::*;
use crate::{Arguments, Dialect as _, StreamFilter, ToolCall, ToolResult};

const OURS: &str = "web-search";

fn filter() -> Box<dyn StreamFilter> {
    OpenAiChat.stream_filter(Arc::new([Arc::from(OURS)].into()))
}

/// One chunk of the stream `id`.
fn chunk(id: &str, delta: &Value, finish_reason: &Value) -> String {
    let chunk = json!({
        "id": id, "object": "chat.completion.chunk", "created": if id == "r1" { 1 } else { 2 }, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    });
    format!("data:  {chunk}\n\n")
}

fn delta(id: &str, delta: &Value) -> String {
    chunk(id, delta, &Value::Null)
}

fn call(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn more(index: u64, arguments: &str) -> Value {
    json!({"index": index, "function": {"arguments": arguments}})
}

fn calls(id: &str, calls: &[Value]) -> String {
    delta(id, &json!({ "tool_calls": calls }))
}

fn end(id: &str, reason: &str) -> String {
    chunk(id, &json!({}), &json!(reason))
}

fn usage(id: &str, input: u64, output: u64) -> String {
    let total = input + output;
    format!(
        "data: {}\n\n",
        json!({"id": id, "object": "chat.completion.chunk", "created": 2, "model": "m", "choices": [],
            "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": total}})
    )
}

const DONE: &str = "data: [DONE]\n\n";

fn feed(filter: &mut dyn StreamFilter, parts: &[String]) -> String {
    let mut out = Vec::new();
    parts.iter().for_each(|part| filter.feed(part.as_bytes(), &mut out).unwrap());
    String::from_utf8(out).unwrap()
}

/// One round to its end: what the client was given, and how the round ended.
fn round(filter: &mut dyn StreamFilter, parts: &[String]) -> (String, RoundEnd) {
    let mut out = feed(filter, parts).into_bytes();
    let end = filter.end_round(&mut out).unwrap();
    (String::from_utf8(out).unwrap(), end)
}

fn finish(filter: &mut dyn StreamFilter, results: &[ToolResult]) -> String {
    let mut out = Vec::new();
    filter.finish(results, &mut out);
    String::from_utf8(out).unwrap()
}

fn result(id: &str, content: &str) -> ToolResult {
    ToolResult { id: id.to_owned(), name: OURS.to_owned(), content: content.to_owned(), is_error: false }
}

/// The JSON of every event.
fn events(stream: &str) -> Vec<Value> {
    let data = stream.split("\n\n").filter_map(|event| event.strip_prefix("data:"));
    data.filter(|data| data.trim() != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn deltas(stream: &str) -> Vec<Value> {
    events(stream).iter().map(|event| event["choices"][0]["delta"].clone()).collect()
}

fn ours(id: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), name: OURS.to_owned(), arguments: Arguments::Json(arguments) }
}

#[test]
fn a_round_without_a_call_of_ours_passes_byte_for_byte() {
    let parts = [
        ": ping\n\n".to_owned(),
        delta("r1", &json!({"role": "assistant", "content": ""})),
        delta("r1", &json!({"content": "Hi"})),
        "event: odd\ndata: {\"error\": 1}\r\n\r\n".to_owned(),
        "data: {broken\n\n".to_owned(),
        calls("r1", &[call(3, "a", "theirs", ""), call(4, "b", "web", "")]),
        calls("r1", &[more(3, "{}"), more(4, "{}")]),
        end("r1", "tool_calls"),
        usage("r1", 1, 2),
        "data: [DONE]".to_owned(),
    ];
    let mut filter = filter();
    let (out, end) = round(&mut *filter, &parts);
    assert_eq!(out, parts.concat());
    assert_eq!((end.skill_calls, end.has_client_calls), (vec![], true));
    assert_eq!(finish(&mut *filter, &[]), "");
}

#[test]
fn text_goes_out_at_once_and_a_call_of_ours_does_not() {
    let mut filter = filter();
    let text = delta("r1", &json!({"role": "assistant", "content": "Let me see"}));
    assert_eq!(feed(&mut *filter, std::slice::from_ref(&text)), text);
    assert_eq!(feed(&mut *filter, &[calls("r1", &[call(0, "c1", OURS, "")])]), "");
    assert_eq!(feed(&mut *filter, &[calls("r1", &[more(0, "{\"q\":")]), calls("r1", &[more(0, "1}")])]), "");
    assert_eq!(feed(&mut *filter, &[end("r1", "tool_calls"), usage("r1", 5, 6), DONE.to_owned()]), "");
    let (out, end) = round(&mut *filter, &[]);
    assert_eq!(out, "");
    assert_eq!((end.skill_calls, end.has_client_calls), (vec![ours("c1", json!({"q": 1}))], false));
    assert_eq!(
        end.response,
        json!({"id": "r1", "object": "chat.completion", "created": 1, "model": "m",
        "usage": {"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11},
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Let me see", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": OURS, "arguments": "{\"q\":1}"}},
            ],
        }}]})
    );
}

#[test]
fn a_later_round_continues_the_first_with_one_beginning_and_one_end() {
    let mut filter = filter();
    let first = [
        delta(
            "r1",
            &json!({"role": "assistant", "content": null, "tool_calls": [call(0, "c1", OURS, "{}")]}),
        ),
        end("r1", "tool_calls"),
        usage("r1", 5, 6),
        DONE.to_owned(),
    ];
    let (out, _) = round(&mut *filter, &first);
    assert_eq!(events(&out).len(), 1);
    assert_eq!(deltas(&out), [json!({"role": "assistant", "content": null})]);
    let second = [
        delta("r2", &json!({"role": "assistant", "content": ""})),
        delta("r2", &json!({"content": "42"})),
        end("r2", "stop"),
        usage("r2", 7, 8),
        DONE.to_owned(),
    ];
    let (out, end) = round(&mut *filter, &second);
    assert_eq!(end.response["id"], "r2");
    let events = events(&out);
    assert!(events.iter().all(|event| event["id"] == "r1" && event["created"] == 1), "{out}");
    assert_eq!(deltas(&out), [json!({"content": "42"}), json!({}), Value::Null]);
    assert_eq!(events[2]["usage"], json!({"prompt_tokens": 12, "completion_tokens": 14, "total_tokens": 26}));
    assert!(out.ends_with(DONE) && out.matches("[DONE]").count() == 1, "{out}");
    assert_eq!(finish(&mut *filter, &[]), "");
}

#[test]
fn the_clients_calls_beside_ours_are_numbered_without_gaps() {
    let mut filter = filter();
    let parts = [
        calls("r1", &[call(0, "c0", "first", "{}")]),
        calls("r1", &[call(1, "c1", OURS, "{}"), call(2, "c2", "second", "")]),
        calls("r1", &[more(2, "{\"a\":"), more(0, ""), more(1, " ")]),
        calls("r1", &[more(2, "1}")]),
        calls("r1", &[call(3, "c3", OURS, "{}")]),
        calls("r1", &[call(4, "c4", "third", "{}")]),
        end("r1", "tool_calls"),
        DONE.to_owned(),
    ];
    let (out, end) = round(&mut *filter, &parts);
    assert_eq!(
        deltas(&out).iter().map(|delta| delta["tool_calls"].clone()).collect::<Vec<_>>(),
        [
            json!([call(0, "c0", "first", "{}")]),
            json!([call(1, "c2", "second", "")]),
            json!([more(1, "{\"a\":"), more(0, "")]),
            json!([more(1, "1}")]),
            json!([call(2, "c4", "third", "{}")]),
        ]
    );
    assert!(out.starts_with(&parts[0]) && !out.contains(OURS), "{out}");
    assert_eq!((end.skill_calls.len(), end.has_client_calls), (2, true));
    let out = finish(&mut *filter, &[result("c1", "{}"), result("c3", "[]")]);
    let text = format!("[Skill result: {OURS}]\n{{}}\n\n[Skill result: {OURS}]\n[]");
    assert_eq!(deltas(&out), [json!({"role": "assistant", "content": text}), json!({})]);
    assert_eq!(events(&out)[1]["choices"][0]["finish_reason"], "tool_calls");
    assert!(out.ends_with(DONE), "{out}");
    assert_eq!(finish(&mut *filter, &[result("c1", "{}")]), "");
}

#[test]
fn rounds_that_are_used_up_end_with_the_results_as_text() {
    let mut filter = filter();
    let text = delta("r1", &json!({"role": "assistant", "content": "So"}));
    let call = calls("r1", &[call(0, "c1", OURS, "{}")]);
    round(&mut *filter, &[text, call.clone(), end("r1", "tool_calls"), usage("r1", 1, 2), DONE.to_owned()]);
    round(&mut *filter, &[call, end("r2", "tool_calls"), usage("r2", 3, 4), DONE.to_owned()]);
    let out = finish(&mut *filter, &[result("c1", "{}")]);
    let events = events(&out);
    assert_eq!(
        events[0]["choices"][0]["delta"],
        json!({"content": format!("\n\n[Skill result: {OURS}]\n{{}}")})
    );
    assert_eq!(events[1]["choices"][0]["finish_reason"], "stop");
    assert_eq!(events[2]["usage"]["total_tokens"], 10);
    assert!(events.iter().all(|event| event["id"] == "r1"), "{out}");
    assert!(out.ends_with(DONE), "{out}");
}

#[test]
fn calls_in_other_choices_are_dropped_and_the_choice_ends() {
    let second = |text: String| {
        text.replace("\"index\":0,\"delta\"", "\"index\":1,\"delta\"")
            .replace("\"finish_reason\":null,\"index\":0", "\"finish_reason\":null,\"index\":1")
            .replace(
                "\"finish_reason\":\"tool_calls\",\"index\":0",
                "\"finish_reason\":\"tool_calls\",\"index\":1",
            )
    };
    let parts = [
        second(calls("r1", &[call(0, "c1", OURS, "{}")])),
        second(end("r1", "tool_calls")),
        end("r1", "stop"),
        DONE.to_owned(),
    ];
    let (out, round_end) = round(&mut *filter(), &parts);
    assert_eq!((round_end.skill_calls.len(), round_end.has_client_calls), (0, false));
    let events = events(&out);
    assert_eq!(events[0]["choices"], json!([{"index": 1, "delta": {}, "finish_reason": "stop"}]));
    assert!(out.ends_with(&[end("r1", "stop"), DONE.to_owned()].concat()), "{out}");
}

#[test]
fn usage_in_every_chunk_adds_up_over_rounds() {
    let with_usage = |id: &str, text: &str, tokens: u64| {
        let mut chunk = events(&delta(id, &json!({"content": text})))[0].clone();
        chunk["usage"] =
            json!({"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens});
        format!("data: {chunk}\n\n")
    };
    let mut filter = filter();
    let call = calls("r1", &[call(0, "c1", OURS, "{}")]);
    round(&mut *filter, &[with_usage("r1", "a", 1), call, end("r1", "tool_calls")]);
    let (out, _) =
        round(&mut *filter, &[with_usage("r2", "b", 1), with_usage("r2", "c", 2), end("r2", "stop")]);
    let totals: Vec<Value> =
        events(&out).iter().map(|event| event["usage"]["total_tokens"].clone()).collect();
    assert_eq!(totals, [json!(22), json!(23), Value::Null]);
}

mod call_tests;

mod end_tests;

//! Rounds of a stream are one answer for the client: one beginning, one end, one numbering and no call of ours between.

use serde_json::json;

use super::{client_stream::BEGINNING_LIMIT, *};
use crate::{
    Arguments, DialectName, StreamFilter, ToolResult,
    sse::write,
    testing::fixtures::{self, data as events, feed_round},
};

fn filter() -> Box<dyn StreamFilter> {
    fixtures::filter(DialectName::OpenAiResponses, "weather")
}

fn result() -> ToolResult {
    fixtures::result("a", "weather", "\"sun\"")
}

fn round(filter: &mut dyn StreamFilter, bytes: &[u8]) -> (Vec<Value>, RoundEnd) {
    let mut out = Vec::new();
    let end = feed_round(filter, bytes, &mut out);
    (events(&out), end)
}

/// Events as a provider sends them, numbered from 0.
fn stream(events: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, event) in events.iter().enumerate() {
        let mut event = event.clone();
        event["sequence_number"] = json!(number);
        write(event["type"].as_str(), &event.to_string(), &mut bytes);
    }
    bytes
}

fn kinds(events: &[Value]) -> Vec<String> {
    let short = |event: &Value| event["type"].as_str().unwrap().trim_start_matches("response.").to_owned();
    events.iter().map(short).collect()
}

fn created(id: &str) -> Value {
    json!({"type": "response.created", "response": {"id": id, "created_at": 1, "status": "in_progress", "output": []}})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments})
}

fn call_events(index: u64, item: &Value) -> Vec<Value> {
    let mut begun = item.clone();
    begun["arguments"] = json!("");
    let (id, arguments) = (&item["id"], &item["arguments"]);
    vec![
        json!({"type": "response.output_item.added", "output_index": index, "item": begun}),
        json!({"type": "response.function_call_arguments.delta", "output_index": index, "item_id": id, "delta": arguments}),
        json!({"type": "response.function_call_arguments.done", "output_index": index, "item_id": id, "arguments": arguments}),
        json!({"type": "response.output_item.done", "output_index": index, "item": item}),
    ]
}

fn message(id: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text}]})
}

fn message_events(index: u64, item: &Value) -> Vec<Value> {
    vec![
        json!({"type": "response.output_item.added", "output_index": index, "item": item}),
        json!({"type": "response.output_text.delta", "output_index": index, "item_id": item["id"], "delta": item["content"][0]["text"]}),
        json!({"type": "response.output_item.done", "output_index": index, "item": item}),
    ]
}

fn end(kind: &str, id: &str, output: &[Value]) -> Value {
    let usage = json!({"input_tokens": 2, "output_tokens": 3, "total_tokens": 5, "output_tokens_details": {"reasoning_tokens": 1}});
    json!({"type": kind, "response": {"id": id, "created_at": 7, "status": "completed", "output": output, "usage": usage}})
}

fn completed(id: &str, output: &[Value]) -> Value {
    end("response.completed", id, output)
}

fn weather() -> Value {
    call("a", "weather", "{\"city\":\"Rome\"}")
}

fn our_round() -> Vec<u8> {
    stream(&[vec![created("r1")], call_events(0, &weather()), vec![completed("r1", &[weather()])]].concat())
}

fn finish(filter: &mut dyn StreamFilter, results: &[ToolResult]) -> Vec<Value> {
    let mut out = Vec::new();
    filter.finish(results, &mut out);
    events(&out)
}

#[test]
fn a_stream_without_a_call_of_ours_passes_byte_for_byte() {
    let own = call("b", "own", "{}");
    let parts =
        [vec![created("r1")], call_events(0, &own), vec![completed("r1", std::slice::from_ref(&own))]];
    let mut bytes =
        b": ping\r\n\r\nevent: odd\nid: 7\ndata:  {\"type\":\"response.new\",   \"x\": 1.0}\n\n".to_vec();
    bytes.extend(stream(&parts.concat()));
    bytes.extend_from_slice(b"data: [DONE]\n");
    let (mut filter, mut out) = (filter(), Vec::new());
    filter.feed(&bytes, &mut out).unwrap();
    let end = filter.end_round(&mut out).unwrap();
    assert_eq!(out, bytes);
    assert!(end.skill_calls.is_empty() && end.has_client_calls);
    filter.finish(&[], &mut out);
    assert_eq!(out, bytes);
}

#[test]
fn our_call_and_the_end_are_held_back_and_the_next_round_continues() {
    let mut filter = filter();
    let (first, end) = round(&mut *filter, &our_round());
    assert!(first.is_empty(), "the client sees the response that it continues from");
    assert!(!end.has_client_calls);
    let arguments = Arguments::Json(json!({"city": "Rome"}));
    assert_eq!(end.skill_calls, [crate::ToolCall { id: "a".into(), name: "weather".into(), arguments }]);
    assert_eq!(end.response, completed("r1", &[weather()])["response"]);

    let text = message("m", "Sunny.");
    let parts =
        [vec![created("r2")], message_events(0, &text), vec![completed("r2", std::slice::from_ref(&text))]];
    let (second, end) = round(&mut *filter, &stream(&parts.concat()));
    let expected = ["created", "output_item.added", "output_text.delta", "output_item.done", "completed"];
    assert_eq!(kinds(&second), expected);
    let numbers: Vec<_> = second.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    assert_eq!(second[0]["response"]["id"], "r2");
    let last = &second[4]["response"];
    assert_eq!(
        (&last["id"], &last["created_at"], &last["output"]),
        (&json!("r2"), &json!(1), &json!([text]))
    );
    let usage = json!({"input_tokens": 4, "output_tokens": 6, "total_tokens": 10, "output_tokens_details": {"reasoning_tokens": 2}});
    assert_eq!(last["usage"], usage);
    assert_eq!((end.response["id"].as_str(), end.skill_calls.len()), (Some("r2"), 0));
    assert!(finish(&mut *filter, &[result()]).is_empty());
}

#[test]
fn later_items_are_numbered_without_ours() {
    let (text, own) = (message("m", "x"), call("b", "own", "{}"));
    let output = [text.clone(), weather(), own.clone()];
    let parts = [
        vec![created("r1")],
        message_events(0, &text),
        call_events(1, &weather()),
        call_events(2, &own),
        vec![completed("r1", &output)],
    ];
    let mut filter = filter();
    let (seen, end) = round(&mut *filter, &stream(&parts.concat()));
    assert!(end.has_client_calls);
    assert_eq!(seen[4]["item"]["name"], "own");
    assert!(seen[4..].iter().all(|event| event["output_index"] == 1));
    let rest = finish(&mut *filter, &[result()]);
    let expected = [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(kinds(&rest), expected);
    assert!(rest[..6].iter().all(|event| event["output_index"] == 2));
    assert_eq!(rest[2]["delta"], "[Skill result: weather]\n\"sun\"");
    assert_eq!(rest[6]["sequence_number"], 14);
    assert_eq!(rest[6]["response"]["output"], json!([text, own, rest[5]["item"]]));
}

#[test]
fn used_up_rounds_end_with_the_results_and_what_trailed() {
    let (mut filter, mut out) = (filter(), Vec::new());
    filter.feed(&our_round(), &mut out).unwrap();
    filter.feed(b"data: [DONE]\n\n", &mut out).unwrap();
    filter.end_round(&mut out).unwrap();
    assert!(!String::from_utf8_lossy(&out).contains("DONE"));
    filter.finish(&[result()], &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.ends_with("data: [DONE]\n\n") && text.matches("[DONE]").count() == 1);
    assert!(text.contains("event: response.completed\n"));
    assert!(!text.contains("function_call"), "{text}");
}

#[test]
fn the_client_sees_one_response_id_over_all_rounds() {
    let (text, more) = (message("m", "Let me see."), message("n", "Sunny."));
    let output = [text.clone(), weather()];
    let parts = [
        vec![created("r1")],
        message_events(0, &text),
        call_events(1, &weather()),
        vec![completed("r1", &output)],
    ];
    let mut filter = filter();
    let (first, _) = round(&mut *filter, &stream(&parts.concat()));
    assert_eq!((kinds(&first)[0].as_str(), &first[0]["response"]["id"]), ("created", &json!("r1")));
    let parts = [vec![created("r2")], message_events(0, &more), vec![completed("r2", &[more])]];
    let (second, end) = round(&mut *filter, &stream(&parts.concat()));
    assert_eq!(kinds(&second)[0], "output_item.added");
    assert_eq!(second.last().unwrap()["response"]["id"], "r1");
    assert_eq!(end.response["id"], "r2");
}

#[test]
fn what_begins_a_response_waits_for_nothing_but_its_first_item() {
    let in_progress = json!({"type": "response.in_progress", "response": created("r1")["response"]});
    let beginning = [created("r1"), in_progress.clone()];
    let mut own = call_events(0, &call("b", "own", "{}"));
    own.truncate(1);
    let (mut filter, mut out) = (filter(), Vec::new());
    filter.feed(&stream(&beginning), &mut out).unwrap();
    assert!(out.is_empty());
    let whole = stream(&[beginning.to_vec(), own].concat());
    filter.feed(&whole[stream(&beginning).len()..], &mut out).unwrap();
    assert_eq!(out, whole);
    // A comment is a sign of life, and would come too late.
    let (mut filter, mut out) = (self::filter(), Vec::new());
    let bytes = [stream(&beginning), b": busy\n\n".to_vec()].concat();
    filter.feed(&bytes, &mut out).unwrap();
    assert_eq!(out, bytes);
    // Nobody begins so often.
    let many = stream(&vec![in_progress; BEGINNING_LIMIT]);
    let (mut filter, mut out) = (self::filter(), Vec::new());
    filter.feed(&many, &mut out).unwrap();
    assert_eq!(out, many);
}

#[test]
fn a_provider_that_does_not_number_its_events_gets_no_numbers() {
    let mut bytes = Vec::new();
    for event in events(&our_round()) {
        let mut event = event;
        event.as_object_mut().unwrap().remove("sequence_number");
        write(None, &event.to_string(), &mut bytes);
    }
    let mut filter = filter();
    round(&mut *filter, &bytes);
    let rest = finish(&mut *filter, &[result()]);
    assert!(rest.iter().all(|event| event.get("sequence_number").is_none()));
}

mod call_tests;

mod end_tests;

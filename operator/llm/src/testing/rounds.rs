//! One round of a stream in every dialect.

use serde_json::{Value, json};

use crate::DialectName;

pub(super) fn event(kind: Option<&str>, data: &Value) -> String {
    let kind = kind.map(|kind| format!("event: {kind}\n")).unwrap_or_default();
    format!("{kind}data: {data}\n\n")
}

/// One round: a text, then these calls, each with `{"a":1}`; the bytes before its end, and the end.
pub(super) fn round(dialect: DialectName, calls: &[&str]) -> (String, String) {
    match dialect {
        DialectName::OpenAiChat => chat(calls),
        DialectName::OpenAiResponses => responses(calls),
        DialectName::Anthropic => anthropic(calls),
        DialectName::Gemini => gemini(calls),
    }
}

fn chat(calls: &[&str]) -> (String, String) {
    let chunk = |choices: Value| {
        event(
            None,
            &json!({"id": "r", "created": 1, "model": "m", "object": "chat.completion.chunk", "choices": choices}),
        )
    };
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    let mut text = delta(json!({"role": "assistant", "content": "Hm."}));
    for (index, name) in calls.iter().enumerate() {
        let id = format!("call_{name}");
        text += &delta(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]}),
        );
        for piece in ["{\"a\"", ":1}"] {
            text += &delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}));
        }
    }
    let end = chunk(json!([{"index": 0, "delta": {}, "finish_reason": "tool_calls"}])) + "data: [DONE]\n\n";
    (text, end)
}

fn responses(calls: &[&str]) -> (String, String) {
    let mut number = 0;
    let mut say = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(number);
        number += 1;
        event(Some(kind), &data)
    };
    let mut text =
        say("response.created", json!({"response": {"id": "resp_1", "created_at": 1, "output": []}}));
    let mut output = vec![json!({"type": "reasoning", "id": "rs_1", "summary": []})];
    text += &say("response.output_item.added", json!({"output_index": 0, "item": output[0]}));
    text += &say("response.output_item.done", json!({"output_index": 0, "item": output[0]}));
    for (index, name) in (1..).zip(calls) {
        let id = format!("fc_{name}");
        let mut item = json!({"type": "function_call", "id": id, "call_id": format!("call_{name}"), "name": name, "arguments": ""});
        text += &say("response.output_item.added", json!({"output_index": index, "item": item}));
        text += &say(
            "response.function_call_arguments.delta",
            json!({"output_index": index, "item_id": id, "delta": "{\"a\":1}"}),
        );
        item["arguments"] = json!("{\"a\":1}");
        text += &say("response.output_item.done", json!({"output_index": index, "item": item}));
        output.push(item);
    }
    let end =
        say("response.completed", json!({"response": {"id": "resp_1", "created_at": 1, "output": output}}));
    (text, end)
}

fn anthropic(calls: &[&str]) -> (String, String) {
    let say = |data: Value| event(data["type"].as_str(), &data);
    let mut text = say(
        json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": {"input_tokens": 3, "output_tokens": 1}}}),
    );
    let begin = |index: usize, block: Value| {
        say(json!({"type": "content_block_start", "index": index, "content_block": block}))
    };
    let delta = |index: usize, delta: Value| {
        say(json!({"type": "content_block_delta", "index": index, "delta": delta}))
    };
    let stop = |index: usize| say(json!({"type": "content_block_stop", "index": index}));
    text += &begin(0, json!({"type": "text", "text": ""}));
    text += &(delta(0, json!({"type": "text_delta", "text": "Hm."})) + &stop(0));
    for (index, name) in (1..).zip(calls) {
        text += &begin(
            index,
            json!({"type": "tool_use", "id": format!("call_{name}"), "name": name, "input": {}}),
        );
        text += &delta(index, json!({"type": "input_json_delta", "partial_json": "{\"a\""}));
        text += &(delta(index, json!({"type": "input_json_delta", "partial_json": ":1}"})) + &stop(index));
    }
    let end = say(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 9}}),
    ) + &say(json!({"type": "message_stop"}));
    (text, end)
}

fn gemini(calls: &[&str]) -> (String, String) {
    let chunk =
        |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]});
    let mut text = event(None, &chunk(json!([{"text": "Hm."}])));
    for name in calls {
        text += &event(None, &chunk(json!([{"functionCall": {"name": name, "args": {"a": 1}}}])));
    }
    let mut end = chunk(json!([{"text": ""}]));
    end["candidates"][0]["finishReason"] = json!("STOP");
    (text, event(None, &end))
}

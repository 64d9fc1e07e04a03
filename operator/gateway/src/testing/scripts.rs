//! Responses of a model and requests of a client, in each dialect, streamed or not.

use serde_json::{Value, json};
use skillet_llm::DialectName::{self, Anthropic, Gemini, OpenAiChat, OpenAiResponses};

use super::{TestGateway, TestResponse};

pub(crate) const CHAT: &str = "/v1/chat/completions";

const TEXT: &str = "all done";

/// A call of the model: name and input.
pub(crate) type Call<'a> = Option<(&'a str, &'a Value)>;

/// The text of a response of the model: one call, or a text.
pub(crate) fn response(dialect: DialectName, call: Call<'_>, is_streaming: bool) -> String {
    match dialect {
        OpenAiChat => chat_response(call, is_streaming),
        OpenAiResponses => responses_response(call, is_streaming),
        Anthropic => anthropic_response(call, is_streaming),
        Gemini => gemini_response(call, is_streaming),
    }
}

fn chat_response(call: Call<'_>, is_streaming: bool) -> String {
    let message = match call {
        None => json!({ "role": "assistant", "content": TEXT }),
        Some((name, input)) => {
            let function = json!({ "name": name, "arguments": input.to_string() });
            json!({ "role": "assistant",
                "tool_calls": [{ "index": 0, "id": "c1", "type": "function", "function": function }] })
        }
    };
    let finish = if call.is_some() { "tool_calls" } else { "stop" };
    if is_streaming {
        let chunk = json!({ "choices": [{ "index": 0, "delta": message, "finish_reason": finish }] });
        format!("data: {chunk}\n\ndata: [DONE]\n\n")
    } else {
        json!({ "choices": [{ "index": 0, "message": message, "finish_reason": finish }] }).to_string()
    }
}

fn responses_response(call: Call<'_>, is_streaming: bool) -> String {
    let content = json!([{ "type": "output_text", "text": TEXT, "annotations": [] }]);
    let item = call.map_or_else(
        || json!({ "type": "message", "id": "m1", "role": "assistant", "content": content }),
        |(name, input)| {
            json!({ "type": "function_call", "id": "f1", "call_id": "c1", "name": name,
                "arguments": input.to_string() })
        },
    );
    let whole = json!({ "id": "resp_1", "status": "completed", "output": [item] });
    if !is_streaming {
        return whole.to_string();
    }
    [
        json!({ "type": "response.created", "response": { "id": "resp_1", "output": [] } }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": whole }),
    ]
    .map(|event| sse(&event))
    .concat()
}

fn anthropic_response(call: Call<'_>, is_streaming: bool) -> String {
    let finish = if call.is_some() { "tool_use" } else { "end_turn" };
    let block = call.map_or_else(
        || json!({ "type": "text", "text": TEXT }),
        |(name, input)| json!({ "type": "tool_use", "id": "t1", "name": name, "input": input }),
    );
    if !is_streaming {
        return json!({ "type": "message", "role": "assistant", "content": [block], "stop_reason": finish })
            .to_string();
    }
    let (start, delta) = match call {
        None => (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": TEXT })),
        Some((name, input)) => (
            json!({ "type": "tool_use", "id": "t1", "name": name, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
        ),
    };
    [
        json!({ "type": "message_start", "message": { "role": "assistant", "content": [] } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": start }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": finish }, "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ]
    .map(|event| sse(&event))
    .concat()
}

fn gemini_response(call: Call<'_>, is_streaming: bool) -> String {
    let part = call.map_or_else(
        || json!({ "text": TEXT }),
        |(name, input)| json!({ "functionCall": { "name": name, "args": input } }),
    );
    let content = json!({ "role": "model", "parts": [part] });
    let whole = json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] });
    if is_streaming { format!("data: {whole}\n\n") } else { whole.to_string() }
}

fn sse(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

/// A request with this turn of the user, and its path.
pub(crate) fn asking(dialect: DialectName, text: &str, is_streaming: bool) -> (String, Value) {
    let messages = json!([{ "role": "user", "content": text }]);
    match dialect {
        OpenAiChat => (CHAT.into(), json!({ "model": "m", "stream": is_streaming, "messages": messages })),
        OpenAiResponses => {
            ("/v1/responses".into(), json!({ "model": "m", "stream": is_streaming, "input": messages }))
        }
        Anthropic => {
            ("/v1/messages".into(), json!({ "model": "m", "stream": is_streaming, "messages": messages }))
        }
        Gemini => {
            let method = if is_streaming { "streamGenerateContent?alt=sse" } else { "generateContent" };
            let contents = json!([{ "role": "user", "parts": [{ "text": text }] }]);
            (format!("/v1beta/models/gemini-2.5-pro:{method}"), json!({ "contents": contents }))
        }
    }
}

/// Lets the provider respond with this.
pub(crate) fn will_say(
    gateway: &TestGateway,
    dialect: DialectName,
    call: Option<(&str, &Value)>,
    is_streaming: bool,
) {
    let kind = if is_streaming { "text/event-stream" } else { "application/json" };
    gateway.provider.will_write(kind, response(dialect, call, is_streaming));
}

/// Confirms the only call of a response, by a chat client in a further request.
pub(crate) async fn confirm(gateway: &TestGateway, answer: &TestResponse, tool: &str, input: &Value) {
    let text = answer.text.replace("\\\"", "\"").replace("\\\\", "\\");
    let from = text.find(r#"{"skillet":"confirm""#).unwrap_or_else(|| panic!("no prompt in {text}"));
    let confirmation = text[from..].split_inclusive('}').next().unwrap();
    let function = json!({ "name": tool, "arguments": input.to_string() });
    let calls = json!([{ "id": "c1", "type": "function", "function": function }]);
    let messages = json!([{ "role": "user", "content": "pay" }, { "role": "assistant", "tool_calls": calls },
        { "role": "tool", "tool_call_id": "c1", "content": confirmation }]);
    gateway.post(CHAT, &json!({ "model": "m", "messages": messages })).await;
}

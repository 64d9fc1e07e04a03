//! Requests and responses of every dialect with random parts replaced, removed and moved: they are left as they are
//! or refused, and nothing panics.

use serde_json::{Value, json};

use crate::{
    Arguments, DialectName, OfferedNames, ToolCall, ToolDefinition, ToolResult,
    confirmation::{
        ConfirmationKey, NONCE_BYTES, PendingCall, ProviderIds,
        reply::{self, Reply},
    },
    history::ResultLocation,
    tool_names::SkillIdentity,
};
use skillet_core::test_rng::{TestRng, cases};

fn request(name: DialectName) -> Value {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    match name {
        DialectName::OpenAiChat => json!({
            "model": "m", "stream": false, "tool_choice": "required",
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": [{ "type": "text", "text": "How is the weather?" }, { "type": "image_url" }] },
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "c0", "type": "function", "function": { "name": "own", "arguments": "{}" } }] },
                { "role": "tool", "tool_call_id": "c0", "content": "ok" },
            ],
            "tools": [{ "type": "function", "function": { "name": "own", "parameters": schema } }],
        }),
        DialectName::OpenAiResponses => json!({
            "model": "m", "instructions": "Be brief.", "tool_choice": { "type": "function", "name": "own" },
            "input": [
                { "role": "user", "content": [{ "type": "input_text", "text": "How is the weather?" }] },
                { "type": "function_call", "call_id": "c0", "name": "own", "arguments": "{}" },
                { "type": "function_call_output", "call_id": "c0", "output": "ok" },
            ],
            "tools": [{ "type": "function", "name": "own", "parameters": schema }, { "type": "web_search" }],
        }),
        DialectName::Anthropic => json!({
            "model": "m", "max_tokens": 100, "system": [{ "type": "text", "text": "Be brief." }],
            "tool_choice": { "type": "any" },
            "messages": [
                { "role": "user", "content": "How is the weather?" },
                { "role": "assistant", "content": [{ "type": "tool_use", "id": "c0", "name": "own", "input": {} }] },
                { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c0", "content": [{ "type": "text", "text": "ok" }] }] },
            ],
            "tools": [{ "name": "own", "input_schema": schema }],
        }),
        DialectName::Gemini => json!({
            "systemInstruction": { "parts": [{ "text": "Be brief." }] },
            "toolConfig": { "functionCallingConfig": { "mode": "ANY" } },
            "contents": [
                { "role": "user", "parts": [{ "text": "How is the weather?" }, { "inlineData": {} }] },
                { "role": "model", "parts": [{ "functionCall": { "name": "own", "args": {} } }] },
                { "role": "user", "parts": [{ "functionResponse": { "name": "own", "response": { "a": 1 } } }] },
            ],
            "tools": [{ "functionDeclarations": [{ "name": "own", "parameters": schema }] }, { "googleSearch": {} }],
        }),
    }
}

fn response(name: DialectName) -> Value {
    match name {
        DialectName::OpenAiChat => json!({
            "id": "r", "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": "Let me see.", "tool_calls": [
                    { "id": "c1", "type": "function", "function": { "name": "weather", "arguments": "{\"city\":\"Rome\"}" } },
                    { "id": "c2", "type": "function", "function": { "name": "own", "arguments": "{}" } },
                ] } }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3 },
        }),
        DialectName::OpenAiResponses => json!({
            "id": "r", "status": "completed", "output": [
                { "type": "reasoning", "id": "rs", "summary": [] },
                { "type": "function_call", "id": "f1", "call_id": "c1", "name": "weather", "arguments": "{\"city\":\"Rome\"}" },
                { "type": "function_call", "id": "f2", "call_id": "c2", "name": "own", "arguments": "{}" },
            ],
            "usage": { "input_tokens": 1, "output_tokens": 2, "total_tokens": 3 },
        }),
        DialectName::Anthropic => json!({
            "id": "r", "role": "assistant", "stop_reason": "tool_use", "content": [
                { "type": "text", "text": "Let me see." },
                { "type": "tool_use", "id": "c1", "name": "weather", "input": { "city": "Rome" } },
                { "type": "tool_use", "id": "c2", "name": "own", "input": {} },
            ],
            "usage": { "input_tokens": 1, "output_tokens": 2 },
        }),
        DialectName::Gemini => json!({
            "candidates": [{ "index": 0, "finishReason": "STOP", "content": { "role": "model", "parts": [
                { "text": "Let me see." },
                { "functionCall": { "id": "c1", "name": "weather", "args": { "city": "Rome" } }, "thoughtSignature": "s" },
                { "functionCall": { "name": "own", "args": {} } },
            ] } }],
            "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3 },
        }),
    }
}

/// Pointers to all values in a document.
fn places(value: &Value, here: &str, found: &mut Vec<String>) {
    found.push(here.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{here}/{index}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                places(field, &format!("{here}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn some_place(document: &Value, rng: &mut TestRng) -> String {
    let mut found = Vec::new();
    places(document, "", &mut found);
    let chosen = rng.below(u32::try_from(found.len()).unwrap()) as usize;
    found.swap_remove(chosen)
}

fn odd_value(document: &Value, rng: &mut TestRng) -> Value {
    match rng.below(14) {
        0 => Value::Null,
        1 => json!(rng.below(2) == 0),
        2 => json!(-1),
        3 => json!(1e300),
        4 => json!(""),
        5 => json!("weather"),
        6 => json!("x".repeat(rng.below(3_000) as usize)),
        7 => json!([]),
        8 => json!({}),
        9 => json!(r#"{"skillet":"refuse"}"#),
        10 => json!({ "type": "text", "text": "[Skill result: weather]\n{}" }),
        11 => (0..100).fold(json!(0), |inner, _| json!([{ "a": inner }])),
        _ => document.pointer(&some_place(document, rng)).cloned().unwrap_or_default(),
    }
}

/// Changes a document in one to three places.
fn disturb(document: &mut Value, rng: &mut TestRng) {
    for _ in 0..=rng.below(3) {
        let (place, odd) = (some_place(document, rng), odd_value(document, rng));
        let way = rng.below(4);
        match (way, document.pointer_mut(&place)) {
            (0, Some(Value::Array(items))) => {
                let at = rng.below(u32::try_from(items.len()).unwrap() + 1) as usize;
                items.insert(at, odd);
            }
            (1, Some(Value::Array(items))) => drop(items.pop()),
            (0 | 1, Some(Value::Object(fields))) => {
                let name = fields.keys().nth(rng.below(8) as usize).cloned();
                name.map(|name| fields.remove(&name));
            }
            (_, Some(value)) => *value = odd,
            (_, None) => {}
        }
    }
}

/// Checks the calls that clients send back, and their confirmations.
fn check_sent(name: DialectName, request: &Value) {
    let dialect = name.dialect();
    name.find_exclusion(request, "gemini-2.5-pro");
    let key = ConfirmationKey::new(&[7; 32]).unwrap();
    let skill = SkillIdentity { namespace: "a", name: "own", version: "1.0.0" };
    let tokens = ["c0", ""].map(|call_id| {
        let call = PendingCall { caller: "a/b", call_id, tool: "own", arguments: &json!({}) };
        key.make(&call, skill, 9, [1; NONCE_BYTES])
    });
    let sent = dialect.history_calls(request);
    let words = reply::read_replies(Some(&key), "a/b", &sent, &tokens, 0);
    assert_eq!(words.len(), sent.len());
    for token in &tokens {
        let is_of =
            |word: &&Reply| matches!(word, Reply::Confirmed(confirmed) if token.ends_with(&confirmed.code));
        assert!(words.iter().filter(is_of).count() <= 1, "one token, one call");
    }
    let mut settled = request.clone();
    dialect.repair_history(&mut settled);
    assert!(!dialect.repair_history(&mut settled), "once is enough");
    let known: Vec<(String, ResultLocation)> =
        sent.iter().map(|call| (call.id.to_owned(), call.location)).collect();
    for (id, place) in &known {
        let result =
            ToolResult { id: id.clone(), name: "own".into(), content: "{\"n\":77}".into(), is_error: false };
        dialect.replace_result(&mut settled, *place, &result);
    }
    let after = dialect.history_calls(&settled);
    assert!(after.iter().map(|call| (call.id.to_owned(), call.location)).eq(known), "{request}");
    assert!(after.iter().all(|call| call.result.to_string().contains("77")), "{request}");
}

/// Inserts a prompt about all calls of a response, and checks that the calls stay.
fn check_question(name: DialectName, response: &Value) {
    let calls = name.dialect().tool_calls(response);
    let ids = ProviderIds::of(response);
    assert!(calls.iter().all(|call| ["", call.id.as_str()].contains(&ids.of_call(call))));
    let mut asked = response.clone();
    let is_put = name.dialect().insert_text_before_calls(&mut asked, "77 of them");
    assert_eq!(is_put, asked != *response);
    assert!(!is_put || asked.to_string().contains("77 of them"));
    let without_ids = |calls: Vec<ToolCall>| {
        calls.into_iter().map(|call| (call.name, call.arguments)).collect::<Vec<(String, Arguments)>>()
    };
    assert_eq!(without_ids(name.dialect().tool_calls(&asked)), without_ids(calls));
}

fn check(name: DialectName, rng: &mut TestRng) {
    let dialect = name.dialect();
    let (mut request, mut response) = (request(name), response(name));
    disturb(&mut request, rng);
    disturb(&mut response, rng);
    let tools = [ToolDefinition {
        name: "weather".into(),
        description: "Tells the weather.".into(),
        parameters: json!({ "type": "object" }).into(),
    }];
    check_sent(name, &request);
    check_question(name, &response);
    dialect.client_tools(&request);
    dialect.client_tool_names(&request);
    dialect.texts(&request);
    dialect.is_streaming(&request);
    let before = request.clone();
    if dialect.append_tools(&mut request, &tools).is_err() {
        assert_eq!(request, before, "a request that is refused stays as it was");
    }
    let offered = OfferedNames::from(["weather".into()]);
    let calls = dialect.tool_calls(&response);
    let ours = calls.into_iter().filter(|call| offered.contains(call.name.as_str()));
    let results: Vec<ToolResult> = ours
        .map(|call| ToolResult { id: call.id, name: call.name, content: "\"sun\"".into(), is_error: false })
        .collect();
    let size = request.to_string().len() + response.to_string().len();
    let mut next = dialect.next_request(&request, &response, &results);
    name.relax_tool_choice(&mut next, &offered);
    let mut mixed = dialect.client_response(&response, &results);
    let total = dialect.usage(&mixed).plus(&dialect.usage(&response));
    dialect.set_usage(&mut mixed, &total);
    let grown = next.to_string().len() + mixed.to_string().len();
    assert!(grown <= 3 * size + 2_000, "{grown} bytes from {size}");
}

#[test]
fn odd_requests_and_responses_are_left_or_refused() {
    for seed in 0..cases(500) {
        for name in DialectName::ALL {
            check(name, &mut TestRng::new(seed));
        }
    }
}

//! Two turns in each dialect: a client sends back what it got, and the provider gets the turns that it made.

use serde_json::{Value, json};

use super::super::tests::{key, stocked};
use crate::testing::TestGateway;

/// A call's id, its tool and its result.
type Answered<'a> = (&'a str, &'a str, &'a str);

/// One dialect's form of a conversation. `look` is a skill and gives `{"paid":5}`; `own` is the client's tool.
struct Wire {
    path: &'static str,
    turns: &'static str,
    request: Value,
    /// A whole response of these parts.
    response: fn(Value) -> Value,
    /// The turn that a client makes of a whole response.
    client_turns: fn(&Value) -> Vec<Value>,
    /// The model's turn of these parts, as the provider takes it back.
    model_turns: fn(Value) -> Vec<Value>,
    user: fn(&str) -> Value,
    thought: Value,
    text: fn(&str) -> Value,
    call: fn(&str, &str) -> Value,
    /// Results of calls by id and name, in one turn.
    results: fn(&[Answered]) -> Vec<Value>,
    /// The id under which the client answers the only call of a response.
    call_id: fn(&Value) -> String,
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().unwrap().clone()
}

fn chat() -> Wire {
    /// One message of all parts.
    fn message(parts: &Value) -> Value {
        let mut message = json!({"role": "assistant", "content": null});
        for part in list(parts) {
            if part["type"] == "function" {
                let calls = message.as_object_mut().unwrap().entry("tool_calls").or_insert_with(|| json!([]));
                calls.as_array_mut().unwrap().push(part);
            } else if part.is_string() {
                message["content"] = part;
            }
        }
        message
    }
    Wire {
        path: "/v1/chat/completions",
        turns: "messages",
        request: json!({"model": "m"}),
        response: |parts| {
            let calls = list(&parts).iter().any(Value::is_object);
            let reason = if calls { "tool_calls" } else { "stop" };
            json!({"id": "r", "choices": [{"index": 0, "message": message(&parts), "finish_reason": reason}]})
        },
        client_turns: |response| vec![response["choices"][0]["message"].clone()],
        model_turns: |parts| vec![message(&parts)],
        user: |text| json!({"role": "user", "content": text}),
        thought: Value::Null,
        text: |text| json!(text),
        call: |id, name| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}),
        results: |results| {
            let result =
                |(id, _, content): &Answered| json!({"role": "tool", "tool_call_id": id, "content": content});
            results.iter().map(result).collect()
        },
        call_id: |response| {
            response["choices"][0]["message"]["tool_calls"][0]["id"].as_str().unwrap().to_owned()
        },
    }
}

fn responses() -> Wire {
    Wire {
        path: "/v1/responses",
        turns: "input",
        request: json!({"model": "m", "store": false}),
        response: |parts| json!({"id": "r", "store": false, "status": "completed", "output": parts}),
        client_turns: |response| list(&response["output"]),
        model_turns: |parts| list(&parts),
        user: |text| json!({"role": "user", "content": text}),
        thought: json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "theirs"}),
        text: |text| {
            let content = json!([{"type": "output_text", "text": text}]);
            json!({"type": "message", "id": format!("msg_{}", text.len()), "role": "assistant", "content": content})
        },
        call: |id, name| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": "{}"}),
        results: |results| {
            let result = |(id, _, content): &Answered| json!({"type": "function_call_output", "call_id": id, "output": content});
            results.iter().map(result).collect()
        },
        call_id: |response| {
            let call = list(&response["output"]).into_iter().find(|item| item["type"] == "function_call");
            call.unwrap()["call_id"].as_str().unwrap().to_owned()
        },
    }
}

fn anthropic() -> Wire {
    Wire {
        path: "/v1/messages",
        turns: "messages",
        request: json!({"model": "m", "max_tokens": 100}),
        response: |parts| {
            let calls = list(&parts).iter().any(|part| part["type"] == "tool_use");
            let reason = if calls { "tool_use" } else { "end_turn" };
            json!({"id": "r", "type": "message", "role": "assistant", "content": parts, "stop_reason": reason})
        },
        client_turns: |response| vec![json!({"role": "assistant", "content": response["content"]})],
        model_turns: |parts| vec![json!({"role": "assistant", "content": parts})],
        user: |text| json!({"role": "user", "content": text}),
        thought: json!({"type": "thinking", "thinking": "hm", "signature": "theirs"}),
        text: |text| json!({"type": "text", "text": text}),
        call: |id, name| json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
        results: |results| {
            let result = |(id, _, content): &Answered| json!({"type": "tool_result", "tool_use_id": id, "content": content});
            vec![json!({"role": "user", "content": results.iter().map(result).collect::<Vec<_>>()})]
        },
        call_id: |response| {
            let call = list(&response["content"]).into_iter().find(|block| block["type"] == "tool_use");
            call.unwrap()["id"].as_str().unwrap().to_owned()
        },
    }
}

fn gemini() -> Wire {
    Wire {
        path: "/v1beta/models/gemini-3-pro:generateContent",
        turns: "contents",
        request: json!({}),
        response: |parts| {
            let content = json!({"role": "model", "parts": parts});
            json!({"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}]})
        },
        client_turns: |response| vec![response["candidates"][0]["content"].clone()],
        model_turns: |parts| vec![json!({"role": "model", "parts": parts})],
        user: |text| json!({"role": "user", "parts": [{"text": text}]}),
        thought: json!({"text": "hm", "thought": true, "thoughtSignature": "dGhlaXJz"}),
        text: |text| json!({"text": text}),
        call: |id, name| json!({"functionCall": {"id": id, "name": name, "args": {}}, "thoughtSignature": "c2ln"}),
        results: |results| {
            let result = |(id, name, content): &Answered| {
                let response: Value = serde_json::from_str(content).unwrap();
                json!({"functionResponse": {"id": id, "name": name, "response": response}})
            };
            vec![json!({"role": "user", "parts": results.iter().map(result).collect::<Vec<_>>()})]
        },
        call_id: |response| {
            let parts = list(&response["candidates"][0]["content"]["parts"]);
            let call = parts.into_iter().find(|part| part["functionCall"].is_object());
            call.unwrap()["functionCall"]["id"].as_str().unwrap().to_owned()
        },
    }
}

fn wires() -> [Wire; 4] {
    [chat(), responses(), anthropic(), gemini()]
}

/// The result of the skill.
const PAID: &str = "{\"paid\":5}";

impl Wire {
    async fn ask(&self, gateway: &TestGateway, turns: &[Value]) -> Value {
        let mut request = self.request.clone();
        request[self.turns] = json!(turns);
        gateway.post(self.path, &request).await.json()
    }

    /// The turns that the provider got last.
    fn sent(&self, gateway: &TestGateway) -> Vec<Value> {
        list(&gateway.provider.last_request()[self.turns])
    }

    /// A round in which the model thinks, writes and calls these tools.
    fn calling(&self, text: &str, calls: &[Value]) -> Value {
        let mut parts = vec![self.thought.clone(), (self.text)(text)];
        parts.retain(|part| !part.is_null());
        parts.extend(calls.iter().cloned());
        parts.into()
    }
}

#[tokio::test]
async fn the_turn_after_an_answer_in_text_has_the_rounds_of_its_skills() {
    for wire in wires() {
        let gateway = stocked(Some(key()));
        let first = wire.calling("Let me look.", &[(wire.call)("c1", "look")]);
        let answer = json!([(wire.text)("It is five.")]);
        gateway.provider.will_say(&(wire.response)(first.clone()));
        gateway.provider.will_say(&(wire.response)(answer.clone()));
        let user = (wire.user)("look");
        let response = wire.ask(&gateway, std::slice::from_ref(&user)).await;
        assert!(response.to_string().contains("Let me look."), "{response}");
        let mut expected = vec![user];
        expected.extend((wire.model_turns)(first));
        expected.extend((wire.results)(&[("c1", "look", PAID)]));
        assert_eq!(wire.sent(&gateway), expected, "the second round");

        let mut history = vec![(wire.user)("look")];
        history.extend((wire.client_turns)(&response));
        history.push((wire.user)("thanks"));
        gateway.provider.will_say(&(wire.response)(json!([(wire.text)("Welcome.")])));
        wire.ask(&gateway, &history).await;
        expected.extend((wire.model_turns)(answer));
        expected.push((wire.user)("thanks"));
        assert_eq!(wire.sent(&gateway), expected, "{}", wire.path);
        assert_eq!(gateway.created(), 1);
    }
}

#[tokio::test]
async fn the_turn_after_a_client_call_has_the_results_of_skills_before_and_beside_it() {
    for wire in wires() {
        let gateway = stocked(Some(key()));
        let first = wire.calling("Let me look.", &[(wire.call)("c1", "look")]);
        let second = wire.calling("And now.", &[(wire.call)("c2", "look"), (wire.call)("c3", "own")]);
        gateway.provider.will_say(&(wire.response)(first.clone()));
        gateway.provider.will_say(&(wire.response)(second.clone()));
        let response = wire.ask(&gateway, &[(wire.user)("look")]).await;
        assert!(!response.to_string().contains("[Skill result"), "{response}");
        let id = (wire.call_id)(&response);

        let mut history = vec![(wire.user)("look")];
        history.extend((wire.client_turns)(&response));
        history.extend((wire.results)(&[(&id, "own", "{\"ok\":1}")]));
        gateway.provider.will_say(&(wire.response)(json!([(wire.text)("Done.")])));
        wire.ask(&gateway, &history).await;
        let mut expected = vec![(wire.user)("look")];
        expected.extend((wire.model_turns)(first));
        expected.extend((wire.results)(&[("c1", "look", PAID)]));
        expected.extend((wire.model_turns)(second));
        expected.extend((wire.results)(&[("c2", "look", PAID), ("c3", "own", "{\"ok\":1}")]));
        assert_eq!(wire.sent(&gateway), expected, "{}", wire.path);
        assert_eq!(gateway.created(), 2);
    }
}

#[tokio::test]
async fn a_history_of_another_namespace_reaches_the_provider_without_seals() {
    for wire in wires() {
        let theirs = stocked(Some(key()));
        theirs.provider.will_say(&(wire.response)(
            wire.calling("Hm.", &[(wire.call)("c1", "look"), (wire.call)("c2", "own")]),
        ));
        let response = wire.ask(&theirs, &[(wire.user)("look")]).await;
        assert!(response.to_string().contains("c2tpbGxldGMy"), "{response}");
        // Another installation has another key, as another namespace has other seals.
        let ours = stocked(Some(skillet_llm::confirmation::ConfirmationKey::new(&[1; 32]).unwrap()));
        let mut history = vec![(wire.user)("look")];
        history.extend((wire.client_turns)(&response));
        history.extend((wire.results)(&[(&(wire.call_id)(&response), "own", "{}")]));
        wire.ask(&ours, &history).await;
        let sent = ours.provider.texts().pop().unwrap();
        assert!(!sent.contains("c2tpbGxldGMy") && sent.contains("own"), "{sent}");
    }
}

#[tokio::test]
async fn a_gateway_without_a_key_gives_results_as_text() {
    let (wire, gateway) = (chat(), stocked(None));
    gateway.provider.will_say(&(wire.response)(
        wire.calling("Hm.", &[(wire.call)("c1", "look"), (wire.call)("c2", "own")]),
    ));
    let response = wire.ask(&gateway, &[(wire.user)("look")]).await;
    assert!(response.to_string().contains("[Skill result: look]"), "{response}");
}

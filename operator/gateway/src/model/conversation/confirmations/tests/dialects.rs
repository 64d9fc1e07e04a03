//! The question and the result have the form of their dialect, in streams too, and reach a router that asks the model.

use super::*;

#[tokio::test]
async fn a_stream_asks_before_its_end() {
    let gateway = stocked(Some(key()));
    let chunk = |delta: Value, reason: Value| {
        format!(
            "data: {}\n\n",
            json!({"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        )
    };
    let mut delta = json!({"role": "assistant", "tool_calls": [pay()]});
    delta["tool_calls"][0]["index"] = json!(0);
    let called = chunk(delta, Value::Null);
    let end = chunk(json!({}), json!("tool_calls")) + "data: [DONE]\n\n";
    gateway.provider.will_write("text/event-stream", format!("{called}{end}"));
    let mut request = asking(&[user()]);
    request["stream"] = json!(true);
    let stream = gateway.post(CHAT, &request).await.text;
    let rest = stream.strip_prefix(&called).unwrap_or_else(|| panic!("{stream}"));
    let events: Vec<&str> = rest.split("\n\n").collect();
    let question: Value = serde_json::from_str(events[0].strip_prefix("data: ").unwrap()).unwrap();
    let text = question["choices"][0]["delta"]["content"].as_str().unwrap();
    assert!(events[1].contains("tool_calls") && rest.ends_with("data: [DONE]\n\n"), "{rest}");
    let message = json!({"role": "assistant", "content": text, "tool_calls": [pay()]});
    assert_eq!(read(&gateway, &[user(), message], &confirmation(text)).await, json!({"paid": 5}));
}

#[tokio::test]
async fn a_stream_with_a_question_carries_the_results_of_other_skills() {
    let gateway = stocked(Some(key()));
    let say = |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    let mut stream =
        say(json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}));
    for (index, name) in ["look", "pay"].into_iter().enumerate() {
        let block = json!({"type": "tool_use", "id": format!("toolu_{name}"), "name": name, "input": {}});
        stream += &say(json!({"type": "content_block_start", "index": index, "content_block": block}));
        stream += &say(json!({"type": "content_block_stop", "index": index}));
    }
    stream += &say(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}}),
    );
    stream += &say(json!({"type": "message_stop"}));
    gateway.provider.will_write("text/event-stream", stream);
    let out = gateway.post("/v1/messages", &json!({"stream": true, "messages": [user()]})).await.text;
    let (call, asked) = (out.find("\"name\":\"pay\"").unwrap(), out.find("The skill pay waits").unwrap());
    assert!(call < asked && out.contains("\"id\":\"c2tpbGxldGMy"), "{out}");
    assert!(!out.contains("toolu_pay") && !out.contains("toolu_look"), "{out}");
    assert!(out.ends_with(&say(json!({"type": "message_stop"}))));
}

#[tokio::test]
async fn a_streamed_turn_goes_back_in_an_order_that_the_provider_takes() {
    let gateway = stocked(Some(key()));
    let call = json!({"type": "tool_use", "id": "toolu_own", "name": "own", "input": {}});
    let text = json!({"type": "text", "text": "[Skill result: look]\n{}"});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_own", "content": "ok"});
    let turn = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let messages = |blocks| json!([user(), turn(blocks), {"role": "user", "content": [result]}]);
    let sent = json!({"messages": messages(json!([call, text]))});
    for skills in ["all", "off"] {
        gateway.provider.will_say(&json!({"id": "msg", "content": []}));
        gateway
            .send("POST", "/v1/messages", Some(AGENT), &[("x-skillet-skills", skills)], &sent.to_string())
            .await;
        assert_eq!(
            gateway.provider.last_request()["messages"],
            messages(json!([text, call])),
            "skills {skills}"
        );
    }
}

#[tokio::test]
async fn responses_anthropic_and_gemini_ask_and_confirm_in_their_own_form() {
    let gateway = stocked(Some(key()));
    let call = json!({"type": "function_call", "id": "fc", "call_id": "call_1", "name": "pay", "arguments": "{\"amount\":5}"});
    gateway.provider.will_say(&json!({"id": "resp", "output": [call]}));
    let answer = gateway.post("/v1/responses", &json!({"input": "pay"})).await.json();
    let question = confirmation(answer["output"][0]["content"][0]["text"].as_str().unwrap());
    let output = json!({"type": "function_call_output", "call_id": "call_1", "output": question});
    gateway.provider.will_say(&json!({"id": "resp", "output": []}));
    gateway
        .post("/v1/responses", &json!({"input": [answer["output"][0], answer["output"][1], output]}))
        .await;
    assert_eq!(gateway.provider.last_request()["input"][2]["output"], "{\"paid\":5}");

    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {"amount": 5}});
    gateway.provider.will_say(&json!({"id": "msg", "content": [call], "stop_reason": "tool_use"}));
    let answer = gateway.post("/v1/messages", &json!({"messages": [user()]})).await.json();
    let question = confirmation(answer["content"][0]["text"].as_str().unwrap());
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": question}]});
    gateway.provider.will_say(&json!({"id": "msg", "content": []}));
    let turns = [
        user(),
        json!({"role": "assistant", "content": answer["content"]}),
        json!({"role": "user", "content": [result]}),
    ];
    gateway.post("/v1/messages", &json!({ "messages": turns })).await;
    assert_eq!(gateway.provider.last_request()["messages"][2]["content"][0]["content"], "{\"paid\":5}");

    // Gemini gives no id to this call.
    let part = json!({"functionCall": {"name": "pay", "args": {"amount": 5}}});
    gateway.provider.will_say(
        &json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}),
    );
    let user = json!({"role": "user", "parts": [{"text": "pay"}]});
    let answer = gateway.post(GEMINI, &json!({"contents": [user]})).await.json();
    let content = &answer["candidates"][0]["content"];
    let question: Value =
        serde_json::from_str(&confirmation(content["parts"][0]["text"].as_str().unwrap())).unwrap();
    let response =
        json!({"role": "user", "parts": [{"functionResponse": {"name": "pay", "response": question}}]});
    gateway.provider.will_say(&json!({"candidates": []}));
    gateway.post(GEMINI, &json!({"contents": [user, content, response]})).await;
    assert_eq!(
        gateway.provider.last_request()["contents"][2]["parts"][0]["functionResponse"]["response"],
        json!({"paid": 5})
    );
    assert_eq!(gateway.api.executions().len(), 3);
}

#[tokio::test]
async fn a_router_that_asks_the_model_itself_gets_the_question_and_the_result() {
    let gateway = stocked(Some(key()));
    let injected = gateway
        .post("/v1/inject", &json!({"dialect": "openai-chat", "request": asking(&[user()])}))
        .await
        .json();
    assert_eq!(injected["offered"]["pay"]["confirm"], true);
    assert_eq!(injected["offered"]["look"].get("confirm"), None);
    let intercept = json!({"dialect": "openai-chat", "request": injected["request"], "offered": injected["offered"], "answer": calling(&[pay()])});
    let answered = gateway.post("/v1/intercept", &intercept).await.json();
    let message = &answered["answer"]["choices"][0]["message"];
    let confirmation = confirmation(message["content"].as_str().unwrap());
    let request = asking(&[user(), message.clone(), result(&confirmation)]);
    let injected =
        gateway.post("/v1/inject", &json!({"dialect": "openai-chat", "request": request})).await.json();
    assert_eq!(injected["request"]["messages"][2]["content"], "{\"paid\":5}");
}

//! The header that confirms for clients that cannot write results: which call each of its tokens is for.

use super::*;

#[tokio::test]
async fn a_header_confirms_whatever_the_result_says() {
    let gateway = stocked(Some(key()));
    let (mut messages, confirmation) = asked(&gateway).await;
    messages.push(result("yes"));
    gateway.provider.will_say(&saying("done"));
    let header = format!("1.2.3.4, {}", token_of(&confirmation));
    gateway.send("POST", CHAT, Some(AGENT), &[(HEADER, &header)], &asking(&messages).to_string()).await;
    assert_eq!(gateway.provider.last_request()["messages"][2]["content"], "{\"paid\":5}");
}

#[tokio::test]
async fn the_header_is_tried_for_the_newest_calls_and_the_model_reads_of_which_it_was_not() {
    let gateway = stocked(Some(key()));
    let mut messages = vec![user()];
    for number in 0..=LIMIT {
        let id = format!("call_{number}");
        messages.push(
            json!({"role": "assistant", "tool_calls": [call(&id, "pay", "{}"), call(&id, "gone", "{}")]}),
        );
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "ok"}));
    }
    let confirmation = forged(AGENT, &key(), "team", u64::MAX);
    gateway.provider.will_say(&saying("done"));
    gateway
        .send(
            "POST",
            CHAT,
            Some(AGENT),
            &[(HEADER, &token_of(&confirmation))],
            &asking(&messages).to_string(),
        )
        .await;
    let result = gateway.provider.last_request()["messages"].clone();
    let reason_of = |place: usize| {
        let result: Value = serde_json::from_str(result[place]["content"].as_str().unwrap()).unwrap();
        reason(&result).to_owned()
    };
    assert_eq!((reason_of(2), reason_of(4)), ("LimitReached".to_owned(), "NotConfirmed".to_owned()));
}

#[tokio::test]
async fn every_header_line_counts_and_too_many_tokens_are_refused() {
    let gateway = stocked(Some(key()));
    let (mut messages, confirmation) = asked(&gateway).await;
    messages.push(result("yes"));
    gateway.provider.will_say(&saying("done"));
    let headers = [(HEADER, "1.2.3.4"), (HEADER, &*token_of(&confirmation))];
    gateway.send("POST", CHAT, Some(AGENT), &headers, &asking(&messages).to_string()).await;
    assert_eq!(gateway.provider.last_request()["messages"][2]["content"], "{\"paid\":5}");
    let many: Vec<String> = (0..257).map(|number| number.to_string()).collect();
    let refused = gateway
        .send("POST", CHAT, Some(AGENT), &[(HEADER, &many.join(","))], &asking(&messages).to_string())
        .await
        .text;
    assert!(refused.contains("BadRequest") && refused.contains(HEADER), "{refused}");
}

/// The model calls `pay` in Gemini's form, which gives no id; its turn, and the token of the question in it.
async fn asked_in_gemini(
    gateway: &TestGateway,
    contents: &[Value],
    header: &[(&str, &str)],
) -> (Value, String) {
    let part = json!({"functionCall": {"name": "pay", "args": {"amount": 5}}});
    let turn = json!({"role": "model", "parts": [part]});
    gateway.provider.will_say(&json!({"candidates": [{"content": turn, "finishReason": "STOP"}]}));
    let answer = gateway
        .send("POST", GEMINI, Some(AGENT), header, &json!({ "contents": contents }).to_string())
        .await
        .text;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let turn = answer["candidates"][0]["content"].clone();
    let token = token_of(&confirmation(turn["parts"][0]["text"].as_str().unwrap()));
    (turn, token)
}

#[tokio::test]
async fn a_token_of_the_header_confirms_one_call_and_none_that_is_alike() {
    let gateway = stocked(Some(key()));
    let user = json!({"role": "user", "parts": [{"text": "pay"}]});
    let response =
        json!({"role": "user", "parts": [{"functionResponse": {"name": "pay", "response": {"ok": true}}}]});
    let (first, token) = asked_in_gemini(&gateway, std::slice::from_ref(&user), &[]).await;
    let contents = [user, first, response.clone()];
    let (second, other) = asked_in_gemini(&gateway, &contents, &[(HEADER, &token)]).await;
    assert_eq!(gateway.api.executions().len(), 1);
    let contents = [&contents[..], &[second, response]].concat();
    for (tokens, is_second_run) in [(token.clone(), false), (format!("{token},{other}"), true)] {
        gateway.provider.will_say(&json!({"candidates": []}));
        gateway
            .send(
                "POST",
                GEMINI,
                Some(AGENT),
                &[(HEADER, &tokens)],
                &json!({ "contents": contents }).to_string(),
            )
            .await;
        let result_at = |place: usize| {
            gateway.provider.last_request()["contents"][place]["parts"][0]["functionResponse"]["response"]
                .clone()
        };
        assert_eq!(result_at(2), json!({"paid": 5}));
        assert_eq!(
            reason(&result_at(4)),
            if is_second_run { "" } else { "NotConfirmed" },
            "{}",
            result_at(4)
        );
        assert_eq!(gateway.api.executions().len(), if is_second_run { 2 } else { 1 });
    }
}

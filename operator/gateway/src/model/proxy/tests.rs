//! Model requests through the whole gateway: offered tools, refusals, forwarded requests and responses.

use axum::body::Body;
use http::StatusCode;
use serde_json::json;
use skillet_api::gateway::KeySecret;

use super::*;
use crate::{
    model::{
        conversation::RAN_HEADER,
        offered_tools::{NOT_OFFERED_HEADER, OFFERED_HEADER},
    },
    testing::{AGENT, TestGateway},
};

const CHAT: &str = "/v1/chat/completions";
const GEMINI: &str = "/v1beta/models/gemini-x:generateContent";

fn stocked() -> TestGateway {
    let gateway = TestGateway::new();
    gateway.offer("team", "sum", "auto");
    gateway
}

fn chat() -> Value {
    json!({ "model": "gpt-x", "messages": [{ "role": "user", "content": "add" }] })
}

#[tokio::test]
async fn a_request_for_several_answers_is_offered_nothing_with_the_reason() {
    let gateway = stocked();
    let gemini = |count: u32| {
        json!({ "contents": [{ "role": "user", "parts": [{ "text": "add" }] }],
            "generationConfig": { "candidateCount": count } })
    };
    let several = |count: u32| json!({ "model": "gpt-x", "messages": [], "n": count });
    for (uri, one, two) in [(CHAT, several(1), several(2)), (GEMINI, gemini(1), gemini(2))] {
        let answer = gateway.post(uri, &one).await;
        assert_eq!((answer.header(OFFERED_HEADER), answer.header(NOT_OFFERED_HEADER)), ("sum", ""), "{uri}");
        let answer = gateway.post(uri, &two).await;
        assert_eq!(
            (answer.header(OFFERED_HEADER), answer.header(NOT_OFFERED_HEADER)),
            ("", "SeveralAnswers"),
            "{uri}"
        );
        assert_eq!(gateway.provider.last_request(), two, "it is forwarded unchanged");
    }
}

#[tokio::test]
async fn an_idempotency_key_that_cannot_be_read_is_refused_and_nothing_is_asked() {
    let gateway = stocked();
    let body = || Body::from(chat().to_string());
    for bad in [&b""[..], b"caf\xc3\xa9", &[b'k'; 256]] {
        let answer = gateway.send_body("POST", CHAT, Some(AGENT), &[("idempotency-key", bad)], body()).await;
        assert_eq!(answer.error(), (400, "BadRequest".into(), "idempotency-key".into()), "{bad:?}");
    }
    assert!(gateway.provider.requests().is_empty());
    assert_eq!(
        gateway.send_body("POST", CHAT, Some(AGENT), &[("idempotency-key", b"k")], body()).await.status,
        200
    );
}

#[tokio::test]
async fn what_is_for_one_connection_goes_neither_on_nor_back() {
    let gateway = stocked();
    gateway
        .provider
        .will_answer(&[("connection", "x-theirs"), ("x-theirs", "1"), ("x-request-id", "r")], &json!({}));
    let headers: [(&str, &[u8]); 3] = [("connection", b"X-Mine"), ("x-mine", b"1"), ("x-trace", b"2")];
    let answer = gateway.send_body("POST", CHAT, Some(AGENT), &headers, Body::from(chat().to_string())).await;
    assert_eq!((answer.header("x-theirs"), answer.header("x-request-id")), ("", "r"));
    let asked = gateway.provider.requests();
    let (sent, _) = asked.first().unwrap();
    assert!(!sent.contains_key("x-mine") && sent.contains_key("x-trace"), "{sent:?}");
}

#[tokio::test]
async fn an_error_does_not_name_the_platforms_secret() {
    let gateway = stocked();
    let secret = KeySecret { name: "hidden-name".to_owned(), key: "apiKey".to_owned() };
    gateway.change_policy(|policy| policy.gateway.providers.openai.key_secret = Some(secret));
    let answer = gateway.post(CHAT, &chat()).await;
    assert_eq!(answer.error(), (503, "SecretMissing".into(), String::new()));
    assert_eq!(
        answer.json()["error"]["message"],
        "the platform has no key for the provider openai; the gateway's log names the missing Secret"
    );
    gateway.api.fail_next("GET /api/v1/namespaces/skillet-system/secrets/hidden-name", 500, "hidden words");
    let answer = gateway.post(CHAT, &chat()).await;
    assert_eq!(answer.error(), (503, "ApiError".into(), String::new()));
    assert!(!answer.json().to_string().contains("hidden"), "{answer:?}");
}

#[tokio::test]
async fn a_key_that_the_provider_refuses_is_read_again() {
    let gateway = stocked();
    let secret = KeySecret { name: "k".to_owned(), key: "k".to_owned() };
    gateway.change_policy(|policy| policy.gateway.providers.openai.key_secret = Some(secret));
    let meta = json!({ "namespace": "skillet-system", "name": "k" });
    // "old" and "new", each sent once before the Secret changes.
    for (data, status) in [("b2xk", 401), ("bmV3", 200)] {
        gateway.api.put_secret(json!({ "metadata": meta, "data": { "k": data } }));
        gateway.provider.will_fail(status, &json!({}));
        gateway.post(CHAT, &chat()).await;
    }
    let keys: Vec<_> =
        gateway.provider.requests().iter().map(|(sent, _)| sent["authorization"].clone()).collect();
    assert_eq!(keys, ["Bearer old", "Bearer new"]);
}

/// An answer that calls these tools, each with these arguments.
fn calling(tools: &[(&str, &str)]) -> Value {
    let call = |(name, arguments): &(&str, &str)| {
        json!({ "id": format!("c-{name}"), "type": "function",
            "function": { "name": name, "arguments": arguments } })
    };
    let message = json!({ "role": "assistant", "content": null, "tool_calls": tools.iter().map(call).collect::<Value>() });
    json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": message }] })
}

fn saying(text: &str) -> Value {
    let message = json!({ "role": "assistant", "content": text });
    json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message": message }] })
}

#[tokio::test]
async fn only_skills_that_were_run_are_named_as_run() {
    let gateway = stocked();
    gateway.offer("team", "fetch", "auto");
    gateway.api.set_status_on_create(
        json!({ "phase": "Succeeded", "output": 3, "attempts": 1, "truncated": false }),
    );
    gateway.provider.will_say(&calling(&[("sum", "{}"), ("fetch", "no JSON")]));
    gateway.provider.will_say(&saying("three"));
    let answer = gateway.post(CHAT, &chat()).await;
    assert_eq!((answer.header(OFFERED_HEADER), answer.header(RAN_HEADER)), ("fetch,sum", "sum"));
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "three");
    let refused = json!({ "phase": "Failed", "reason": "InputInvalid", "attempts": 0, "truncated": false });
    gateway.api.set_status_on_create(refused);
    gateway.provider.will_say(&calling(&[("sum", "{}")]));
    assert_eq!(gateway.post(CHAT, &chat()).await.header(RAN_HEADER), "", "the operator refused it");
    gateway.provider.will_say(&calling(&[("sum", "{}")]));
    let answer = gateway
        .send_body("POST", CHAT, Some(AGENT), &[("x-skillet-rounds", b"0")], Body::from(chat().to_string()))
        .await;
    assert_eq!(answer.header(RAN_HEADER), "", "no round was left");
    assert!(answer.json().to_string().contains("LimitReached"), "{answer:?}");
}

#[test]
fn a_body_that_is_no_object_is_refused() {
    for body in ["", "[]", "{", "null"] {
        assert_eq!(parse(&Bytes::from(body)).unwrap_err().status, StatusCode::BAD_REQUEST, "{body}");
    }
    assert!(parse(&Bytes::from("{}")).is_ok());
}

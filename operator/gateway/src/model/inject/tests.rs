//! Requests of routers that ask the model themselves, through the whole gateway.

use std::{convert::Infallible, sync::mpsc, time::Duration};

use axum::body::Body;
use futures::{StreamExt as _, stream};
use serde::{
    Deserializer,
    de::{Error as _, IgnoredAny},
};

use super::*;
use crate::testing::{AGENT, TestGateway};

#[tokio::test]
async fn a_request_for_several_answers_is_returned_unchanged_with_the_reason() {
    let gateway = TestGateway::new();
    gateway.offer("team", "sum", "auto");
    let request = |count: u32| json!({ "model": "gpt-x", "messages": [], "n": count });
    let asked = |count: u32| json!({ "dialect": "openai-chat", "request": request(count) });
    let one = gateway.post("/v1/inject", &asked(1)).await;
    assert!(one.json()["offered"]["sum"].is_object() && one.json().get("notOffered").is_none(), "{one:?}");
    let two = gateway.post("/v1/inject", &asked(2)).await;
    assert_eq!(two.json(), json!({ "request": request(2), "offered": {}, "notOffered": "SeveralAnswers" }));
    for (count, reason) in [(1, "Offered"), (2, "SeveralAnswers")] {
        let result = gateway.post("/v1/explain", &asked(count)).await;
        let skill = &result.json()["skills"][0];
        assert_eq!((&skill["reason"], &skill["offered"]), (&json!(reason), &json!(count == 1)));
    }
}

/// A body of which nobody ever sends more than this.
fn unfinished(begin: &'static str) -> Body {
    Body::from_stream(stream::iter([Ok::<_, Infallible>(begin)]).chain(stream::pending()))
}

#[tokio::test]
async fn who_is_unknown_is_refused_before_the_body_is_read() {
    let gateway = TestGateway::new();
    for uri in ["/v1/inject", "/v1/intercept", "/v1/explain"] {
        let request = Request::post(uri).body(unfinished("{")).unwrap();
        assert_eq!(gateway.raw(request).await.error(), (401, "Unauthorized".into(), String::new()), "{uri}");
    }
}

#[tokio::test]
async fn a_body_of_another_shape_names_the_place() {
    let gateway = TestGateway::new();
    let offered = r#"{"dialect": "gemini", "request": {}, "answer": {}, "offered": {"t": {"namespace": 1}}}"#;
    for (uri, body, field) in [
        ("/v1/inject", r#"{"dialect": "openai", "request": {}}"#, "/dialect"),
        ("/v1/explain", r#"{"dialect": "gemini", "request": {}, "owner": "x"}"#, "/owner"),
        ("/v1/intercept", offered, "/offered/t/namespace"),
    ] {
        let answer = gateway.send_body("POST", uri, Some(AGENT), &[], Body::from(body)).await;
        assert_eq!(answer.error(), (400, "BadRequest".into(), field.into()), "{answer:?}");
    }
}

#[tokio::test]
async fn what_comes_after_the_object_is_refused() {
    let gateway = TestGateway::new();
    let object = r#"{"dialect": "gemini", "request": {}}"#;
    assert_eq!(
        gateway
            .send_body("POST", "/v1/inject", Some(AGENT), &[], Body::from(format!("{object}\n ")))
            .await
            .status,
        200
    );
    for more in ["{}", "x", "]"] {
        let answer = gateway
            .send_body("POST", "/v1/inject", Some(AGENT), &[], Body::from(format!("{object}{more}")))
            .await;
        assert_eq!(answer.error(), (400, "BadRequest".into(), String::new()), "{answer:?}");
        let error = answer.json();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("the body is not JSON: trailing characters"), "{message}");
    }
}

/// A body that is read as soon as another task has run.
struct Patient;

impl<'de> Deserialize<'de> for Patient {
    fn deserialize<D: Deserializer<'de>>(body: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(body)?;
        let (sender, receiver) = mpsc::channel();
        tokio::spawn(async move { sender.send(()) });
        receiver.recv_timeout(Duration::from_secs(2)).map_err(D::Error::custom)?;
        Ok(Self)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_tasks_run_while_a_large_body_is_read() {
    let gateway = TestGateway::new();
    let body = json!({ "request": "x".repeat(512 * 1024) }).to_string();
    let token = format!("Bearer {}", gateway.token(AGENT));
    let request = Request::post("/v1/inject").header("authorization", token).body(body.into()).unwrap();
    let model = gateway.model.clone();
    // On the only worker.
    let read = tokio::spawn(async move { sent::<Patient>(&model, request).await.map(drop) }).await.unwrap();
    assert!(read.is_ok(), "{read:?}");
}

fn chat() -> Value {
    json!({ "dialect": "openai-chat", "request": { "model": "gpt-x", "messages": [] } })
}

#[tokio::test]
async fn a_caller_without_rights_reads_which_are_missing() {
    let gateway = TestGateway::without_auth_cache();
    gateway.offer("team", "sum", "auto");
    for namespace in ["team", "platform", "shop"] {
        gateway.deny(namespace, None, Verb::Execute);
    }
    let injected = gateway.post("/v1/inject", &chat()).await.json();
    assert_eq!((&injected["offered"], &injected["notOffered"]), (&json!({}), &json!("Forbidden")));
    let explained = gateway.post("/v1/explain", &chat()).await.json();
    let message = "the caller may not execute skills in namespace team; a Role that names single skills does not suffice for models";
    let forbidden = json!([{ "namespace": "team", "verb": "execute", "message": message }]);
    assert_eq!((&explained["skills"], &explained["forbidden"]), (&json!([]), &forbidden));
}

#[tokio::test]
async fn a_name_that_the_request_wants_exactly_must_be_a_skill() {
    let gateway = TestGateway::new();
    gateway.offer("team", "sum", "auto");
    let asked = async |names: &str| {
        let headers = [("x-skillet-skills", names)];
        gateway.send("POST", "/v1/inject", Some(AGENT), &headers, &chat().to_string()).await
    };
    assert_eq!(asked("exactly=sum").await.status, 200);
    assert_eq!(asked("only=nope").await.status, 200);
    let refused = asked("exactly=sum,nope").await;
    assert_eq!(refused.error(), (400, "SkillNotFound".into(), "x-skillet-skills".into()));
}

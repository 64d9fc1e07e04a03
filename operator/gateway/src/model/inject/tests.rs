//! Requests of routers that ask the model themselves, through the whole gateway.

use std::convert::Infallible;

use axum::body::Body;
use futures::{StreamExt as _, stream};

use super::*;
use crate::gateway_bed::Bed;

#[tokio::test]
async fn a_request_for_several_answers_is_returned_unchanged_with_the_reason() {
    let bed = Bed::new().await;
    bed.skill("sum");
    let request = |count: u32| json!({ "model": "gpt-x", "messages": [], "n": count });
    let asked = |count: u32| json!({ "dialect": "openai-chat", "request": request(count) });
    let one = bed.post("/v1/inject", &asked(1)).await;
    assert!(one.body["offered"]["sum"].is_object() && one.body.get("notOffered").is_none(), "{one:?}");
    let two = bed.post("/v1/inject", &asked(2)).await;
    assert_eq!(two.body, json!({ "request": request(2), "offered": {}, "notOffered": "SeveralAnswers" }));
    for (count, reason) in [(1, "Offered"), (2, "SeveralAnswers")] {
        let result = bed.post("/v1/explain", &asked(count)).await;
        let skill = &result.body["skills"][0];
        assert_eq!((&skill["reason"], &skill["offered"]), (&json!(reason), &json!(count == 1)));
    }
}

/// A body of which nobody ever sends more than this.
fn unfinished(begin: &'static str) -> Body {
    Body::from_stream(stream::iter([Ok::<_, Infallible>(begin)]).chain(stream::pending()))
}

#[tokio::test]
async fn who_is_unknown_is_refused_before_the_body_is_read() {
    let bed = Bed::new().await;
    for uri in ["/v1/inject", "/v1/intercept", "/v1/explain"] {
        let request = Request::post(uri).body(unfinished("{")).unwrap();
        assert_eq!(bed.raw(request).await.error(), (401, "Unauthorized", ""), "{uri}");
    }
}

#[tokio::test]
async fn a_body_of_another_shape_names_the_place() {
    let bed = Bed::new().await;
    let offered = r#"{"dialect": "gemini", "request": {}, "answer": {}, "offered": {"t": {"namespace": 1}}}"#;
    for (uri, body, field) in [
        ("/v1/inject", r#"{"dialect": "openai", "request": {}}"#, "/dialect"),
        ("/v1/explain", r#"{"dialect": "gemini", "request": {}, "owner": "x"}"#, "/owner"),
        ("/v1/intercept", offered, "/offered/t/namespace"),
    ] {
        let answer = bed.send(uri, &[], Body::from(body)).await;
        assert_eq!(answer.error(), (400, "BadRequest", field), "{answer:?}");
    }
}

#[tokio::test]
async fn what_comes_after_the_object_is_refused() {
    let bed = Bed::new().await;
    let object = r#"{"dialect": "gemini", "request": {}}"#;
    assert_eq!(bed.send("/v1/inject", &[], Body::from(format!("{object}\n "))).await.status, 200);
    for more in ["{}", "x", "]"] {
        let answer = bed.send("/v1/inject", &[], Body::from(format!("{object}{more}"))).await;
        assert_eq!(answer.error(), (400, "BadRequest", ""), "{answer:?}");
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("the body is not JSON: trailing characters"), "{message}");
    }
}

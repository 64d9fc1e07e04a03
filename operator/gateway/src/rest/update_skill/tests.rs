//! Switching skills over HTTP: each field exactly itself, under the caller's right to patch.

use serde_json::{Value, json};
use skillet_kube::testing::path;

use crate::{
    auth::Verb,
    testing::{AGENT, TestGateway},
};

fn stocked() -> TestGateway {
    let gateway = TestGateway::without_auth_cache();
    gateway.skill("team", "sum", &json!({ "mode": "on", "enabled": true }));
    gateway.skill("platform", "fetch", &json!({}));
    gateway
}

fn spec(gateway: &TestGateway) -> (Value, Value) {
    let skill = gateway.api.object(&path("team", "skills", "sum")).unwrap();
    (skill["spec"]["enabled"].clone(), skill["spec"]["mode"].clone())
}

#[tokio::test]
async fn each_field_sets_exactly_itself() {
    let gateway = stocked();
    for (method, body, expected) in [
        ("PUT", json!({ "enabled": false }), (json!(false), json!("on"))),
        ("PATCH", json!({ "mode": "off" }), (json!(false), json!("off"))),
        ("PUT", json!({ "mode": "auto", "enabled": true }), (json!(true), json!("auto"))),
    ] {
        let answer = gateway.with_body(method, "/api/skills/sum", &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let view = answer.json();
        assert_eq!((view["enabled"].clone(), view["mode"].clone()), expected);
        assert_eq!(view["version"], "1.0.0");
        assert_eq!(spec(&gateway), expected);
    }
}

#[tokio::test]
async fn a_body_that_says_nothing_or_too_much_is_refused() {
    let gateway = stocked();
    for (body, field) in [
        ("{}", ""),
        (r#"{"enabled": "yes"}"#, "/enabled"),
        (r#"{"mode": "always"}"#, "/mode"),
        (r#"{"mode": "on", "version": "2.0.0"}"#, "/version"),
        ("not json", ""),
    ] {
        let answer = gateway.send("PUT", "/api/skills/sum", Some(AGENT), &[], body).await;
        assert_eq!(answer.error(), (400, "BadRequest".into(), field.into()), "{body}");
    }
    assert_eq!(spec(&gateway), (json!(true), json!("on")));
}

#[tokio::test]
async fn the_right_to_patch_is_needed_and_asked_where_the_skill_is() {
    let gateway = stocked();
    gateway.deny("platform", Some("fetch"), Verb::Patch);
    let patch = async |uri: &str| gateway.with_body("PATCH", uri, &json!({ "mode": "off" })).await;
    assert_eq!(patch("/api/skills/fetch").await.error().0, 403);
    assert_eq!(patch("/api/skills/none").await.error().0, 404);
    assert_eq!(patch("/api/skills/sum?namespace=other").await.error().0, 403);
    assert_eq!(gateway.api.count("PATCH "), 0);
}

#[tokio::test]
async fn what_the_api_server_says_is_passed_on() {
    let gateway = stocked();
    for (code, status) in [(403, 403), (404, 404), (409, 409), (422, 422), (400, 422), (429, 503)] {
        gateway.api.fail_next("PATCH ", code, "says why");
        let answer = gateway.with_body("PUT", "/api/skills/sum", &json!({ "mode": "off" })).await;
        assert_eq!(answer.error().0, status, "{code}");
        assert_eq!(answer.text.contains("says why"), status != 503);
    }
}

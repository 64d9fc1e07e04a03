//! Running a skill over HTTP: what is made, what is answered, what is refused.

use std::{convert::Infallible, time::Duration};

use axum::body::Body;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use skillet_kube::testing::eventually;

use crate::{
    auth::Verb,
    testing::{AGENT, TestGateway, TestResponse},
};

const RUNS: &str = "/api/skills/executions";

fn stocked() -> TestGateway {
    let gateway = TestGateway::without_auth_cache();
    gateway.skill("team", "sum", &json!({}));
    gateway.skill("platform", "fetch", &json!({}));
    gateway.skill("other", "secret", &json!({}));
    gateway
}

fn ended(phase: &str, reason: &str, attempts: u32) -> Value {
    json!({ "phase": phase, "reason": reason, "message": "says why", "attempts": attempts, "truncated": false })
}

async fn post(gateway: &TestGateway, body: Value) -> TestResponse {
    gateway.with_body("POST", RUNS, &body).await
}

#[tokio::test]
async fn a_run_that_ended_is_200_however_it_ended() {
    for (phase, reason) in [
        ("Succeeded", "Succeeded"),
        ("Failed", "ExitCode"),
        ("Failed", "IsolationUnavailable"),
        ("TimedOut", "TimedOut"),
        ("Cancelled", "Cancelled"),
    ] {
        let gateway = stocked();
        gateway.api.set_status_on_create(ended(phase, reason, 1));
        let answer = post(&gateway, json!({ "skill": "sum", "input": { "a": 1 } })).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let run = answer.json();
        assert_eq!(
            (&run["phase"], &run["reason"], &run["input"]),
            (&json!(phase), &json!(reason), &json!({ "a": 1 }))
        );
    }
}

#[tokio::test]
async fn a_refusal_is_an_error_with_the_operators_reason() {
    for (reason, status, field) in [
        ("SkillNotFound", 404, ""),
        ("VersionNotFound", 404, "/version"),
        ("InputInvalid", 422, "/input"),
        ("FileNotFound", 404, "/script/path"),
        ("NoInterpreter", 409, "/script/path"),
        ("ConstraintInvalid", 422, "/version"),
        ("SkillOff", 409, ""),
        ("SkillDisabled", 409, ""),
        ("ExecutionDisabled", 503, ""),
        ("SandboxUnavailable", 503, ""),
    ] {
        let gateway = stocked();
        gateway.api.set_status_on_create(ended("Failed", reason, 0));
        let answer = post(&gateway, json!({ "skillName": "sum" })).await;
        assert_eq!(answer.error(), (status, reason.to_owned(), field.to_owned()));
    }
}

#[tokio::test]
async fn the_execution_has_the_fields_of_the_request() {
    let gateway = stocked();
    let body =
        json!({ "skill": "sum@^1.0.0", "input": [1], "sessionId": "s", "timeout": "10s", "wait": false });
    let answer = post(&gateway, body).await;
    assert_eq!((answer.status, &answer.json()["phase"]), (202, &json!("Pending")));
    let made = &gateway.api.executions()[0];
    let name = made["metadata"]["name"].as_str().unwrap();
    assert_eq!(answer.headers["location"], format!("{RUNS}/{name}?namespace=team"));
    assert_eq!(
        made["spec"],
        json!({ "skill": "sum", "version": "^1.0.0", "input": [1], "sessionId": "s", "timeout": "10s",
            "caller": "team/agent", "cancel": false })
    );
    assert_eq!(gateway.get(&format!("{RUNS}/{name}")).await.status, 200);
}

#[tokio::test]
async fn a_request_for_a_script_makes_such_an_execution_and_shows_it() {
    let gateway = stocked();
    let script = json!({ "path": "a.sh", "args": ["-l"], "stdin": "x" });
    let answer = post(&gateway, json!({ "skill": "sum", "script": script, "wait": false })).await;
    assert_eq!((answer.status, &answer.json()["script"]), (202, &script));
    let spec = &gateway.api.executions()[0]["spec"];
    assert_eq!((&spec["script"], spec.get("input")), (&script, None));
    for (body, field) in [
        (json!({ "skill": "sum", "script": script, "input": {} }), "/script"),
        (json!({ "skill": "sum", "script": { "path": "a", "input": 1 } }), "/script/input"),
        (json!({ "skill": "sum", "script": { "args": [] } }), "/script"),
    ] {
        let (status, code, at) = post(&gateway, body).await.error();
        assert_eq!((status, code.as_str(), at.as_str()), (400, "BadRequest", field));
    }
    assert_eq!(gateway.created(), 1);
}

#[tokio::test]
async fn an_answer_that_would_come_too_late_is_202() {
    let gateway = stocked();
    let answer = post(&gateway, json!({ "skill": "sum", "waitSeconds": 0 })).await;
    assert_eq!(answer.status, 202);
    assert_eq!(gateway.api.executions()[0]["spec"]["cancel"], false);
}

#[tokio::test]
async fn a_run_needs_the_callers_right_to_execute_the_skill() {
    let gateway = stocked();
    gateway.skill("team", "other", &json!({}));
    gateway.deny_user("colleague", "team", Some("sum"), Verb::Execute);
    let run = async |token: &str, skill: &str| {
        let body = json!({ "skill": skill, "wait": false }).to_string();
        gateway.send("POST", RUNS, Some(token), &[], &body).await.status
    };
    assert_eq!([run(AGENT, "sum").await, run("team/colleague", "sum").await], [202, 403]);
    assert_eq!(run("team/colleague", "other").await, 202);
    assert_eq!(gateway.api.executions().len(), 2);
}

#[tokio::test]
async fn a_gateway_that_stops_answers_those_who_wait_with_where_to_ask() {
    let gateway = stocked();
    let stopping = async {
        eventually("the run is made", || !gateway.api.executions().is_empty()).await;
        gateway.service.stop.cancel();
    };
    let body = json!({ "skill": "sum", "waitSeconds": 600 });
    let waiting = tokio::time::timeout(Duration::from_secs(20), post(&gateway, body));
    let answer = tokio::join!(waiting, stopping).0.expect("an answer");
    assert_eq!(answer.status, 202);
    assert!(answer.headers["location"].to_str().unwrap().starts_with(RUNS));
    assert_eq!(gateway.api.executions()[0]["spec"]["cancel"], false);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for_without_end() {
    let gateway = stocked();
    let begun = stream::iter([Ok::<_, Infallible>("{")]).chain(stream::pending());
    let answer = gateway.send_body("POST", RUNS, Some(AGENT), &[], Body::from_stream(begun));
    let answer = tokio::time::timeout(Duration::from_secs(120), answer).await.expect("an answer");
    assert_eq!(answer.error(), (408, "TooSlow".into(), String::new()));
}

#[tokio::test]
async fn a_skill_of_the_platform_is_run_where_it_is_for_the_callers_namespace() {
    let gateway = stocked();
    gateway.api.set_status_on_create(ended("Succeeded", "Succeeded", 1));
    let run = post(&gateway, json!({ "skill": "fetch" })).await.json();
    assert_eq!(run["namespace"], "platform");
    assert_eq!(gateway.api.executions()[0]["metadata"]["labels"]["skillet.dev/caller-namespace"], "team");
    let seen = gateway.get(RUNS).await.json();
    assert_eq!(seen["data"][0]["name"], run["name"]);
}

#[tokio::test]
async fn the_same_key_is_the_same_run() {
    let gateway = stocked();
    gateway.api.set_status_on_create(ended("Succeeded", "Succeeded", 1));
    let keyed = async |key: &str, body: &Value| keyed(&gateway, key, body).await;
    let body = json!({ "skill": "sum", "input": { "a": 1.0 } });
    let (first, second) = (keyed("k", &body).await, keyed("k", &body).await);
    assert_eq!((first.status, first.json()["name"].clone()), (200, second.json()["name"].clone()));
    let other = keyed("k", &json!({ "skill": "sum", "input": { "a": 2 } })).await;
    assert_eq!(other.error(), (409, "Conflict".into(), "idempotency-key".into()));
    for bad in ["", &"k".repeat(256), "\u{e9}"] {
        assert_eq!(keyed(bad, &body).await.error().2, "idempotency-key");
    }
    assert_eq!(gateway.api.executions().len(), 1);
}

async fn keyed(gateway: &TestGateway, key: &str, body: &Value) -> TestResponse {
    gateway.send("POST", RUNS, Some(AGENT), &[("Idempotency-Key", key)], &body.to_string()).await
}

#[tokio::test]
async fn the_same_key_is_the_same_run_whatever_skill_has_come_nearer_or_gone() {
    let gateway = stocked();
    gateway.api.set_status_on_create(ended("Succeeded", "Succeeded", 1));
    let body = json!({ "skill": "fetch" });
    let first = keyed(&gateway, "k", &body).await.json()["name"].clone();
    gateway.skill("team", "fetch", &json!({}));
    let again = keyed(&gateway, "k", &body).await;
    assert_eq!((&again.json()["name"], &again.json()["namespace"]), (&first, &json!("platform")));
    let other = keyed(&gateway, "k", &json!({ "skill": "fetch", "input": 1 })).await;
    assert_eq!(other.error().1, "Conflict");
    gateway.remove_skills();
    assert_eq!(keyed(&gateway, "k", &body).await.json()["name"], first);
    assert_eq!(keyed(&gateway, "l", &body).await.error().1, "SkillNotFound");
    assert_eq!(gateway.api.executions().len(), 1);
}

#[tokio::test]
async fn a_key_shows_no_run_of_a_skill_that_may_not_be_run_any_more() {
    let gateway = stocked();
    gateway.api.set_status_on_create(ended("Succeeded", "Succeeded", 1));
    let body = json!({ "skill": "fetch" });
    keyed(&gateway, "k", &body).await;
    gateway.skill("team", "fetch", &json!({}));
    gateway.deny("platform", Some("fetch"), Verb::Execute);
    assert_eq!(keyed(&gateway, "k", &body).await.json()["namespace"], "team");
}

#[tokio::test]
async fn a_request_that_cannot_be_read_makes_nothing() {
    let gateway = stocked();
    for (body, field) in [
        ("", ""),
        ("[]", ""),
        ("{}", "/skill"),
        (r#"{"skill": 1}"#, "/skill"),
        (r#"{"skill": "sum", "skillName": "sum"}"#, "/skillName"),
        (r#"{"skill": "sum@1.0.0", "version": "1.0.0"}"#, "/version"),
        (r#"{"skill": "sum", "apiKeyId": "other"}"#, "/apiKeyId"),
        (r#"{"skill": "sum", "timeout": "soon"}"#, "/timeout"),
        (r#"{"skill": "sum", "waitSeconds": 601}"#, "/waitSeconds"),
        (r#"{"skill": "sum", "waitSeconds": -1}"#, "/waitSeconds"),
    ] {
        let answer = gateway.send("POST", RUNS, Some(AGENT), &[], body).await;
        assert_eq!(answer.error(), (400, "BadRequest".into(), field.into()), "{body}");
    }
    let large = format!(r#"{{"skill": "sum", "input": "{}"}}"#, "x".repeat(1 << 20));
    assert_eq!(gateway.send("POST", RUNS, Some(AGENT), &[], &large).await.error().1, "TooLarge");
    assert_eq!(gateway.send("POST", RUNS, None, &[], &large).await.error().0, 401);
    assert_eq!(
        gateway.send("POST", &format!("{RUNS}?wait=false"), Some(AGENT), &[], "{}").await.error().2,
        "wait"
    );
    assert!(gateway.api.executions().is_empty());
}

#[tokio::test]
async fn a_malformed_constraint_is_refused_before_anything_is_created() {
    let gateway = stocked();
    for (body, field) in
        [(json!({ "skill": "sum@1" }), "/skill"), (json!({ "skill": "sum", "version": "v1" }), "/version")]
    {
        assert_eq!(post(&gateway, body).await.error(), (422, "ConstraintInvalid".into(), field.into()));
    }
    assert!(gateway.api.executions().is_empty());
}

#[tokio::test]
async fn only_what_the_caller_may_run_is_run() {
    let gateway = stocked();
    gateway.deny("platform", Some("fetch"), Verb::Execute);
    for (body, status) in [
        (json!({ "skill": "fetch" }), 403),
        (json!({ "skill": "secret" }), 404),
        (json!({ "skill": "secret", "namespace": "other" }), 403),
        (json!({ "skill": "sum", "namespace": "platform" }), 404),
        (json!({ "skill": "../other/secret" }), 404),
        (json!({ "skill": "" }), 404),
    ] {
        assert_eq!(post(&gateway, body.clone()).await.error().0, status, "{body}");
    }
    assert!(gateway.api.executions().is_empty());
}

#[tokio::test]
async fn what_the_api_server_refuses_is_passed_on() {
    let gateway = stocked();
    for (code, status) in [(403, 403), (404, 404), (422, 422), (429, 503)] {
        gateway.api.fail_next("POST /apis/skillet.dev", code, "says why");
        assert_eq!(post(&gateway, json!({ "skill": "sum" })).await.error().0, status, "{code}");
    }
}

#[tokio::test]
async fn an_input_takes_room_for_as_long_as_somebody_waits_with_it() {
    let gateway = stocked();
    let input = vec![0; 100_000];
    let mut waiting = Box::pin(post(&gateway, json!({ "skill": "sum", "input": input })));
    let polled = async {
        tokio::select! {
            biased;
            answer = &mut waiting => panic!("{answer:?}"),
            () = eventually("it is made", || !gateway.api.executions().is_empty()) => {}
        }
    };
    polled.await;
    assert!(
        gateway.service.memory.reserved() > 2 * 6_000_000,
        "twice as a document: {}",
        gateway.service.memory.reserved()
    );
    drop(waiting);
    assert_eq!(gateway.service.memory.reserved(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_without_free_memory_gets_retry_after() {
    let gateway = stocked();
    let all = gateway.service.memory.fill("team").await;
    let answer = post(&gateway, json!({ "skill": "sum", "wait": false })).await;
    assert_eq!(answer.error(), (503, "Overloaded".into(), String::new()));
    assert_eq!(answer.headers["retry-after"], "5");
    drop(all);
    assert_eq!(post(&gateway, json!({ "skill": "sum", "wait": false })).await.status, 202);
}

#[tokio::test]
async fn small_values_that_would_take_too_much_are_too_large() {
    let gateway = stocked();
    let body = format!(r#"{{"skill": "sum", "input": [{}0]}}"#, r#"{"":0},"#.repeat(100_000));
    assert_eq!(
        gateway.send("POST", RUNS, Some(AGENT), &[], &body).await.error(),
        (413, "TooLarge".into(), String::new())
    );
    assert!(gateway.api.executions().is_empty());
}

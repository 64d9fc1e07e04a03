//! Calls and offers of real requests, and what they change for the namespace that learns.

use serde_json::{Value, json};
use skillet_api::gateway::OfferMatching;

use super::*;
use crate::testing::{AGENT, TestGateway};

const CHAT: &str = "/v1/chat/completions";
const DAY: u32 = 20_000;
/// A word of a long text says little.
const LONG: &str = "Resizes a picture to a width in pixels, keeps the ratio of both sides, writes the format of the \
    original file and returns the size in bytes, the width, the height and the quality that was chosen for it";

fn maps(gateway: &TestGateway) -> StateMaps {
    StateMaps::new(gateway.api.client(), "skillet-system")
}

/// Returns a gateway with the skill `resizer`, whose runs succeed. Namespace `team` learns.
fn learning_gateway() -> TestGateway {
    let gateway = TestGateway::new();
    gateway.api.set_status_on_create(json!({ "phase": "Succeeded", "reason": "Succeeded", "attempts": 1,
        "truncated": false, "output": { "width": 5 } }));
    gateway.skill("team", "resizer", &json!({ "description": LONG, "mode": "auto", "invocation": "auto" }));
    gateway.change_policy(|policy| {
        policy.gateway.offer.matching = OfferMatching::Ranked;
        policy.gateway.offer.learning.namespaces = vec!["team".into()];
    });
    gateway
}

fn chat(text: &str) -> Value {
    json!({ "model": "m", "messages": [{ "role": "user", "content": text }] })
}

/// Sends a question whose response calls `resizer`.
async fn call(gateway: &TestGateway, text: &str) {
    gateway.provider.will_say(&json!({ "id": "r", "choices": [{ "index": 0, "finish_reason": "tool_calls",
        "message": { "role": "assistant", "content": null, "tool_calls": [
            { "id": "c", "type": "function", "function": { "name": "resizer", "arguments": "{}" } }] } }] }));
    gateway.provider.will_say(&json!({ "id": "r", "choices": [{ "index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": "done" } }] }));
    let response = gateway.send("POST", CHAT, Some(AGENT), &[], &chat(text).to_string()).await;
    assert_eq!((response.status, response.header("x-skillet-ran")), (200, "resizer"), "{response:?}");
}

async fn exchange(gateway: &TestGateway, learners: &[&str]) {
    let learners: Vec<String> = learners.iter().map(|name| (*name).to_owned()).collect();
    let metrics = Metrics::default();
    gateway.model.learning.exchange_once(&maps(gateway), &learners, DAY, &metrics).await;
}

fn stored(gateway: &TestGateway) -> Value {
    let name = format!("skillet-learned-{}", shard_of("team"));
    let found = gateway.api.object(&format!("/api/v1/namespaces/skillet-system/configmaps/{name}"));
    let text = found.as_ref().and_then(|found| found["data"]["team"].as_str());
    text.map(|text| serde_json::from_str(text).unwrap()).unwrap_or_default()
}

async fn explained(gateway: &TestGateway, account: &str, text: &str) -> Value {
    let body = json!({ "dialect": "openai-chat", "request": chat(text) }).to_string();
    gateway.send("POST", "/v1/explain", Some(account), &[], &body).await.json()["skills"][0].clone()
}

#[tokio::test]
async fn calls_that_succeed_strengthen_a_skill_for_the_callers_namespace_alone() {
    let gateway = learning_gateway();
    let nearly = "Shrink the picture";
    assert_eq!(explained(&gateway, AGENT, nearly).await["reason"], "BelowThreshold");
    for question in ["Shrink it: resize the picture to a width", "resize and shrink the picture by the ratio"]
    {
        call(&gateway, question).await;
        call(&gateway, question).await;
    }
    exchange(&gateway, &["team"]).await;
    let terms = stored(&gateway)["team/resizer"]["terms"].clone();
    assert_eq!((&terms["shrink"], &terms["ratio"]), (&json!(2.0), &Value::Null), "{terms}");
    let of_team = explained(&gateway, AGENT, nearly).await;
    assert_eq!(of_team["offered"], true, "{of_team}");
    let kinds: Vec<&Value> =
        of_team["signals"].as_array().unwrap().iter().map(|signal| &signal["kind"]).collect();
    assert!(kinds.contains(&&json!("Learned")), "{kinds:?}");
    // Another namespace that learns has learned nothing.
    gateway.skill(
        "platform",
        "resizer",
        &json!({ "description": LONG, "mode": "auto", "invocation": "auto" }),
    );
    gateway.change_policy(|policy| policy.gateway.offer.learning.namespaces.push("other".into()));
    let of_other = explained(&gateway, "other/agent", nearly).await;
    assert_eq!((&of_other["namespace"], &of_other["offered"]), (&json!("platform"), &json!(false)));
}

#[tokio::test]
async fn a_question_counts_once_and_offers_without_calls_weaken() {
    let gateway = learning_gateway();
    let question = |number: usize| format!("resize the picture to the width of {}", "x".repeat(number + 2));
    for number in [0, 0, 0, 1, 2] {
        gateway.send("POST", CHAT, Some(AGENT), &[], &chat(&question(number)).to_string()).await;
    }
    // Neither an explanation nor a router's request is an offer that a model has seen here.
    explained(&gateway, AGENT, &question(7)).await;
    let inject = json!({ "dialect": "openai-chat", "request": chat(&question(8)) }).to_string();
    gateway.send("POST", "/v1/inject", Some(AGENT), &[], &inject).await;
    exchange(&gateway, &["team"]).await;
    assert_eq!(stored(&gateway)["team/resizer"]["unused"], 3.0);
}

#[tokio::test]
async fn a_namespace_that_is_taken_from_the_policy_forgets_and_does_not_count() {
    let gateway = learning_gateway();
    for question in ["resize the picture, shrink", "shrink, resize that picture a bit"] {
        call(&gateway, question).await;
    }
    exchange(&gateway, &["team"]).await;
    assert!(stored(&gateway)["team/resizer"]["terms"]["shrink"].is_number(), "{}", stored(&gateway));
    let writes = gateway.api.count("PUT") + gateway.api.count("POST /api/v1/namespaces/skillet-system");
    exchange(&gateway, &["team"]).await;
    assert_eq!(gateway.api.count("PUT") + 1, writes, "nothing new is not written");
    gateway.change_policy(|policy| policy.gateway.offer.learning.namespaces.clear());
    call(&gateway, "resize the picture to a small width").await;
    assert!(!lock(&gateway.model.learning.counted).uses.values().any(ObservedUse::is_new));
    exchange(&gateway, &[]).await;
    assert_eq!(stored(&gateway), Value::Null);
    let requests = gateway.api.requests().len();
    exchange(&gateway, &[]).await;
    assert_eq!(gateway.api.requests().len(), requests, "without learners the cluster is left alone");
}

#[tokio::test]
async fn what_could_not_be_written_is_written_later_and_the_last_state_counts() {
    let gateway = learning_gateway();
    call(&gateway, "resize the picture, shrink").await;
    exchange(&gateway, &["team"]).await;
    call(&gateway, "shrink, resize that picture a bit").await;
    let name = format!("/api/v1/namespaces/skillet-system/configmaps/skillet-learned-{}", shard_of("team"));
    gateway.api.fail_next(&format!("GET {name}"), 500, "down");
    exchange(&gateway, &["team"]).await;
    assert_eq!(stored(&gateway), Value::Null);
    exchange(&gateway, &["team"]).await;
    assert_eq!(stored(&gateway)["team/resizer"]["terms"]["shrink"], 2.0);
}

#[test]
fn the_charts_role_names_each_config_map() {
    let role = include_str!("../../../../charts/skillet/templates/rbac-gateway.yaml");
    assert!(role.contains(&format!("range until {SHARDS}")) && role.contains("skillet-learned-{{ . }}"));
    assert!((0..100).all(|number| shard_of(&format!("team-{number}")) < SHARDS));
}

//! Confirmed calls when the cluster is away, when they are slow, and when they are many.

use std::time::Duration;

use serde_json::json;
use skillet_api::{duration::SkillDuration, gateway::ConversationPolicy};
use skillet_llm::confirmation::reply::HEADER;

use super::*;

const CREATE: &str = "POST /apis/skillet.dev/v1alpha1/namespaces/team/skillexecutions";
const FIND: &str = "GET /apis/skillet.dev/v1alpha1/namespaces/team/skillexecutions/call-";

fn set(gateway: &TestGateway, change: impl FnOnce(&mut ConversationPolicy)) {
    gateway.change_policy(|policy| change(&mut policy.gateway.conversation));
}

fn status(phase: &str) -> Value {
    json!({"phase": phase, "reason": phase, "attempts": 1, "truncated": false, "output": {"paid": 5}})
}

/// The status of the answer, and all results as the model reads them; none where it was not asked.
async fn sent(gateway: &TestGateway, messages: &[Value]) -> (u16, Vec<Value>) {
    let before = gateway.provider.texts().len();
    let status = gateway.send("POST", CHAT, Some(AGENT), &[], &asking(messages).to_string()).await.status;
    if gateway.provider.texts().len() == before {
        return (status, Vec::new());
    }
    let asked = gateway.provider.last_request()["messages"].clone();
    let results = asked.as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    (
        status,
        results.map(|result| serde_json::from_str(result["content"].as_str().unwrap()).unwrap()).collect(),
    )
}

/// The messages after a confirmation that the model has answered.
fn later(messages: &[Value], confirmation: &str) -> Vec<Value> {
    let answered = [result(confirmation), json!({"role": "assistant", "content": "done"}), user()];
    [messages, &answered].concat()
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_spends_no_confirmation() {
    let gateway = stocked(Some(key()));
    let (messages, confirmation) = asked(&gateway).await;
    let newest = [&messages[..], &[result(&confirmation)]].concat();
    gateway.api.fail_reviews(true);
    assert_eq!(sent(&gateway, &newest).await, (503, vec![]), "rights could not be asked for");
    gateway.api.fail_reviews(false);
    gateway.api.fail_next(CREATE, 500, "etcd is away");
    assert_eq!(sent(&gateway, &newest).await, (503, vec![]));
    gateway.provider.will_say(&saying("done"));
    assert_eq!(sent(&gateway, &newest).await, (200, vec![json!({"paid": 5})]));
    gateway.api.fail_next(FIND, 500, "etcd is away");
    let later = later(&messages, &confirmation);
    assert_eq!(sent(&gateway, &later).await, (503, vec![]));
    gateway.provider.will_say(&saying("done"));
    assert_eq!(sent(&gateway, &later).await, (200, vec![json!({"paid": 5})]));
    assert_eq!(gateway.api.executions().len(), 1);
}

#[tokio::test]
async fn a_refusal_of_the_cluster_is_a_result_and_later_the_call_counts_as_not_started() {
    let gateway = stocked(Some(key()));
    let (messages, confirmation) = asked(&gateway).await;
    gateway.api.fail_next(CREATE, 403, "exceeded quota");
    gateway.provider.will_say(&saying("done"));
    let (_, seen) = sent(&gateway, &[&messages[..], &[result(&confirmation)]].concat()).await;
    assert_eq!(reason(&seen[0]), "Forbidden");
    gateway.provider.will_say(&saying("done"));
    let (_, seen) = sent(&gateway, &later(&messages, &confirmation)).await;
    assert_eq!(reason(&seen[0]), "ResultGone");
    assert!(seen[0]["error"]["message"].as_str().unwrap().contains("was not begun, or"), "{seen:?}");
}

#[tokio::test]
async fn a_slow_run_leaves_the_model_its_time_and_does_not_hold_up_later_requests() {
    let gateway = stocked(Some(key()));
    gateway.api.set_status_on_create(status("Running"));
    let (messages, confirmation) = asked(&gateway).await;
    set(&gateway, |policy| policy.timeout = SkillDuration(Duration::from_secs(4)));
    gateway.provider.will_say(&saying("it takes long"));
    let (answered, seen) = sent(&gateway, &[&messages[..], &[result(&confirmation)]].concat()).await;
    assert_eq!((answered, reason(&seen[0])), (200, "TimedOut"));
    set(&gateway, |policy| policy.timeout = SkillDuration(Duration::from_secs(3600)));
    let later = later(&messages, &confirmation);
    gateway.provider.will_say(&saying("done"));
    let (answered, seen) = sent(&gateway, &later).await;
    assert_eq!((answered, reason(&seen[0])), (200, "StillRunning"));
    let name = gateway.api.executions()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    gateway.api.set_status("team", &name, status("Succeeded"));
    gateway.provider.will_say(&saying("done"));
    assert_eq!(sent(&gateway, &later).await, (200, vec![json!({"paid": 5})]));
    assert_eq!(gateway.created(), 1);
}

#[tokio::test]
async fn a_second_line_of_the_header_confirms_too() {
    let gateway = stocked(Some(key()));
    let (messages, confirmation) = asked(&gateway).await;
    let token: Value = serde_json::from_str(&confirmation).unwrap();
    gateway.provider.will_say(&saying("done"));
    let lines = [(HEADER, "1.2.3.4"), (HEADER, token["token"].as_str().unwrap())];
    gateway
        .send(
            "POST",
            CHAT,
            Some(AGENT),
            &lines,
            &asking(&[&messages[..], &[result("yes")]].concat()).to_string(),
        )
        .await;
    assert_eq!(gateway.provider.last_request()["messages"][2]["content"], "{\"paid\":5}");
}

/// Every confirmation that a question's text names.
fn confirmations(text: &str) -> Vec<String> {
    let found = text.split(r#"{"skillet":"confirm""#).skip(1);
    found.map(|rest| format!(r#"{{"skillet":"confirm"{}}}"#, rest.split('}').next().unwrap())).collect()
}

#[tokio::test]
async fn a_confirmed_call_that_finds_no_time_to_begin_is_not_spent() {
    let gateway = stocked(Some(key()));
    gateway.api.set_status_on_create(status("Running"));
    gateway.provider.will_say(&calling(&[pay(), call("call_2", "pay", "{}")]));
    let answer = gateway.post(CHAT, &asking(&[user()])).await.json();
    let message = answer["choices"][0]["message"].clone();
    let confirmations = confirmations(message["content"].as_str().unwrap());
    let mut second = result(&confirmations[1]);
    second["tool_call_id"] = json!("call_2");
    let messages = [user(), message, result(&confirmations[0]), second];
    set(&gateway, |policy| {
        (policy.max_parallel_calls, policy.timeout) = (1, SkillDuration(Duration::from_secs(1)));
    });
    assert_eq!(sent(&gateway, &messages).await, (503, vec![]));
    set(&gateway, |policy| policy.timeout = SkillDuration(Duration::from_secs(3600)));
    let name = gateway.api.executions()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    gateway.api.set_status("team", &name, status("Succeeded"));
    gateway.api.set_status_on_create(status("Succeeded"));
    gateway.provider.will_say(&saying("done"));
    assert_eq!(sent(&gateway, &messages).await, (200, vec![json!({"paid": 5}), json!({"paid": 5})]));
    assert_eq!(gateway.api.executions().len(), 2);
}

#[tokio::test]
async fn results_of_earlier_turns_take_nothing_of_what_new_ones_may() {
    let gateway = stocked(Some(key()));
    let (messages, confirmation) = asked(&gateway).await;
    gateway.provider.will_say(&saying("done"));
    sent(&gateway, &[&messages[..], &[result(&confirmation)]].concat()).await;
    set(&gateway, |policy| policy.total_result_bytes = 10);
    gateway.provider.will_say(&calling(&[call("call_2", "look", "{}")]));
    gateway.provider.will_say(&saying("done"));
    let (_, seen) = sent(&gateway, &later(&messages, &confirmation)).await;
    assert_eq!(seen, [json!({"paid": 5}), json!({"paid": 5})]);
}

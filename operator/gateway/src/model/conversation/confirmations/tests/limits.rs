//! Confirmed calls when the cluster is away, when they are slow, and when they are many.

use std::time::Duration;

use serde_json::json;
use skillet_api::{SkillPolicySpec, duration::SkillDuration, gateway::ConversationPolicy};
use skillet_llm::confirmation::reply::HEADER;

use super::*;

const CREATE: &str = "POST /apis/skillet.dev/v1alpha1/namespaces/team/skillexecutions";
const FIND: &str = "GET /apis/skillet.dev/v1alpha1/namespaces/team/skillexecutions/call-";

fn set(bed: &Bed, change: impl FnOnce(&mut ConversationPolicy)) {
    let mut policy = SkillPolicySpec::clone(&bed.gateway.catalog.policy());
    change(&mut policy.gateway.conversation);
    bed.gateway.catalog.set_policy(policy);
}

fn status(phase: &str) -> Value {
    json!({"phase": phase, "reason": phase, "attempts": 1, "truncated": false, "output": {"paid": 5}})
}

/// The status of the answer, and all results as the model reads them; none where it was not asked.
async fn sent(bed: &Bed, messages: &[Value]) -> (u16, Vec<Value>) {
    let before = bed.asked_texts().len();
    let (status, _) = bed.send_text("agent", CHAT, &[], asking(messages).to_string()).await;
    if bed.asked_texts().len() == before {
        return (status, Vec::new());
    }
    let asked = bed.asked()["messages"].clone();
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
    let bed = Bed::new(Some(key())).await;
    let (messages, confirmation) = asked(&bed).await;
    let newest = [&messages[..], &[result(&confirmation)]].concat();
    bed.api.fail_reviews(true);
    assert_eq!(sent(&bed, &newest).await, (503, vec![]), "rights could not be asked for");
    bed.api.fail_reviews(false);
    bed.api.fail_next(CREATE, 500, "etcd is away");
    assert_eq!(sent(&bed, &newest).await, (503, vec![]));
    bed.will_say(&saying("done"));
    assert_eq!(sent(&bed, &newest).await, (200, vec![json!({"paid": 5})]));
    bed.api.fail_next(FIND, 500, "etcd is away");
    let later = later(&messages, &confirmation);
    assert_eq!(sent(&bed, &later).await, (503, vec![]));
    bed.will_say(&saying("done"));
    assert_eq!(sent(&bed, &later).await, (200, vec![json!({"paid": 5})]));
    assert_eq!(bed.api.executions().len(), 1);
}

#[tokio::test]
async fn a_refusal_of_the_cluster_is_a_result_and_later_the_call_counts_as_not_started() {
    let bed = Bed::new(Some(key())).await;
    let (messages, confirmation) = asked(&bed).await;
    bed.api.fail_next(CREATE, 403, "exceeded quota");
    bed.will_say(&saying("done"));
    let (_, seen) = sent(&bed, &[&messages[..], &[result(&confirmation)]].concat()).await;
    assert_eq!(reason(&seen[0]), "Forbidden");
    bed.will_say(&saying("done"));
    let (_, seen) = sent(&bed, &later(&messages, &confirmation)).await;
    assert_eq!(reason(&seen[0]), "ResultGone");
    assert!(seen[0]["error"]["message"].as_str().unwrap().contains("was not begun, or"), "{seen:?}");
}

#[tokio::test]
async fn a_slow_run_leaves_the_model_its_time_and_does_not_hold_up_later_requests() {
    let bed = Bed::new(Some(key())).await;
    bed.api.set_status_on_create(status("Running"));
    let (messages, confirmation) = asked(&bed).await;
    set(&bed, |policy| policy.timeout = SkillDuration(Duration::from_secs(4)));
    bed.will_say(&saying("it takes long"));
    let (answered, seen) = sent(&bed, &[&messages[..], &[result(&confirmation)]].concat()).await;
    assert_eq!((answered, reason(&seen[0])), (200, "TimedOut"));
    set(&bed, |policy| policy.timeout = SkillDuration(Duration::from_secs(3600)));
    let later = later(&messages, &confirmation);
    bed.will_say(&saying("done"));
    let (answered, seen) = sent(&bed, &later).await;
    assert_eq!((answered, reason(&seen[0])), (200, "StillRunning"));
    let name = bed.api.executions()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    bed.api.set_status("team", &name, status("Succeeded"));
    bed.will_say(&saying("done"));
    assert_eq!(sent(&bed, &later).await, (200, vec![json!({"paid": 5})]));
    assert_eq!(bed.made(), 1);
}

#[tokio::test]
async fn a_second_line_of_the_header_confirms_too() {
    let bed = Bed::new(Some(key())).await;
    let (messages, confirmation) = asked(&bed).await;
    let token: Value = serde_json::from_str(&confirmation).unwrap();
    bed.will_say(&saying("done"));
    let lines = [(HEADER, "1.2.3.4"), (HEADER, token["token"].as_str().unwrap())];
    bed.send_as("agent", CHAT, &lines, &asking(&[&messages[..], &[result("yes")]].concat())).await;
    assert_eq!(bed.asked()["messages"][2]["content"], "{\"paid\":5}");
}

/// Every confirmation that a question's text names.
fn confirmations(text: &str) -> Vec<String> {
    let found = text.split(r#"{"skillet":"confirm""#).skip(1);
    found.map(|rest| format!(r#"{{"skillet":"confirm"{}}}"#, rest.split('}').next().unwrap())).collect()
}

#[tokio::test]
async fn a_confirmed_call_that_finds_no_time_to_begin_is_not_spent() {
    let bed = Bed::new(Some(key())).await;
    bed.api.set_status_on_create(status("Running"));
    bed.will_say(&calling(&[pay(), call("call_2", "pay", "{}")]));
    let answer = bed.json(CHAT, &asking(&[user()])).await;
    let message = answer["choices"][0]["message"].clone();
    let confirmations = confirmations(message["content"].as_str().unwrap());
    let mut second = result(&confirmations[1]);
    second["tool_call_id"] = json!("call_2");
    let messages = [user(), message, result(&confirmations[0]), second];
    set(&bed, |policy| {
        (policy.max_parallel_calls, policy.timeout) = (1, SkillDuration(Duration::from_secs(1)));
    });
    assert_eq!(sent(&bed, &messages).await, (503, vec![]));
    set(&bed, |policy| policy.timeout = SkillDuration(Duration::from_secs(3600)));
    let name = bed.api.executions()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    bed.api.set_status("team", &name, status("Succeeded"));
    bed.api.set_status_on_create(status("Succeeded"));
    bed.will_say(&saying("done"));
    assert_eq!(sent(&bed, &messages).await, (200, vec![json!({"paid": 5}), json!({"paid": 5})]));
    assert_eq!(bed.api.executions().len(), 2);
}

#[tokio::test]
async fn results_of_earlier_turns_take_nothing_of_what_new_ones_may() {
    let bed = Bed::new(Some(key())).await;
    let (messages, confirmation) = asked(&bed).await;
    bed.will_say(&saying("done"));
    sent(&bed, &[&messages[..], &[result(&confirmation)]].concat()).await;
    set(&bed, |policy| policy.total_result_bytes = 10);
    bed.will_say(&calling(&[call("call_2", "look", "{}")]));
    bed.will_say(&saying("done"));
    let (_, seen) = sent(&bed, &later(&messages, &confirmation)).await;
    assert_eq!(seen, [json!({"paid": 5}), json!({"paid": 5})]);
}

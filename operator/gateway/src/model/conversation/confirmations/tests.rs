//! Calls that wait for a person's word: confirmed they run once, and what is beside them is left as it was.

use serde_json::json;
use skillet_llm::{
    confirmation::{ConfirmationKey, NONCE_BYTES, PendingCall, reply::HEADER},
    tool_names::SkillIdentity,
};

use super::{
    super::tests::{key, stocked},
    *,
};
use crate::testing::{AGENT, TestGateway};

pub(super) const CHAT: &str = "/v1/chat/completions";
const GEMINI: &str = "/v1beta/models/gemini-2.5-pro:generateContent";
const REFUSE: &str = r#"{"skillet":"refuse"}"#;

pub(super) fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

pub(super) fn pay() -> Value {
    call("call_1", "pay", "{\"amount\":5}")
}

/// An answer of the model's with these calls.
pub(super) fn calling(calls: &[Value]) -> Value {
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    json!({"id": "r", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
}

pub(super) fn saying(text: &str) -> Value {
    json!({"id": "r", "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
}

pub(super) fn asking(messages: &[Value]) -> Value {
    json!({"model": "m", "messages": messages})
}

pub(super) fn result(content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": "call_1", "content": content})
}

pub(super) fn user() -> Value {
    json!({"role": "user", "content": "pay 5"})
}

/// The confirmation that a question's text tells its reader to send.
fn confirmation(text: &str) -> String {
    let from = text.find(r#"{"skillet":"confirm""#).unwrap_or_else(|| panic!("no question in {text}"));
    text[from..].split_inclusive('}').next().unwrap().to_owned()
}

fn token_of(confirmation: &str) -> String {
    serde_json::from_str::<Value>(confirmation).unwrap()["token"].as_str().unwrap().to_owned()
}

/// The model calls `pay`; the messages so far and the confirmation that would run it.
pub(super) async fn asked(gateway: &TestGateway) -> (Vec<Value>, String) {
    gateway.provider.will_say(&calling(&[pay()]));
    let answer = gateway.post(CHAT, &asking(&[user()])).await.json();
    let message = answer["choices"][0]["message"].clone();
    let confirmation = confirmation(message["content"].as_str().unwrap());
    (vec![user(), message], confirmation)
}

/// Returns the result of the call as the model reads it, if the client sends this content.
async fn read_as(gateway: &TestGateway, account: &str, messages: &[Value], content: &str) -> Value {
    gateway.provider.will_say(&saying("done"));
    let messages = [messages, &[result(content)]].concat();
    gateway.send("POST", CHAT, Some(account), &[], &asking(&messages).to_string()).await;
    let asked = gateway.provider.last_request();
    let seen = asked["messages"].as_array().unwrap().iter().find(|message| message["role"] == "tool");
    serde_json::from_str(seen.unwrap()["content"].as_str().unwrap()).unwrap()
}

async fn read(gateway: &TestGateway, messages: &[Value], content: &str) -> Value {
    read_as(gateway, AGENT, messages, content).await
}

pub(super) fn reason(seen: &Value) -> &str {
    seen["error"]["reason"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_hybrid_call_goes_to_the_client_and_runs_once_it_is_confirmed() {
    let gateway = stocked(Some(key()));
    gateway.provider.will_say(&calling(&[pay()]));
    let answer = gateway.post(CHAT, &asking(&[user()])).await.json();
    assert_eq!(
        gateway.provider.last_request()["tools"][1]["function"]["name"],
        "pay",
        "it is offered like any other"
    );
    let message = &answer["choices"][0]["message"];
    assert_eq!(
        (&message["tool_calls"], &answer["choices"][0]["finish_reason"]),
        (&json!([pay()]), &json!("tool_calls"))
    );
    assert_eq!(gateway.created(), 0);
    let confirmation = confirmation(message["content"].as_str().unwrap());
    assert_eq!(read(&gateway, &[user(), message.clone()], &confirmation).await, json!({"paid": 5}));
    let execution = &gateway.api.executions()[0];
    assert_eq!(execution["metadata"]["namespace"], "team");
    assert_eq!(
        (
            &execution["spec"]["skill"],
            &execution["spec"]["version"],
            &execution["spec"]["input"],
            &execution["spec"]["caller"]
        ),
        (&json!("pay"), &json!("1.0.0"), &json!({"amount": 5}), &json!("team/agent"))
    );
}

#[tokio::test]
async fn a_repeated_confirmation_returns_the_same_execution_while_it_is_kept() {
    let gateway = stocked(Some(key()));
    let (mut messages, confirmation) = asked(&gateway).await;
    for _ in 0..2 {
        assert_eq!(read(&gateway, &messages, &confirmation).await, json!({"paid": 5}));
    }
    messages.extend([result(&confirmation), json!({"role": "assistant", "content": "done"}), user()]);
    assert_eq!(read(&gateway, &messages, "unused").await, json!({"paid": 5}));
    assert_eq!(gateway.api.executions().len(), 1);
    let name = gateway.api.executions()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    gateway.api.delete(&skillet_kube::testing::path("team", "skillexecutions", &name));
    let made = gateway.created();
    assert_eq!(reason(&read(&gateway, &messages, "unused").await), "ResultGone");
    assert_eq!((gateway.created(), gateway.api.executions().len()), (made, 0), "it is not run again");
}

/// A token that this gateway might have made, for a call of `pay` with 5.
fn forged(of: &str, key: &ConfirmationKey, namespace: &str, expires: u64) -> String {
    let (caller, arguments) = (confirmation_prompt::caller(&TestGateway::caller(of)), json!({"amount": 5}));
    let call = PendingCall { caller: &caller, call_id: "call_1", tool: "pay", arguments: &arguments };
    let skill = SkillIdentity { namespace, name: "pay", version: "1.0.0" };
    let token = key.make(&call, skill, expires, [1; NONCE_BYTES]);
    json!({"skillet": "confirm", "token": token}).to_string()
}

#[tokio::test]
async fn what_was_begun_in_time_is_found_after_the_token_has_expired() {
    let gateway = stocked(Some(key()));
    let (messages, _) = asked(&gateway).await;
    let late = forged(AGENT, &key(), "team", 5);
    let mut order = ExecutionRequest::new(TestGateway::caller(AGENT), "team", "pay");
    order.version = Some("1.0.0".into());
    order.input = json!({"amount": 5});
    order.idempotency = Some(format!("confirmed/{}", token_of(&late).rsplit('.').next().unwrap()));
    gateway.service.executions.start(&order).await.unwrap();
    assert_eq!(read(&gateway, &messages, &late).await, json!({"paid": 5}));
    assert_eq!(gateway.created(), 1);
}

#[tokio::test]
async fn the_results_of_the_clients_own_tools_are_left_alone() {
    let gateway = stocked(Some(key()));
    let (messages, confirmation) = asked(&gateway).await;
    let own = json!([{"type": "function", "function": {"name": "pay", "parameters": {}}}]);
    for content in [REFUSE, confirmation.as_str(), "ok"] {
        gateway.provider.will_say(&saying("done"));
        let mut request = asking(&[&messages[..], &[result(content)]].concat());
        request["tools"] = own.clone();
        gateway.post(CHAT, &request).await;
        assert_eq!(gateway.provider.last_request()["messages"][2]["content"], *content);
    }
    assert_eq!(gateway.created(), 0);
}

#[tokio::test]
async fn beside_it_other_skills_run_and_the_client_keeps_its_own_calls() {
    let gateway = stocked(Some(key()));
    gateway.provider.will_say(&calling(&[call("call_0", "look", "{}"), pay(), call("call_2", "own", "{}")]));
    let answer = gateway.post(CHAT, &asking(&[user()])).await.json();
    let message = &answer["choices"][0]["message"];
    let calls = &message["tool_calls"];
    assert_eq!((&calls[0]["function"], &calls[1]), (&pay()["function"], &call("call_2", "own", "{}")));
    let text = message["content"].as_str().unwrap();
    assert!(text.starts_with("The skill pay waits"), "{text}");
    assert_eq!(gateway.created(), 1);
    // The first call's id carries the result of the other skill. The provider gets the whole turn, and what was run.
    let confirmed = json!({"role": "tool", "tool_call_id": calls[0]["id"], "content": confirmation(text)});
    let own = json!({"role": "tool", "tool_call_id": "call_2", "content": "ok"});
    gateway.provider.will_say(&saying("done"));
    gateway.post(CHAT, &asking(&[user(), message.clone(), confirmed, own.clone()])).await;
    let sent = gateway.provider.last_request()["messages"].take();
    assert_eq!(
        sent[1]["tool_calls"],
        json!([call("call_0", "look", "{}"), pay(), call("call_2", "own", "{}")])
    );
    let paid = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "{\"paid\":5}"});
    assert_eq!(sent.as_array().unwrap()[2..], [paid("call_0"), paid("call_1"), own]);
    assert_eq!(gateway.created(), 2);
}

#[tokio::test]
async fn a_call_whose_arguments_are_broken_cannot_be_confirmed() {
    let gateway = stocked(Some(key()));
    gateway.provider.will_say(&calling(&[call("call_1", "pay", "{\"amo")]));
    let answer = gateway.post(CHAT, &asking(&[user()])).await.json();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.contains("not JSON") && !text.contains("token"), "{text}");
}

#[tokio::test]
async fn a_skill_that_the_request_forces_is_forced_in_the_first_round_only() {
    let gateway = stocked(Some(key()));
    let mut request = asking(&[user()]);
    request["tool_choice"] = json!({"type": "function", "function": {"name": "look"}});
    gateway.provider.will_say(&calling(&[call("c", "look", "{}")]));
    gateway.provider.will_say(&saying("done"));
    gateway.post(CHAT, &request).await;
    assert_eq!((&gateway.provider.last_request()["tool_choice"], gateway.created()), (&json!("auto"), 1));
}

#[tokio::test]
async fn a_dry_run_runs_nothing_that_is_confirmed() {
    let gateway = stocked(Some(key()));
    let (mut messages, confirmation) = asked(&gateway).await;
    messages.push(result(&confirmation));
    gateway
        .send("POST", CHAT, Some(AGENT), &[("x-skillet-dry-run", "true")], &asking(&messages).to_string())
        .await;
    assert_eq!(gateway.created(), 0);
}

#[tokio::test]
async fn only_the_newest_of_very_many_confirmations_are_looked_for() {
    let gateway = stocked(Some(key()));
    let (messages, confirmation) = asked(&gateway).await;
    let turn = [messages[1].clone(), result(&confirmation)];
    let many: Vec<Value> =
        std::iter::once(user()).chain(turn.iter().cycle().take(2 * (LIMIT + 1)).cloned()).collect();
    gateway.provider.will_say(&saying("done"));
    gateway.post(CHAT, &asking(&many)).await;
    let seen = gateway.provider.last_request()["messages"].clone();
    assert!(seen[2]["content"].as_str().unwrap().contains("LimitReached"), "{}", seen[2]);
    // The last turn begins the run, and the others may look for it before or after.
    assert_eq!(seen[2 * (LIMIT + 1)]["content"], "{\"paid\":5}");
    assert_eq!(gateway.created(), 1);
    // From now on it is there.
    gateway.provider.will_say(&saying("done"));
    gateway.post(CHAT, &asking(&many)).await;
    let seen = gateway.provider.last_request()["messages"].clone();
    assert!(seen[2]["content"].as_str().unwrap().contains("LimitReached"), "{}", seen[2]);
    for turn in 2..=LIMIT + 1 {
        assert_eq!(seen[2 * turn]["content"], "{\"paid\":5}");
    }
    assert_eq!(gateway.api.executions().len(), 1);
}

#[tokio::test]
async fn a_result_of_a_tool_that_is_not_declared_is_left_also_where_it_names_skillet() {
    let gateway = stocked(Some(key()));
    let listed = r#"{"skillet":{"chart":"skillet-0.1.0","status":"deployed"}}"#;
    let turn = json!({"role": "assistant", "tool_calls": [call("call_1", "helm_list", "{}")]});
    gateway.provider.will_say(&saying("done"));
    gateway.post(CHAT, &asking(&[user(), turn, result(listed)])).await;
    assert_eq!(gateway.provider.last_request()["messages"][2]["content"], listed);
}

mod attacks;

mod dialects;

mod header;
mod limits;

//! Calls through the whole gateway: which run, how often and under which key, for any request of a router.

use std::sync::Arc;

use futures::channel::oneshot;
use serde_json::{Value, json};
use skillet_llm::Arguments;

use super::{
    super::tests::{key, stocked},
    *,
};
use crate::testing::{AGENT, TestGateway};
use skillet_kube::testing::eventually;

const CHAT: &str = "/v1/chat/completions";
const KEYED: [(&str, &str); 1] = [("idempotency-key", "k")];

fn calls(names: &[&str]) -> Value {
    let call = |(index, name): (usize, &&str)| json!({"index": index, "id": format!("c{index}"), "type": "function", "function": {"name": name, "arguments": "{}"}});
    names.iter().enumerate().map(call).collect()
}

fn calling(names: &[&str]) -> Value {
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls(names)});
    json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
}

fn saying(text: &str) -> Value {
    json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
}

fn asking() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "look"}]})
}

/// A router's `intercept` request for a call of `look`, in any version.
fn intercept(tool: &str, version: &str, round: u32) -> Value {
    json!({"dialect": "openai-chat", "request": asking(), "answer": calling(&[tool]), "round": round,
        "offered": {tool: {"namespace": "team", "skill": tool, "version": version}}})
}

async fn intercepted(gateway: &TestGateway, headers: &[(&str, &str)], body: &Value) -> Value {
    serde_json::from_str(
        &gateway.send("POST", "/v1/intercept", Some(AGENT), headers, &body.to_string()).await.text,
    )
    .unwrap()
}

/// The reason in the first result of an interception.
fn reason(answer: &Value) -> String {
    let content: Value = serde_json::from_str(answer["results"][0]["content"].as_str().unwrap()).unwrap();
    content["error"]["reason"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_call_of_another_round_is_another_run_and_a_repeated_call_is_not() {
    let gateway = stocked(Some(key()));
    for (round, executions) in [(0, 1), (1, 2), (1, 2), (0, 2), (2, 3)] {
        let answer = intercepted(&gateway, &KEYED, &intercept("look", "1.0.0", round)).await;
        assert!(answer["nextRequest"].is_object(), "{answer}");
        assert_eq!(gateway.api.executions().len(), executions, "round {round}");
    }
}

#[tokio::test]
async fn the_limit_of_rounds_holds_for_a_router_too() {
    let gateway = stocked(Some(key()));
    let one = [("x-skillet-rounds", "1")];
    assert!(intercepted(&gateway, &one, &intercept("look", "1.0.0", 0)).await["nextRequest"].is_object());
    // The model is asked to conclude once, and reads why its call was not run.
    let answer = intercepted(&gateway, &one, &intercept("look", "1.0.0", 1)).await;
    assert_eq!(reason(&answer), "LimitReached");
    assert_eq!(answer["nextRequest"]["tool_choice"], "none");
    let answer = intercepted(&gateway, &one, &intercept("look", "1.0.0", 2)).await;
    assert_eq!((reason(&answer).as_str(), answer.get("nextRequest")), ("LimitReached", None));
    let text = answer["answer"]["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.contains("LimitReached"), "{text}");
    assert_eq!(reason(&intercepted(&gateway, &[], &intercept("look", "1.0.0", 1000)).await), "LimitReached");
    assert_eq!(gateway.created(), 1);
}

#[tokio::test]
async fn a_newer_version_does_not_run_a_repeated_call_again() {
    let gateway = stocked(Some(key()));
    for version in ["1.0.0", "2.0.0"] {
        let answer = intercepted(&gateway, &KEYED, &intercept("look", version, 0)).await;
        assert_eq!(answer["results"][0]["content"], "{\"paid\":5}", "{answer}");
    }
    assert_eq!(gateway.api.executions().len(), 1);
}

#[tokio::test]
async fn a_router_cannot_say_how_a_skill_may_be_called() {
    let gateway = stocked(Some(key()));
    // `pay` is hybrid, and this offer says nothing of it.
    let answer = intercepted(&gateway, &[], &intercept("pay", "1.0.0", 0)).await;
    let message = &answer["answer"]["choices"][0]["message"];
    assert_eq!((&message["tool_calls"], &answer["results"]), (&calls(&["pay"]), &json!([])));
    assert!(message["content"].as_str().unwrap().contains("The skill pay waits"), "{message}");
    gateway.offer("team", "pay", "manual");
    assert_eq!(reason(&intercepted(&gateway, &[], &intercept("pay", "1.0.0", 0)).await), "ManualOnly");
    assert_eq!(gateway.created(), 0);
}

#[tokio::test]
async fn a_session_that_no_execution_can_carry_is_refused_and_nothing_is_asked() {
    let gateway = stocked(Some(key()));
    let long = "x".repeat(257);
    for (path, body) in [(CHAT, asking()), ("/v1/intercept", intercept("look", "1.0.0", 0))] {
        let answer = gateway
            .send("POST", path, Some(AGENT), &[("x-skillet-session", &long)], &body.to_string())
            .await
            .text;
        assert!(answer.contains("BadRequest") && answer.contains("x-skillet-session"), "{answer}");
    }
    assert_eq!((gateway.provider.texts().len(), gateway.created()), (0, 0));
    intercepted(&gateway, &[("x-skillet-session", "café")], &intercept("look", "1.0.0", 0)).await;
    assert_eq!(gateway.api.executions()[0]["spec"]["sessionId"], "café");
}

#[tokio::test]
async fn rights_that_could_not_be_asked_for_are_no_refusal() {
    let gateway = stocked(Some(key()));
    gateway.provider.will_say(&saying("hello"));
    gateway.post(CHAT, &asking()).await;
    gateway.api.fail_reviews(true);
    gateway.provider.will_say(&calling(&["look"]));
    gateway.provider.will_say(&saying("done"));
    gateway.post(CHAT, &asking()).await;
    let result = gateway.provider.last_request()["messages"][2]["content"].to_string();
    assert!(result.contains("ApiError"), "{result}");
}

/// Two rounds of calls of `look`, which becomes `invocation` while it runs for the first.
async fn changed_under_way(invocation: &str, is_streaming: bool) -> (Arc<TestGateway>, String) {
    let gateway = Arc::new(stocked(Some(key())));
    let status = |phase: &str| json!({"phase": phase, "reason": phase, "attempts": 1, "truncated": false, "output": 1});
    gateway.api.set_status_on_create(status("Running"));
    for _ in 0..2 {
        if is_streaming {
            let delta = json!({"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": calls(&["look"])}, "finish_reason": "tool_calls"}]});
            gateway.provider.will_write("text/event-stream", format!("data: {delta}\n\ndata: [DONE]\n\n"));
        } else {
            gateway.provider.will_say(&calling(&["look"]));
        }
    }
    gateway.provider.will_say(&saying("done"));
    let mut request = asking();
    request["stream"] = json!(is_streaming);
    let asked = gateway.clone();
    let answer = tokio::spawn(async move { asked.post(CHAT, &request).await.text });
    eventually("it runs", || !gateway.api.executions().is_empty()).await;
    gateway.offer("team", "look", invocation);
    let name = gateway.api.executions()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    gateway.api.set_status("team", &name, status("Succeeded"));
    let answer = answer.await.unwrap();
    assert_eq!(gateway.created(), 1);
    (gateway, answer)
}

#[tokio::test]
async fn a_skill_that_models_may_not_call_any_more_is_not_run_in_a_later_round() {
    for is_streaming in [false, true] {
        let (gateway, _) = changed_under_way("manual", is_streaming).await;
        let result = gateway.provider.last_request()["messages"][4]["content"].to_string();
        assert!(result.contains("ManualOnly"), "{result}");
    }
}

#[tokio::test]
async fn a_skill_that_waits_for_a_person_by_now_is_not_run_in_a_later_round() {
    let (gateway, answer) = changed_under_way("hybrid", false).await;
    assert!(answer.contains("The skill look waits") && answer.contains("tool_calls"), "{answer}");
    assert_eq!(gateway.provider.texts().len(), 2);
    let (gateway, _) = changed_under_way("hybrid", true).await;
    let result = gateway.provider.last_request()["messages"][4]["content"].to_string();
    assert!(result.contains("NotConfirmed"), "{result}");
}

#[test]
fn a_call_that_is_not_made_is_answered_too() {
    let call = ToolCall { id: "c".into(), name: "a".into(), arguments: Arguments::Json(Value::Null) };
    let result = refusal(&call, "LimitReached", "no more");
    assert!(result.is_error && result.content.contains("\"LimitReached\""));
    assert_eq!((result.id, result.name), ("c".into(), "a".into()));
}

#[tokio::test]
async fn a_slow_call_keeps_one_place_and_no_other() {
    let (last, waits_for_last) = oneshot::channel();
    let ok = |number: u8| futures::future::ready(Ok::<_, u8>(number)).boxed();
    let slow = async { waits_for_last.await.map_err(|_| 0) };
    let ends = async { last.send(1).map(|()| 3) };
    assert_eq!(run_parallel(2, vec![slow.boxed(), ok(2), ends.boxed()]).await, Ok(vec![1, 2, 3]));
    let never = futures::future::pending().boxed();
    let failing = futures::future::ready(Err(7)).boxed();
    assert_eq!(run_parallel(2, vec![never, failing, ok(2)]).await, Err(7), "nothing is waited for any more");
}

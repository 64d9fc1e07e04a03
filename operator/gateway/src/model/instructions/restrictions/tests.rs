//! Tools that instructions allow, through the whole gateway: refused, counted, and reported of a client's own tools.

use serde_json::json;
use skillet_api::gateway::AllowedTools;
use skillet_llm::DialectName::{self, Anthropic, OpenAiChat};

use super::*;
use crate::testing::{
    AGENT, TestGateway, TestResponse,
    scripts::{CHAT, asking, response, will_say},
};

/// A gateway with a skill that restricts tools, a skill that runs, and one with a script.
fn restricted(mode: AllowedTools, rules: &Value) -> TestGateway {
    let gateway = TestGateway::new();
    gateway.api.set_status_on_create(json!({ "phase": "Succeeded", "reason": "Succeeded", "attempts": 1,
        "truncated": false, "exitCode": 0, "output": { "n": 1 } }));
    let mut instructions = json!({ "body": "Read the log.", "triggers": { "keywords": ["release"] } });
    instructions.as_object_mut().unwrap().extend(rules.as_object().unwrap().clone());
    let script = json!([{ "path": "a.sh", "content": "ls" }]);
    gateway.skill("team", "notes", &json!({ "run": null, "instructions": instructions, "files": script }));
    gateway.skill("team", "other", &json!({ "run": null, "instructions": {}, "files": script }));
    gateway.offer("team", "count", "auto");
    gateway.change_policy(|policy| policy.gateway.conversation.allowed_tools = mode);
    gateway
}

/// Returns the reason of the result of a call that a router intercepts, or an empty text.
async fn reason(gateway: &TestGateway, text: &str, tool: &str, input: &Value) -> String {
    let answer: Value = serde_json::from_str(&response(OpenAiChat, Some((tool, input)), false)).unwrap();
    let body = json!({ "dialect": "openai-chat", "request": asking(OpenAiChat, text, false).1, "answer": answer,
        "offered": { "count": { "namespace": "team", "skill": "count", "version": "1.0.0" },
            "skill": { "instructions": "Read" }, "run_skill_script": { "instructions": "RunScript" } } });
    let answer = gateway.send("POST", "/v1/intercept", Some(AGENT), &[], &body.to_string()).await.json();
    let result: Value =
        serde_json::from_str(answer["results"][0]["content"].as_str().unwrap_or("null")).unwrap();
    result["error"]["reason"].as_str().unwrap_or_default().to_owned()
}

/// Returns true if the gateway's metrics have this line.
fn counted(gateway: &TestGateway, decision: &str, count: usize) -> bool {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &gateway.model.metrics.registry()).unwrap();
    let line = format!("skillet_gateway_disallowed_calls_total{{decision=\"{decision}\"}} {count}\n");
    text.contains(&line)
}

#[tokio::test]
async fn a_call_outside_the_list_of_an_active_skill_is_refused() {
    let own = json!({ "name": "notes", "path": "a.sh" });
    let other = json!({ "name": "other", "path": "a.sh" });
    let read = json!({ "name": "other" });
    let (allowed, denied) = ("allowedTools", "deniedTools");
    let marked = skillet_instructions::block::marker("notes", "1.0.0");
    for (rules, text, tool, input, expected) in [
        (json!({ allowed: ["Read"] }), "a release", "count", json!({}), "ToolNotAllowed"),
        (json!({ allowed: ["Read"] }), marked.as_str(), "count", json!({}), "ToolNotAllowed"),
        (json!({ allowed: ["Read"] }), "/notes", "count", json!({}), "ToolNotAllowed"),
        (json!({ allowed: ["Read"] }), "other words", "count", json!({}), ""),
        (json!({ allowed: ["Read, count"] }), "a release", "count", json!({}), ""),
        (json!({ allowed: ["Skill(count)"] }), "a release", "count", json!({}), ""),
        (json!({ denied: ["count"] }), "a release", "count", json!({}), "ToolNotAllowed"),
        (json!({ denied: ["Bash"] }), "a release", "count", json!({}), ""),
        (json!({ allowed: ["Read"], "activation": "Always" }), "x", "count", json!({}), "ToolNotAllowed"),
        (json!({ allowed: ["Read"] }), "a release", "run_skill_script", own.clone(), ""),
        (json!({ denied: ["run_skill_script"] }), "a release", "run_skill_script", own, "ToolNotAllowed"),
        (json!({ allowed: ["Read"] }), "a release", "run_skill_script", other.clone(), "ToolNotAllowed"),
        (json!({ allowed: ["run_skill_script"] }), "a release", "run_skill_script", other, ""),
        (json!({ allowed: ["Read"] }), "a release", "skill", read, ""),
    ] {
        let gateway = restricted(AllowedTools::Enforce, &rules);
        assert_eq!(reason(&gateway, text, tool, &input).await, expected, "{rules} {text} {tool} {input}");
        let is_refused = !expected.is_empty();
        assert_eq!(gateway.created(), usize::from(!is_refused && tool != "skill"), "{rules} {text}");
        assert_eq!(counted(&gateway, "refused", 1), is_refused, "{rules} {text}");
    }
    let advised = restricted(AllowedTools::Advise, &json!({ allowed: ["Read"] }));
    assert_eq!(reason(&advised, "a release", "count", &json!({})).await, "");
    assert!(advised.created() == 1 && counted(&advised, "reported", 1));
}

#[tokio::test]
async fn a_skill_that_the_model_has_read_restricts_the_rounds_after_it() {
    for dialect in DialectName::ALL {
        let gateway = restricted(AllowedTools::Enforce, &json!({ "allowedTools": ["Read"] }));
        will_say(&gateway, dialect, Some(("skill", &json!({ "name": "notes" }))), true);
        will_say(&gateway, dialect, Some(("count", &json!({}))), true);
        will_say(&gateway, dialect, None, true);
        let (path, request) = asking(dialect, "hi", true);
        let answer = gateway.post(&path, &request).await;
        assert!(answer.text.contains("all done"), "{dialect:?} {}", answer.text);
        let last = gateway.provider.texts().pop().unwrap();
        assert!(
            last.contains("the instructions of skill notes allow Read alone; count was not run"),
            "{last}"
        );
        assert_eq!(gateway.created(), 0, "{dialect:?}");
    }
}

/// A request in which the client's shell tool has run a command, after the skill was triggered.
fn with_command(arguments: &Value) -> Value {
    let function = json!({ "name": "Bash", "arguments": arguments.to_string() });
    json!({ "model": "m", "tools": [{ "type": "function", "function": { "name": "Bash", "parameters": {} } }],
        "messages": [{ "role": "user", "content": "a release" },
            { "role": "assistant", "tool_calls": [{ "id": "c", "type": "function", "function": function }] },
            { "role": "tool", "tool_call_id": "c", "content": "done" }] })
}

#[tokio::test]
async fn a_clients_own_call_outside_the_list_is_reported_and_counted() {
    let header = |answer: &TestResponse| answer.headers.get("x-skillet-disallowed").cloned();
    for (arguments, is_reported) in [
        (json!({ "command": "git log" }), false),
        (json!({ "command": "git log; rm x" }), true),
        (json!({ "cmd": ["bash", "-lc", "git log"] }), false),
        (json!({ "cmd": ["rm", "x"] }), true),
        (json!({}), true),
    ] {
        let gateway = restricted(AllowedTools::Enforce, &json!({ "allowedTools": ["Bash(git:*)"] }));
        let request = with_command(&arguments);
        let answer = gateway.post(CHAT, &request).await;
        assert_eq!(header(&answer).is_some_and(|names| names == "Bash"), is_reported, "{arguments}");
        assert_eq!(counted(&gateway, "reported", 1), is_reported, "{arguments}");
        let body = json!({ "dialect": "openai-chat", "request": request });
        let explained = gateway.post("/v1/explain", &body).await.json();
        let skills = explained["instructions"].as_array().unwrap();
        let of = |name: &str| skills.iter().find(|skill| skill["name"] == name).unwrap()["tools"].clone();
        let disallowed = of("notes")["disallowed"].take();
        assert_eq!((of("notes")["active"].take(), of("other")), (json!(true), Value::Null));
        assert_eq!(disallowed, if is_reported { json!(["Bash"]) } else { Value::Null }, "{arguments}");
    }
    let gateway = restricted(AllowedTools::Enforce, &json!({ "allowedTools": ["Read"] }));
    let (path, mut request) = asking(Anthropic, "hi", false);
    request["tools"] = json!([{ "name": "Bash", "input_schema": {} }]);
    let called = json!({ "type": "tool_use", "id": "t", "name": "Bash", "input": { "command": "ls" } });
    request["messages"] = json!([{ "role": "user", "content": "hi" }, { "role": "assistant", "content": [called] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t", "content": "x" }] }]);
    assert_eq!(header(&gateway.post(&path, &request).await), None, "the skill is not active");
}

//! Tools of MCP servers through the whole gateway: when a model gets them, what a call runs, and what gains nothing.

use serde_json::{Value, json};
use skillet_llm::{
    DialectName::{self, OpenAiChat},
    confirmation::ConfirmationKey,
};

use crate::testing::{
    AGENT, TestGateway, TestResponse,
    scripts::{CHAT, asking, will_say},
};

const TOOL: &str = "mcp__notes__add";

/// A gateway with the skill `helper`, whose server `notes` has the tool `add`. Every call of it is answered.
fn serving(spec: &Value) -> TestGateway {
    let gateway = TestGateway::with_confirmation(Some(ConfirmationKey::new(&[9; 32]).unwrap()));
    answer(&gateway, &json!({ "content": [{ "type": "text", "text": "noted" }] }), true);
    let mut helper = json!({ "run": null, "description": "Helps.", "instructions": { "body": "Use the notes.",
        "mcpServers": { "notes": { "command": "python3", "args": ["server.py"] } } } });
    for (field, value) in spec.as_object().unwrap() {
        if field == "activation" {
            helper["instructions"][field] = value.clone();
        } else {
            helper[field] = value.clone();
        }
    }
    gateway.skill("team", "helper", &helper);
    gateway
}

/// Ends calls with this result, and lists of tools with `add`, or with a failure.
fn answer(gateway: &TestGateway, result: &Value, lists: bool) {
    let result = result.clone();
    gateway.api.answer_on_create(move |execution| {
        let call = execution["spec"].get("mcpCall")?;
        let is_error = result["isError"] == true;
        let (phase, reason) = if is_error { ("Failed", "ToolFailed") } else { ("Succeeded", "Succeeded") };
        let ended = |output: &Value| {
            json!({ "phase": phase, "reason": reason, "attempts": 1, "truncated": false, "message": "m", "output": output })
        };
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        let tools = json!({ "tools": [{ "name": "add", "description": "Adds a note.", "inputSchema": schema }] });
        Some(match (call.get("tool"), lists) {
            (Some(_), _) => ended(&result),
            (None, true) => ended(&tools),
            (None, false) => json!({ "phase": "Failed", "reason": "McpError", "message": "no", "attempts": 1, "truncated": false }),
        })
    });
}

/// The executions of a kind: sessions, lists of tools and calls.
fn made(gateway: &TestGateway) -> (Vec<Value>, Vec<Value>, Vec<Value>) {
    let (sessions, others): (Vec<Value>, Vec<Value>) =
        gateway.api.executions().into_iter().partition(|made| made["spec"].get("mcpServer").is_some());
    let (calls, lists) = others.into_iter().partition(|made| made["spec"]["mcpCall"].get("tool").is_some());
    (sessions, lists, calls)
}

async fn ask(gateway: &TestGateway, dialect: DialectName, is_streaming: bool) -> TestResponse {
    let (path, request) = asking(dialect, "note this", is_streaming);
    let answer = gateway.post(&path, &request).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer
}

#[tokio::test]
async fn an_active_skill_gives_the_tools_of_its_servers_and_their_results_in_each_dialect() {
    for dialect in DialectName::ALL {
        for is_streaming in [false, true] {
            let gateway = serving(&json!({ "activation": "Always" }));
            will_say(&gateway, dialect, Some((TOOL, &json!({ "text": "x" }))), is_streaming);
            will_say(&gateway, dialect, None, is_streaming);
            let answer = ask(&gateway, dialect, is_streaming).await;
            assert!(answer.header("x-skillet-offered").contains(TOOL));
            let sent = gateway.provider.texts();
            let [first, second] = &sent[..] else { panic!("{sent:?}") };
            assert!(first.contains("Adds a note.") && first.contains(TOOL), "{first}");
            assert!(second.contains("noted") && second.contains(TOOL), "{second}");
            let (sessions, lists, calls) = made(&gateway);
            assert_eq!((sessions.len(), lists.len(), calls.len()), (1, 1, 1), "{dialect:?}");
            let (session, spec) = (&sessions[0], &calls[0]["spec"]);
            assert_eq!(
                (&session["spec"]["mcpServer"], &session["spec"]["version"]),
                (&json!("notes"), &json!("1.0.0"))
            );
            assert_eq!(spec["mcpCall"], json!({ "session": session["metadata"]["name"], "tool": "add" }));
            assert_eq!(
                (&spec["input"], &spec["caller"]),
                (&json!({ "text": "x" }), &session["spec"]["caller"])
            );
        }
    }
}

#[tokio::test]
async fn a_skill_that_the_model_reads_gives_its_tools_in_the_next_round() {
    for dialect in DialectName::ALL {
        for is_streaming in [false, true] {
            let gateway = serving(&json!({}));
            will_say(&gateway, dialect, Some(("skill", &json!({ "name": "helper" }))), is_streaming);
            will_say(&gateway, dialect, Some((TOOL, &json!({ "text": "x" }))), is_streaming);
            will_say(&gateway, dialect, None, is_streaming);
            ask(&gateway, dialect, is_streaming).await;
            let sent = gateway.provider.texts();
            let [first, second, third] = &sent[..] else { panic!("{dialect:?} {is_streaming} {sent:?}") };
            assert!(!first.contains(TOOL) && second.contains("Adds a note."), "{second}");
            assert!(third.contains("noted"), "{third}");
            assert_eq!(third.matches("Adds a note.").count(), 1);
            assert_eq!(made(&gateway).2.len(), 1);
        }
    }
}

#[tokio::test]
async fn a_conversation_keeps_its_session_and_another_has_its_own() {
    let gateway = serving(&json!({}));
    will_say(&gateway, OpenAiChat, Some(("skill", &json!({ "name": "helper" }))), false);
    will_say(&gateway, OpenAiChat, Some((TOOL, &json!({ "text": "x" }))), false);
    will_say(&gateway, OpenAiChat, None, false);
    let answer = ask(&gateway, OpenAiChat, false).await.json();
    let messages = json!([{ "role": "user", "content": "note this" }, answer["choices"][0]["message"],
        { "role": "user", "content": "and this" }]);
    will_say(&gateway, OpenAiChat, Some((TOOL, &json!({ "text": "y" }))), false);
    will_say(&gateway, OpenAiChat, None, false);
    let next = gateway.post(CHAT, &json!({ "model": "m", "messages": messages })).await;
    assert!(next.header("x-skillet-offered").contains(TOOL), "the skill was read before");
    let (sessions, lists, calls) = made(&gateway);
    assert_eq!((sessions.len(), lists.len(), calls.len()), (1, 1, 2));

    will_say(&gateway, OpenAiChat, Some(("skill", &json!({ "name": "helper" }))), false);
    will_say(&gateway, OpenAiChat, Some((TOOL, &json!({ "text": "z" }))), false);
    will_say(&gateway, OpenAiChat, None, false);
    ask(&gateway, OpenAiChat, false).await;
    let (sessions, lists, calls) = made(&gateway);
    assert_eq!((sessions.len(), lists.len(), calls.len()), (2, 1, 3), "the list of tools is known");

    for _ in 0..2 {
        will_say(&gateway, OpenAiChat, Some(("skill", &json!({ "name": "helper" }))), false);
        will_say(&gateway, OpenAiChat, Some((TOOL, &json!({ "text": "z" }))), false);
        will_say(&gateway, OpenAiChat, None, false);
        let (path, request) = asking(OpenAiChat, "note", false);
        gateway
            .send("POST", &path, Some(AGENT), &[("x-skillet-session", "mine")], &request.to_string())
            .await;
    }
    assert_eq!(made(&gateway).0.len(), 3, "a client that names its conversation keeps its session");
}

#[tokio::test]
async fn a_session_that_has_ended_gets_a_successor() {
    let gateway = serving(&json!({ "activation": "Always" }));
    let request = asking(OpenAiChat, "note", false).1.to_string();
    let send = async || {
        will_say(&gateway, OpenAiChat, Some((TOOL, &json!({ "text": "x" }))), false);
        will_say(&gateway, OpenAiChat, None, false);
        gateway.send("POST", CHAT, Some(AGENT), &[("x-skillet-session", "mine")], &request).await;
    };
    send().await;
    let name = made(&gateway).0[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let ended = json!({ "phase": "Succeeded", "reason": "Succeeded", "attempts": 1, "truncated": false });
    gateway.api.set_status("team", &name, ended);
    send().await;
    let (sessions, _, calls) = made(&gateway);
    assert_eq!((sessions.len(), calls.len()), (2, 2));
    let of = |call: &Value| call["spec"]["mcpCall"]["session"].clone();
    assert_ne!(of(&calls[0]), of(&calls[1]));
}

#[tokio::test]
async fn what_a_server_says_of_a_failure_reaches_the_model() {
    let gateway = serving(&json!({ "activation": "Always" }));
    answer(&gateway, &json!({ "content": [{ "type": "text", "text": "disk full" }], "isError": true }), true);
    // Lists fail here too, so the tool comes from a list that was read before.
    answer(&gateway, &json!({ "content": [{ "type": "text", "text": "noted" }] }), true);
    will_say(&gateway, OpenAiChat, None, false);
    ask(&gateway, OpenAiChat, false).await;
    answer(&gateway, &json!({ "content": [{ "type": "text", "text": "disk full" }], "isError": true }), true);
    will_say(&gateway, OpenAiChat, Some((TOOL, &json!({ "text": "x" }))), false);
    will_say(&gateway, OpenAiChat, None, false);
    ask(&gateway, OpenAiChat, false).await;
    assert!(gateway.provider.last_request().to_string().contains("disk full"));
}

#[tokio::test]
async fn a_server_that_lists_nothing_breaks_no_request_and_is_left_alone_for_a_while() {
    let gateway = serving(&json!({ "activation": "Always" }));
    answer(&gateway, &json!({}), false);
    for _ in 0..2 {
        will_say(&gateway, OpenAiChat, None, false);
        let answer = ask(&gateway, OpenAiChat, false).await;
        assert!(!answer.header("x-skillet-offered").contains(TOOL));
        assert!(gateway.provider.last_request().to_string().contains("Use the notes."));
    }
    assert_eq!(made(&gateway).1.len(), 1);
}

#[tokio::test]
async fn a_hybrid_skill_and_a_skill_that_is_not_read_start_no_server() {
    for spec in [
        json!({ "activation": "Always", "invocation": "hybrid" }),
        json!({}),
        json!({ "activation": "Triggered" }),
    ] {
        let gateway = serving(&spec);
        will_say(&gateway, OpenAiChat, None, false);
        ask(&gateway, OpenAiChat, false).await;
        assert!(gateway.api.executions().is_empty(), "{spec}");
    }
}

#[tokio::test]
async fn a_clients_tool_keeps_its_name_and_calls() {
    let gateway = serving(&json!({ "activation": "Always" }));
    will_say(&gateway, OpenAiChat, Some((TOOL, &json!({}))), false);
    let own =
        json!([{ "type": "function", "function": { "name": TOOL, "parameters": { "type": "object" } } }]);
    let messages = json!([{ "role": "user", "content": "x" }]);
    let answer = gateway.post(CHAT, &json!({ "model": "m", "tools": own, "messages": messages })).await;
    assert!(answer.text.contains(TOOL), "the client gets its call: {}", answer.text);
    let sent = gateway.provider.last_request();
    let names: Vec<&str> = sent["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    let ours = names.iter().find(|name| name.starts_with("mcp__notes__add_")).unwrap();
    assert_eq!(answer.header("x-skillet-offered").split(", ").filter(|name| name == ours).count(), 1);
    assert!(made(&gateway).2.is_empty());
}

#[tokio::test]
async fn a_router_gets_the_tools_and_intercept_runs_their_calls() {
    let gateway = serving(&json!({ "activation": "Always" }));
    let request = json!({ "model": "m", "messages": [{ "role": "user", "content": "x" }] });
    let injected =
        gateway.post("/v1/inject", &json!({ "dialect": "openai-chat", "request": request })).await.json();
    let offered = &injected["offered"];
    assert_eq!((&offered[TOOL]["skill"], &offered[TOOL]["mcpTool"]), (&json!("helper"), &json!("add")));
    let call = json!({ "id": "c", "type": "function", "function": { "name": TOOL, "arguments": "{\"text\":\"x\"}" } });
    let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let answer =
        json!({ "id": "r", "choices": [{ "index": 0, "message": message, "finish_reason": "tool_calls" }] });
    let body = json!({ "dialect": "openai-chat", "request": injected["request"], "answer": answer, "offered": offered });
    let next = gateway.post("/v1/intercept", &body).await;
    assert!(next.text.contains("noted"), "{}", next.text);
    let mut partial = body.clone();
    partial["offered"][TOOL].as_object_mut().unwrap().remove("mcpSession");
    assert_eq!(gateway.post("/v1/intercept", &partial).await.status, 400);
}

#[tokio::test]
async fn a_dry_run_starts_no_server_and_shows_the_tools_that_are_known() {
    let gateway = serving(&json!({ "activation": "Always" }));
    let (_, request) = asking(OpenAiChat, "note this", false);
    let dry = async || {
        let header = [("x-skillet-dry-run", "true")];
        gateway.send("POST", CHAT, Some(AGENT), &header, &request.to_string()).await.text
    };
    assert!(!dry().await.contains(TOOL));
    assert!(gateway.api.executions().is_empty());
    will_say(&gateway, OpenAiChat, None, false);
    ask(&gateway, OpenAiChat, false).await;
    let made = gateway.api.executions().len();
    assert!(dry().await.contains(TOOL));
    assert_eq!(gateway.api.executions().len(), made);
}

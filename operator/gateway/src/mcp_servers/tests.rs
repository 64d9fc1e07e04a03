//! Sessions over a fake API server: each has one name, and what it serves is its caller's alone.

use serde_json::{Value, json};

use super::*;
use crate::testing::TestGateway;

fn server(name: &str) -> SkillServer {
    SkillServer {
        namespace: "team".into(),
        skill: "s".into(),
        version: "1.0.0".into(),
        seal: 1,
        name: name.into(),
    }
}

#[tokio::test]
async fn a_list_is_the_callers_own_and_a_failure_takes_no_lists_place() {
    let gateway = TestGateway::new();
    gateway.api.answer_on_create(|made| made["spec"].get("mcpCall").map(|_| ended("Succeeded", 1)));
    assert_eq!(list(&gateway, "team/agent", "c", &[server("one")]).await, [2]);
    gateway.api.answer_on_create(|made| made["spec"].get("mcpCall").map(|_| ended("McpError", 1)));
    assert_eq!(list(&gateway, "other/agent", "c", &[server("one")]).await, [0]);
    assert_eq!(list(&gateway, "team/agent", "d", &[server("one")]).await, [2]);
    let failed = Listed { tools: Arc::default(), until: Some(Instant::now()) };
    let servers = &gateway.model.mcp_servers;
    lock(&servers.lists).put(&"team".into(), &server("one"), failed);
    assert_eq!(list(&gateway, "team/agent", "d", &[server("one")]).await, [2]);
}

#[tokio::test]
async fn a_replica_that_knows_nothing_finds_the_newest_session() {
    let gateway = TestGateway::new();
    gateway.api.answer_on_create(|made| made["spec"].get("mcpCall").map(|_| ended("SessionEnded", 1)));
    let caller = TestGateway::caller("team/agent");
    let order = ExecutionRequest {
        version: Some("1.0.0".into()),
        mcp: Some(McpPart::Call(McpCall::default())),
        ..ExecutionRequest::new(caller, "team", "s")
    };
    let servers = &gateway.model.mcp_servers;
    let first = servers.session(&order, "c", "one").await.unwrap();
    let status = json!({ "phase": "Succeeded", "attempts": 1, "truncated": false });
    gateway.api.set_status("team", &first.metadata.name, status);
    let second = servers.session(&order, "c", "one").await.unwrap();
    assert_ne!(first.metadata.name, second.metadata.name);
    let name = &first.metadata.name;
    gateway.api.delete(&format!("/apis/skillet.dev/v1alpha1/namespaces/team/skillexecutions/{name}"));
    lock(&servers.newest).clear();
    let found = servers.session(&order, "c", "one").await.unwrap();
    assert_eq!(found.metadata.name, second.metadata.name);
}

async fn list(gateway: &TestGateway, account: &str, session: &str, servers: &[SkillServer]) -> Vec<usize> {
    let caller = TestGateway::caller(account);
    let caller = SessionCaller { caller: &caller, session, request_id: None };
    let deadline = Instant::now() + Duration::from_secs(60);
    let lists = gateway.model.mcp_servers.list_all(caller, servers, deadline).await;
    lists.iter().map(|tools| tools.len()).collect()
}

fn sessions(gateway: &TestGateway) -> Vec<String> {
    let sessions =
        gateway.api.executions().into_iter().filter(|made| made["spec"].get("mcpServer").is_some());
    sessions.map(|made| made["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn ended(reason: &str, attempts: u32) -> Value {
    let phase = if reason == "Succeeded" { "Succeeded" } else { "Failed" };
    json!({ "phase": phase, "reason": reason, "attempts": attempts, "truncated": false, "message": reason,
        "output": { "tools": [{ "name": "a" }, { "name": "b" }] } })
}

#[tokio::test]
async fn each_caller_conversation_and_server_has_a_session() {
    let gateway = TestGateway::new();
    gateway.api.answer_on_create(|made| made["spec"].get("mcpCall").map(|_| ended("Succeeded", 1)));
    let (one, two) = (server("one"), server("two"));
    assert_eq!(list(&gateway, "team/agent", "c", &[one.clone(), two.clone()]).await, [2, 2]);
    assert_eq!(sessions(&gateway).len(), 2);
    assert_eq!(list(&gateway, "team/agent", "other", std::slice::from_ref(&one)).await, [2], "known");
    assert_eq!(sessions(&gateway).len(), 2);
    let newer = SkillServer { seal: 2, ..one };
    assert_eq!(list(&gateway, "team/other", "c", &[newer]).await, [2]);
    assert_eq!(sessions(&gateway).len(), 3);
    assert!(sessions(&gateway).iter().all(|name| name.starts_with("session-")));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_no_server_got_is_made_again_a_few_times_and_then_says_why() {
    let gateway = TestGateway::new();
    gateway.api.answer_on_create(|made| {
        Some(if made["spec"].get("mcpCall").is_some() {
            ended("SessionEnded", 0)
        } else {
            json!({ "phase": "Pending" })
        })
    });
    assert_eq!(list(&gateway, "team/agent", "c", &[server("one")]).await, [0]);
    let calls = gateway.api.executions().len() - sessions(&gateway).len();
    assert_eq!((calls, sessions(&gateway).len()), (3, 1));
}

#[tokio::test]
async fn a_call_that_a_server_may_have_got_is_not_made_again() {
    let gateway = TestGateway::new();
    gateway.api.answer_on_create(|made| made["spec"].get("mcpCall").map(|_| ended("SessionEnded", 1)));
    assert_eq!(list(&gateway, "team/agent", "c", &[server("one")]).await, [0]);
    assert_eq!(gateway.api.executions().len(), 2);
}

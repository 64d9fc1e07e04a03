//! Tools in `tools/list`, by caller.

use rmcp::model::PaginatedRequestParams;
use serde_json::{Value, json};

use super::*;

const MANAGEMENT: usize = 4;

#[tokio::test]
async fn each_skill_is_a_tool_with_description_schemas_and_hints() {
    let server = McpServer::start().await;
    let tool = json!({
        "inputSchema": { "a": "number", "b": { "type": "number", "required": true } },
        "outputSchema": { "type": "object", "properties": { "sum": { "type": "number" } } },
    });
    server.gateway.skill("a", "sum", &json!({ "tool": tool }));
    server.gateway.skill(
        "a",
        "ask",
        &json!({ "invocation": "hybrid", "tool": { "outputSchema": { "type": "array" } } }),
    );
    let client = server.client("a/agent").await;
    let tools = client.tools().await;
    let sum = serde_json::to_value(&tools["sum"]).unwrap();
    assert_eq!((&sum["description"], &sum["title"]), (&json!("sum of a"), &json!("sum")));
    assert_eq!(sum["inputSchema"]["properties"]["a"], json!({ "type": "number" }));
    assert_eq!(sum["inputSchema"]["required"], json!(["b"]));
    assert_eq!(sum["outputSchema"], tool["outputSchema"]);
    assert_eq!(
        sum["annotations"],
        json!({ "readOnlyHint": true, "destructiveHint": false, "openWorldHint": false })
    );
    let ask = serde_json::to_value(&tools["ask"]).unwrap();
    assert_eq!(ask["inputSchema"], json!({ "type": "object", "properties": {} }));
    assert_eq!(ask["outputSchema"], Value::Null, "only objects are structured content everywhere");
    assert_eq!(ask["annotations"]["destructiveHint"], true, "a person is to be asked");
}

#[tokio::test]
async fn only_what_a_model_may_run_now_is_listed() {
    let server = McpServer::start().await;
    for (name, change) in [
        ("always", json!({ "mode": "on" })),
        ("sometimes", json!({ "mode": "auto" })),
        ("asks", json!({ "invocation": "hybrid" })),
        ("off", json!({ "mode": "off" })),
        ("disabled", json!({ "enabled": false })),
        ("manual", json!({ "invocation": "manual" })),
    ] {
        server.gateway.skill("a", name, &change);
    }
    server.gateway.skill("a", "unsealed", &json!({}));
    server.unseal("a", "unsealed");
    let tools = server.client("a/agent").await.tools().await;
    let mut names: Vec<&str> =
        tools.keys().map(String::as_str).filter(|name| !name.starts_with("skillet_")).collect();
    names.sort_unstable();
    assert_eq!(names, ["always", "asks", "sometimes"]);
    assert_eq!(tools.len(), names.len() + MANAGEMENT);
}

#[tokio::test]
async fn a_nearer_skill_hides_a_farther_one_even_where_it_cannot_run() {
    let server = McpServer::start().await;
    server.gateway.skill("platform", "sum", &json!({}));
    server.gateway.skill("platform", "other", &json!({}));
    server.gateway.skill("a", "sum", &json!({}));
    server.gateway.skill("a", "other", &json!({ "mode": "off" }));
    let of_a = server.client("a/agent").await.tools().await;
    assert_eq!(of_a["sum"].description.as_deref(), Some("sum of a"));
    assert!(!of_a.contains_key("other"));
    let of_b = server.client("b/agent").await.tools().await;
    assert_eq!(of_b["sum"].description.as_deref(), Some("sum of platform"));
    assert!(of_b.contains_key("other"));
}

#[tokio::test]
async fn a_namespace_whose_skills_the_caller_may_not_run_shows_nothing_and_hides_nothing() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    server.gateway.skill("platform", "sum", &json!({}));
    for verb in [Verb::Get, Verb::Execute] {
        server.gateway.deny_user("agent", "a", None, verb);
        let tools = server.client("a/agent").await.tools().await;
        assert_eq!(tools["sum"].description.as_deref(), Some("sum of platform"), "{verb:?}");
    }
    server.gateway.deny_user("agent", "platform", None, Verb::Execute);
    assert_eq!(server.client("a/agent").await.tools().await.len(), MANAGEMENT);
}

#[tokio::test]
async fn names_are_legal_everywhere_and_never_those_of_the_management_tools() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "3d-print", &json!({}));
    server.gateway.skill("a", "skillet_executions", &json!({}));
    let tools = server.client("a/agent").await.tools().await;
    assert!(tools.contains_key("_3d-print"), "{:?}", tools.keys());
    assert_eq!(tools.len(), MANAGEMENT + 2);
    assert_ne!(tools["skillet_executions"].description.as_deref(), Some("skillet_executions of a"));
}

#[tokio::test]
async fn a_long_list_comes_in_pages_that_a_change_between_them_does_not_shift() {
    let server = McpServer::start().await;
    for number in 0..250 {
        server.gateway.skill("a", &format!("skill-{number:03}"), &json!({}));
    }
    let client = server.client("a/agent").await;
    let mut names: Vec<String> = Vec::new();
    let mut sizes = Vec::new();
    let mut cursor = None;
    loop {
        let asked = PaginatedRequestParams::default().with_cursor(cursor);
        let page = client.service.list_tools(Some(asked)).await.unwrap();
        sizes.push(page.tools.len());
        names.extend(page.tools.iter().map(|tool| tool.name.to_string()));
        // Before the cursor: the next page still misses nothing that was there all the time.
        server.gateway.skill("a", &format!("early-{}", names.len()), &json!({}));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [100, 100, 54]);
    let skills: Vec<String> = (0..250).map(|number| format!("skill-{number:03}")).collect();
    assert_eq!(names[MANAGEMENT..], skills);
}

#[tokio::test]
async fn a_cursor_that_is_none_of_the_servers_is_refused() {
    let server = McpServer::start().await;
    let client = server.client("a/agent").await;
    let asked = PaginatedRequestParams::default().with_cursor(Some("%".to_owned()));
    let error = client.service.list_tools(Some(asked)).await.unwrap_err();
    assert!(error.to_string().contains("-32602"), "{error}");
}

#[tokio::test]
async fn a_cluster_that_cannot_be_asked_is_an_error_and_no_empty_list() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    server.gateway.api.fail_access_reviews();
    let client = server.client("a/agent").await;
    let error = client.service.list_tools(None).await.unwrap_err();
    assert!(error.to_string().contains("could not be asked"), "{error}");
    let error = client.service.call_tool(params("sum", json!({}))).await.unwrap_err();
    assert!(error.to_string().contains("could not be asked"), "{error}");
}

#[tokio::test]
async fn the_server_says_who_it_is() {
    let server = McpServer::start().await;
    let client = server.client("a/agent").await;
    let server = client.service.peer_info().unwrap();
    let server = serde_json::to_value(&*server).unwrap();
    assert_eq!(server["serverInfo"]["name"], "skillet");
    assert_eq!(server["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(server["capabilities"]["tools"]["listChanged"], true);
    assert!(server["instructions"].as_str().unwrap().contains("sandbox"));
}

#[tokio::test]
async fn a_client_without_sessions_has_the_same_list() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    let client = server.client_of("a/agent", without_sessions()).await;
    assert!(client.tools().await.contains_key("sum"));
    assert_eq!(client.call("skillet_skills_list", json!({})).await.is_error, Some(false));
}

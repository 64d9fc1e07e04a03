//! Calls that are repeated with their idempotency key, after whatever has ended them.

use rmcp::{
    model::{CallToolRequest, ClientRequest, NumberOrString, ProgressToken, RequestMetaObject},
    service::{PeerRequestOptions, RequestHandle},
};
use serde_json::json;

use super::*;

const DONE: &str = "Succeeded";

pub(super) fn keyed(tool: &str, arguments: Value) -> CallToolRequestParams {
    let mut meta = RequestMetaObject::with_progress_token(ProgressToken(NumberOrString::Number(7)));
    meta.0.0.insert("skillet.dev/idempotencyKey".to_owned(), json!("once"));
    let mut params = params(tool, arguments);
    params.meta = Some(meta);
    params
}

/// A call with the key whose run is waited for by so many.
async fn begun(server: &McpServer, client: &Client, waiting: usize) -> RequestHandle<RoleClient> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(keyed("slow", json!({}))));
    let options = PeerRequestOptions::no_options();
    let handle = client.service.send_cancellable_request(request, options).await.unwrap();
    until(|| server.started() == 1 && server.waiting(0) == waiting).await;
    handle
}

/// Repeats a call after its run has ended.
async fn retried(server: &McpServer, client: &Client) -> CallToolResult {
    let peer = client.service.peer().clone();
    let before = server.waiting(0);
    let retry = tokio::spawn(async move { peer.call_tool(keyed("slow", json!({}))).await.unwrap() });
    until(|| retry.is_finished() || server.waiting(0) > before).await;
    if !retry.is_finished() {
        server.set_status(0, &json!({ "phase": DONE, "output": { "sum": 3 } }));
    }
    retry.await.unwrap()
}

async fn stocked() -> McpServer {
    let server = McpServer::start().await;
    server.gateway.skill("a", "slow", &json!({}));
    server
}

#[tokio::test]
async fn a_lost_connection_leaves_a_run_with_a_key_to_the_retry() {
    for lifecycle in [ClientLifecycleMode::Initialize, without_sessions()] {
        let server = stocked().await;
        let lost = server.client_of("a/agent", lifecycle.clone()).await;
        let call = begun(&server, &lost, 1).await;
        match lifecycle {
            // A request without a session is ended by closing its connection.
            ClientLifecycleMode::Discover { .. } => call.cancel(None).await.unwrap(),
            // One of a session by the end of the session.
            _ => drop(tokio::spawn(lost.service.cancel())),
        }
        until(|| server.waiting(0) == 0).await;
        let client = server.client_of("a/agent", lifecycle).await;
        let result = retried(&server, &client).await;
        assert_eq!(result.structured_content, Some(json!({ "sum": 3 })), "{result:?}");
        assert!(server.name(0).starts_with("call-"), "the name is derived from the key");
        assert_eq!((server.started(), server.cancelled().len()), (1, 0));
    }
}

#[tokio::test]
async fn a_client_that_cancels_its_call_cancels_the_run_whatever_its_key() {
    let server = stocked().await;
    let client = server.client("a/agent").await;
    begun(&server, &client, 1).await.cancel(None).await.unwrap();
    until(|| !server.cancelled().is_empty()).await;
    server.set_status(0, &json!({ "phase": "Cancelled", "reason": "Cancelled" }));
    let result = retried(&server, &client).await;
    assert_eq!(text(&result)["reason"], "Cancelled");
}

#[tokio::test]
async fn a_cancellation_does_not_take_the_run_from_others_who_wait_for_it() {
    let server = stocked().await;
    let (first, second) = (server.client("a/agent").await, server.client("a/agent").await);
    let unwanted = begun(&server, &first, 1).await;
    let wanted = begun(&server, &second, 2).await;
    unwanted.cancel(None).await.unwrap();
    until(|| server.waiting(0) == 1).await;
    // The server has dealt with the cancellation before what the same session asks next.
    first.tools().await;
    server.set_status(0, &json!({ "phase": DONE, "output": { "sum": 3 } }));
    let answer = tokio::time::timeout(LIMIT, wanted.await_response()).await.expect("an answer").unwrap();
    let answer = serde_json::to_value(answer).unwrap();
    assert_eq!(answer["structuredContent"], json!({ "sum": 3 }));
    assert!(server.cancelled().is_empty());
}

#[tokio::test]
async fn a_key_finds_its_run_also_when_a_nearer_skill_or_a_newer_version_has_come() {
    let server = McpServer::start().await;
    server.gateway.skill("platform", "slow", &json!({}));
    let client = server.client("a/agent").await;
    drop(begun(&server, &client, 1).await);
    server.gateway.skill("platform", "slow", &json!({ "version": "1.0.1" }));
    server.gateway.skill("a", "slow", &json!({ "version": "2.0.0" }));
    let result = retried(&server, &server.client("a/agent").await).await;
    assert_eq!(result.structured_content, Some(json!({ "sum": 3 })), "{result:?}");
    assert_eq!(server.started(), 1, "the version is not the client's choice");
}

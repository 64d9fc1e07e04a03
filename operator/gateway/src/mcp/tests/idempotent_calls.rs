//! Calls that are repeated with their idempotency key, after whatever has ended them.

use rmcp::{
    model::{CallToolRequest, ClientRequest, NumberOrString, ProgressToken, RequestMetaObject},
    service::{PeerRequestOptions, RequestHandle},
};
use serde_json::json;

use super::*;

const DONE: &str = "Succeeded";

fn keyed(tool: &str) -> CallToolRequestParams {
    let mut meta = RequestMetaObject::with_progress_token(ProgressToken(NumberOrString::Number(7)));
    meta.0.0.insert("skillet.dev/idempotencyKey".to_owned(), json!("once"));
    let mut params = params(tool, json!({}));
    params.meta = Some(meta);
    params
}

/// A call with the key whose run is waited for by so many.
async fn begun(world: &World, client: &Client, waiting: usize) -> RequestHandle<RoleClient> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(keyed("slow")));
    let options = PeerRequestOptions::no_options();
    let handle = client.service.send_cancellable_request(request, options).await.unwrap();
    until(|| world.fake.started() == 1 && world.fake.waiting(0) == waiting).await;
    handle
}

/// Repeats a call after its run has ended.
async fn retried(world: &World, client: &Client) -> CallToolResult {
    let peer = client.service.peer().clone();
    let before = world.fake.waiting(0);
    let retry = tokio::spawn(async move { peer.call_tool(keyed("slow")).await.unwrap() });
    until(|| retry.is_finished() || world.fake.waiting(0) > before).await;
    if !retry.is_finished() {
        world.fake.set(0, &json!({ "phase": DONE, "output": { "sum": 3 } }));
    }
    retry.await.unwrap()
}

async fn stocked() -> World {
    let world = World::new().await;
    world.fake.put_plain("a", "slow");
    world
}

#[tokio::test]
async fn a_lost_connection_leaves_a_run_with_a_key_to_the_retry() {
    for lifecycle in [ClientLifecycleMode::Initialize, without_sessions()] {
        let world = stocked().await;
        let lost = world.client_of("a", lifecycle.clone()).await;
        let call = begun(&world, &lost, 1).await;
        match lifecycle {
            // A request without a session is ended by closing its connection.
            ClientLifecycleMode::Discover { .. } => call.cancel(None).await.unwrap(),
            // One of a session by the end of the session.
            _ => drop(tokio::spawn(lost.service.cancel())),
        }
        until(|| world.fake.waiting(0) == 0).await;
        let client = world.client_of("a", lifecycle).await;
        let result = retried(&world, &client).await;
        assert_eq!(result.structured_content, Some(json!({ "sum": 3 })), "{result:?}");
        assert_eq!(world.fake.orders.lock().unwrap()[0].idempotency.as_deref(), Some("once"));
        assert_eq!((world.fake.started(), world.fake.cancelled.lock().unwrap().len()), (1, 0));
    }
}

#[tokio::test]
async fn a_client_that_cancels_its_call_cancels_the_run_whatever_its_key() {
    let world = stocked().await;
    let client = world.client("a").await;
    begun(&world, &client, 1).await.cancel(None).await.unwrap();
    until(|| !world.fake.cancelled.lock().unwrap().is_empty()).await;
    let result = retried(&world, &client).await;
    assert_eq!(text(&result)["reason"], "Cancelled");
}

#[tokio::test]
async fn a_cancellation_does_not_take_the_run_from_others_who_wait_for_it() {
    let world = stocked().await;
    let (first, second) = (world.client("a").await, world.client("a").await);
    let unwanted = begun(&world, &first, 1).await;
    let wanted = begun(&world, &second, 2).await;
    unwanted.cancel(None).await.unwrap();
    until(|| world.fake.waiting(0) == 1).await;
    // The server has dealt with the cancellation before what the same session asks next.
    first.tools().await;
    world.fake.set(0, &json!({ "phase": DONE, "output": { "sum": 3 } }));
    let answer = tokio::time::timeout(LIMIT, wanted.await_response()).await.expect("an answer").unwrap();
    let answer = serde_json::to_value(answer).unwrap();
    assert_eq!(answer["structuredContent"], json!({ "sum": 3 }));
    assert!(world.fake.cancelled.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_key_finds_its_run_also_when_a_nearer_skill_or_a_newer_version_has_come() {
    let world = World::new().await;
    world.fake.put_plain("platform", "slow");
    let client = world.client("a").await;
    drop(begun(&world, &client, 1).await);
    world.fake.put("platform", "slow", &json!({ "version": "1.0.1" }), &json!({}));
    world.fake.put_plain("a", "slow");
    let result = retried(&world, &world.client("a").await).await;
    assert_eq!(result.structured_content, Some(json!({ "sum": 3 })), "{result:?}");
    let orders = world.fake.orders.lock().unwrap();
    assert!(orders.iter().all(|order| order.ignore_version), "the version is not the client's word");
    assert_eq!((orders.len(), world.fake.started()), (1, 1));
}

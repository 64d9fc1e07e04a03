//! Runs and results of `tools/call`.

use rmcp::{
    model::{CallToolRequest, ClientRequest},
    service::PeerRequestOptions,
};
use serde_json::json;

use futures::{FutureExt as _, future::pending};

use super::{
    super::{
        call::{End, follow},
        tool_result,
        tools::{Runnable, ToolList, resolve},
    },
    idempotent_calls::keyed,
    *,
};
use crate::executions::{ExecutionError, ExecutionRequest};

/// A client in the middle of a call, whose run has started.
async fn called(
    server: &McpServer,
    client: &Client,
    tool: &str,
    arguments: Value,
) -> tokio::task::JoinHandle<CallToolResult> {
    let before = server.started();
    let peer = client.service.peer().clone();
    let params = params(tool, arguments);
    let call = tokio::spawn(async move { peer.call_tool(params).await.unwrap() });
    until(|| server.started() > before).await;
    call
}

#[tokio::test]
async fn a_call_runs_the_resolved_skill_and_returns_its_output() {
    let server = McpServer::start().await;
    server.gateway.skill("platform", "sum", &json!({ "version": "2.1.0" }));
    let client = server.client("a/agent").await;
    let call = called(&server, &client, "sum", json!({ "a": 1 })).await;
    let (metadata, spec) = (server.run(0)["metadata"].clone(), server.run(0)["spec"].clone());
    assert_eq!((&metadata["namespace"], &spec["skill"]), (&json!("platform"), &json!("sum")));
    assert_eq!(metadata["labels"]["skillet.dev/caller-namespace"], "a");
    assert_eq!((&spec["version"], &spec["input"]), (&json!("2.1.0"), &json!({ "a": 1 })));
    assert!(spec["sessionId"].as_str().unwrap().contains('.'), "the client's session");
    server
        .set_status(0, &json!({ "phase": "Succeeded", "output": { "sum": 3 }, "resolvedVersion": "2.1.0" }));
    let result = call.await.unwrap();
    assert_eq!(result.is_error, Some(false));
    assert_eq!(result.structured_content, Some(json!({ "sum": 3 })));
    assert_eq!(text(&result), json!({ "sum": 3 }));
}

#[tokio::test]
async fn a_skill_that_fails_is_an_answer_with_reason_and_message() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    let client = server.client("a/agent").await;
    let status = json!({ "phase": "Failed", "reason": "InputInvalid", "message": "/a is not a number" });
    let call = called(&server, &client, "sum", json!({ "a": "x" })).await;
    server.set_status(0, &status);
    let result = call.await.unwrap();
    assert_eq!((result.is_error, &result.structured_content), (Some(true), &None));
    let text = text(&result);
    assert_eq!((&text["reason"], &text["message"]), (&json!("InputInvalid"), &json!("/a is not a number")));
}

#[tokio::test]
async fn a_run_that_cannot_be_made_or_vanishes_is_an_answer_too() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    let client = server.client("a/agent").await;
    let check = |result: &CallToolResult, reason: &str, words: &str| {
        assert_eq!((result.is_error, text(result)["reason"].as_str()), (Some(true), Some(reason)));
        assert!(text(result)["message"].as_str().unwrap().contains(words), "{result:?}");
    };
    for (code, reason, words) in [
        (403, "Forbidden", "says why"),
        (404, "SkillNotFound", "says why"),
        (422, "InputInvalid", "says why"),
        (500, "ApiError", "could not create"),
    ] {
        server.gateway.api.fail_next("POST /apis/skillet.dev", code, "says why");
        check(&client.call("sum", json!({})).await, reason, words);
    }
    check(&tool_result::service_error(&ExecutionError::Stopping.into()), "ApiError", "stops");
    let peer = client.service.peer().clone();
    let first = tokio::spawn(async move { peer.call_tool(keyed("sum", json!({}))).await.unwrap() });
    until(|| server.started() == 1).await;
    let other = client.service.call_tool(keyed("sum", json!({ "a": 1 }))).await.unwrap();
    check(&other, "Conflict", "another call");
    server.remove(0);
    check(&first.await.unwrap(), "SandboxLost", "deleted");
}

#[tokio::test]
async fn a_tool_that_was_not_listed_is_no_tool() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "manual", &json!({ "invocation": "manual" }));
    server.gateway.skill("b", "of-b", &json!({}));
    let client = server.client("a/agent").await;
    for tool in ["nothing", "manual", "of-b"] {
        let error = client.service.call_tool(params(tool, json!({}))).await.unwrap_err();
        assert!(error.to_string().contains("-32602") && error.to_string().contains(tool), "{error}");
    }
    assert!(server.started() == 0);
}

#[tokio::test]
async fn a_call_runs_what_the_list_shows_under_its_name() {
    let server = McpServer::start().await;
    let (gateway, caller) = (&server.gateway, TestGateway::caller("a/agent"));
    let long = "n".repeat(70);
    for name in ["sum", "a.b", "3d", "off", "unsealed", "skillet_executions", "x_y", &long, &long[..64]] {
        gateway.skill("a", name, &json!({}));
        gateway.skill("platform", name, &json!({}));
    }
    gateway.skill("a", "off", &json!({ "mode": "off" }));
    server.unseal("a", "unsealed");
    gateway.skill("platform", "shared", &json!({}));
    let service = gateway.service.clone();
    let lookup = service.lookup(&caller);
    let tools = ToolList::of(lookup).await.unwrap();
    let listed: Vec<String> = tools.names().map(ToString::to_string).collect();
    assert_eq!(listed.len(), 8, "{listed:?}");
    let alias = skillet_llm::tool_names::omniroute::encode("sum", "1.0.0").unwrap();
    let odd = ["a.b", "3d", "off", "unsealed", "skillet_executions", "", "-", "nothing", &long, &alias];
    for name in listed.iter().map(String::as_str).chain(odd) {
        let place = |skill: &Runnable| (skill.resolved.namespace.clone(), skill.resolved.name().clone());
        let run = resolve(lookup, name).await.unwrap();
        assert_eq!(run.as_ref().map(place), tools.get(name).map(place), "{name}");
    }
    let lists = server.lists("a");
    assert!(resolve(lookup, "shared").await.unwrap().is_some());
    assert_eq!(server.lists("a"), lists, "one name is looked up, and no table made");
}

#[tokio::test]
async fn a_client_gets_progress_notifications_of_its_run() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "slow", &json!({}));
    for lifecycle in [ClientLifecycleMode::Initialize, without_sessions()] {
        let run = server.started();
        // rmcp's client sends a progress token with every request.
        let client = server.client_of("a/agent", lifecycle).await;
        let call = called(&server, &client, "slow", json!({})).await;
        let count =
            |word: &str| client.seen.progress.lock().unwrap().iter().filter(|(_, text)| text == word).count();
        until(|| count("queued") > 0).await;
        server.set_status(run, &json!({ "phase": "Running" }));
        // Again and again, so that clients that give up without news do not.
        until(|| count("running") > 2).await;
        server.set_status(run, &json!({ "phase": "Succeeded" }));
        assert_eq!(call.await.unwrap().is_error, Some(false));
        let numbers: Vec<f64> =
            client.seen.progress.lock().unwrap().iter().map(|(number, _)| *number).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    }
}

#[tokio::test]
async fn notices_that_a_client_never_takes_hold_up_neither_the_end_nor_the_limits() {
    let server = McpServer::start().await;
    let cancelled = CancellationToken::new();
    let executions = &server.gateway.service.executions;
    let ends = async |timing: Timing, change: fn(&McpServer, &CancellationToken)| {
        let request = ExecutionRequest::new(TestGateway::caller("a/agent"), "a", "slow");
        let execution = executions.start(&request).await.unwrap();
        let count = Mutex::new(0);
        let notify = |_| {
            *count.lock().unwrap() += 1;
            pending().boxed()
        };
        let following = follow(executions, &timing, &execution, &cancelled, Some(notify));
        let changing = async {
            until(|| *count.lock().unwrap() == 1).await;
            change(&server, &cancelled);
        };
        tokio::time::timeout(LIMIT, async { tokio::join!(following, changing).0 }).await.expect("an end")
    };
    let end = ends(timing(), |server, _| server.set_status(0, &json!({ "phase": "Succeeded" }))).await;
    assert!(matches!(end, End::Ended(_)), "{end:?}");
    let short = Timing { call: Duration::from_millis(20), ..timing() };
    let end = ends(short, |_, _| {}).await;
    assert!(matches!(end, End::TooLate), "{end:?}");
    let end = ends(timing(), |_, cancelled| cancelled.cancel()).await;
    assert!(matches!(end, End::Cancelled), "{end:?}");
}

#[tokio::test]
async fn a_cancelled_call_cancels_its_run() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "slow", &json!({}));
    for lifecycle in [ClientLifecycleMode::Initialize, without_sessions()] {
        let run = server.started();
        let client = server.client_of("a/agent", lifecycle).await;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params("slow", json!({}))));
        let options = PeerRequestOptions::no_options();
        let handle = client.service.send_cancellable_request(request, options).await.unwrap();
        until(|| server.started() > run).await;
        handle.cancel(Some("no longer wanted".to_owned())).await.unwrap();
        until(|| server.cancelled().len() > run).await;
        assert_eq!(server.run(run)["spec"]["cancel"], true);
    }
}

#[tokio::test]
async fn a_run_that_outlasts_its_call_continues() {
    let short = Timing { call: Duration::from_millis(20), ..timing() };
    let server = McpServer::with_timing(short).await;
    server.gateway.skill("a", "slow", &json!({}));
    let client = server.client("a/agent").await;
    let result = client.call("slow", json!({})).await;
    assert_eq!((result.is_error, text(&result)["reason"].as_str()), (Some(true), Some("TooLate")));
    assert!(text(&result)["message"].as_str().unwrap().contains(&server.name(0)));
    assert!(server.cancelled().is_empty());
}

#[tokio::test]
async fn a_call_takes_room_until_it_is_answered() {
    for lifecycle in [ClientLifecycleMode::Initialize, without_sessions()] {
        let server = McpServer::start().await;
        server.gateway.skill("a", "sum", &json!({}));
        let client = server.client_of("a/agent", lifecycle).await;
        let call = called(&server, &client, "sum", json!({ "list": vec![0; 50_000] })).await;
        assert!(
            server.gateway.service.memory.reserved() > 3 * 3_000_000,
            "{}",
            server.gateway.service.memory.reserved()
        );
        server.set_status(0, &json!({ "phase": "Succeeded", "output": {} }));
        call.await.unwrap();
        until(|| server.gateway.service.memory.reserved() < 1_000_000).await;
    }
}

#[tokio::test]
async fn a_large_answer_takes_the_room_of_its_input() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    let client = server.client("a/agent").await;
    let call = called(&server, &client, "sum", json!({ "list": vec![0; 400_000] })).await;
    let held = server.gateway.service.memory.reserved();
    server.set_status(0, &json!({ "phase": "Succeeded", "output": { "list": vec![0; 800_000] } }));
    assert_eq!(call.await.unwrap().is_error, Some(false), "beside {held}");
}

#[tokio::test]
async fn an_output_of_more_values_than_there_is_room_for_is_named_and_left() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    let client = server.client("a/agent").await;
    let call = called(&server, &client, "sum", json!({})).await;
    server.set_status(0, &json!({ "phase": "Succeeded", "output": vec![json!({ "": 0 }); 170_000] }));
    let result = call.await.unwrap();
    assert_eq!((result.is_error, &result.structured_content), (Some(true), &None));
    let message = text(&result);
    assert_eq!(message["reason"], "TooLarge");
    let end = format!("the SkillExecution {} has its output", server.name(0));
    assert!(message["message"].as_str().unwrap().ends_with(&end), "{message}");
}

//! Runs and results of `tools/call`.

use rmcp::{
    model::{CallToolRequest, ClientRequest},
    service::PeerRequestOptions,
};
use serde_json::json;

use futures::{FutureExt as _, future::pending};

use super::{
    super::{
        backend::Backend as _,
        call::{End, follow},
        tools::{Runnable, ToolList, tool},
    },
    *,
};
use crate::{
    auth::Caller,
    executions::{ExecutionError, ExecutionRequest},
};

/// A client in the middle of a call, whose run has started.
async fn called(
    world: &World,
    client: &Client,
    tool: &str,
    arguments: Value,
) -> tokio::task::JoinHandle<CallToolResult> {
    let before = world.fake.started();
    let peer = client.service.peer().clone();
    let params = params(tool, arguments);
    let call = tokio::spawn(async move { peer.call_tool(params).await.unwrap() });
    until(|| world.fake.started() > before).await;
    call
}

#[tokio::test]
async fn a_call_runs_the_resolved_skill_and_returns_its_output() {
    let world = World::new().await;
    world.fake.put("platform", "sum", &json!({ "version": "2.1.0" }), &json!({}));
    let client = world.client("a").await;
    let call = called(&world, &client, "sum", json!({ "a": 1 })).await;
    let order = world.fake.orders.lock().unwrap()[0].clone();
    assert_eq!((&*order.namespace, &*order.skill, &*order.caller.namespace), ("platform", "sum", "a"));
    assert_eq!((order.version.as_deref(), &order.input), (Some("2.1.0"), &json!({ "a": 1 })));
    assert!(order.session.is_some_and(|session| session.contains('.')), "the client's session");
    world.fake.set(0, &json!({ "phase": "Succeeded", "output": { "sum": 3 }, "resolvedVersion": "2.1.0" }));
    let result = call.await.unwrap();
    assert_eq!(result.is_error, Some(false));
    assert_eq!(result.structured_content, Some(json!({ "sum": 3 })));
    assert_eq!(text(&result), json!({ "sum": 3 }));
}

#[tokio::test]
async fn a_skill_that_fails_is_an_answer_with_reason_and_message() {
    let world = World::new().await;
    world.fake.put_plain("a", "sum");
    let client = world.client("a").await;
    let status = json!({ "phase": "Failed", "reason": "InputInvalid", "message": "/a is not a number" });
    let call = called(&world, &client, "sum", json!({ "a": "x" })).await;
    world.fake.set(0, &status);
    let result = call.await.unwrap();
    assert_eq!((result.is_error, &result.structured_content), (Some(true), &None));
    let text = text(&result);
    assert_eq!((&text["reason"], &text["message"]), (&json!("InputInvalid"), &json!("/a is not a number")));
}

#[tokio::test]
async fn a_run_that_cannot_be_made_or_vanishes_is_an_answer_too() {
    let world = World::new().await;
    world.fake.put_plain("a", "sum");
    let client = world.client("a").await;
    let (namespace, message) = (|| "a".to_owned(), || "says why".to_owned());
    for (refusal, reason, words) in [
        (ExecutionError::Conflict, "Conflict", "another call"),
        (ExecutionError::Forbidden { namespace: namespace(), message: message() }, "Forbidden", "says why"),
        (ExecutionError::NoPlace { namespace: namespace(), message: message() }, "SkillNotFound", "says why"),
        (
            ExecutionError::Invalid { namespace: namespace(), message: message(), field: None },
            "InputInvalid",
            "says why",
        ),
        (ExecutionError::Stopping, "ApiError", "stops"),
    ] {
        world.fake.refusals.lock().unwrap().push(refusal);
        let result = client.call("sum", json!({})).await;
        assert_eq!((result.is_error, text(&result)["reason"].as_str()), (Some(true), Some(reason)));
        assert!(text(&result)["message"].as_str().unwrap().contains(words), "{result:?}");
    }
    let call = called(&world, &client, "sum", json!({})).await;
    world.fake.remove(0);
    let result = call.await.unwrap();
    assert!(text(&result)["message"].as_str().unwrap().contains("deleted"), "{result:?}");
}

#[tokio::test]
async fn a_tool_that_was_not_listed_is_no_tool() {
    let world = World::new().await;
    world.fake.put("a", "manual", &json!({ "invocation": "manual" }), &json!({}));
    world.fake.put_plain("b", "of-b");
    let client = world.client("a").await;
    for tool in ["nothing", "manual", "of-b"] {
        let error = client.service.call_tool(params(tool, json!({}))).await.unwrap_err();
        assert!(error.to_string().contains("-32602") && error.to_string().contains(tool), "{error}");
    }
    assert!(world.fake.orders.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_call_runs_what_the_list_shows_under_its_name() {
    let fake = Fake::new();
    let caller = Caller { namespace: "a".into(), user: "a".into(), groups: [].into() };
    let long = "n".repeat(70);
    for name in ["sum", "a.b", "3d", "off", "unsealed", "skillet_executions", "x_y", &long, &long[..64]] {
        fake.put_plain("a", name);
        fake.put_plain("platform", name);
    }
    fake.put("a", "off", &json!({ "mode": "off" }), &json!({}));
    fake.unseal("a", "unsealed");
    fake.put_plain("platform", "shared");
    let catalogue = ToolList::of(&fake, &caller).await.unwrap();
    let listed: Vec<String> = catalogue.names().map(ToString::to_string).collect();
    assert_eq!(listed.len(), 8, "{listed:?}");
    let alias = skillet_llm::tool_names::omniroute::encode("sum", "1.0.0").unwrap();
    let odd = ["a.b", "3d", "off", "unsealed", "skillet_executions", "", "-", "nothing", &long, &alias];
    for name in listed.iter().map(String::as_str).chain(odd) {
        let place = |skill: &Runnable| (skill.seen.namespace.clone(), skill.seen.name().clone());
        let run = tool(&fake, &caller, name).await.unwrap();
        assert_eq!(run.as_ref().map(place), catalogue.get(name).map(place), "{name}");
    }
    let looks = fake.looks("a");
    assert!(tool(&fake, &caller, "shared").await.unwrap().is_some());
    assert_eq!(fake.looks("a"), looks, "one name is looked up, and no table made");
}

#[tokio::test]
async fn a_client_gets_progress_notifications_of_its_run() {
    let world = World::new().await;
    world.fake.put_plain("a", "slow");
    for lifecycle in [ClientLifecycleMode::Initialize, without_sessions()] {
        let run = world.fake.started();
        // rmcp's client sends a progress token with every request.
        let client = world.client_of("a", lifecycle).await;
        let call = called(&world, &client, "slow", json!({})).await;
        let count =
            |word: &str| client.seen.progress.lock().unwrap().iter().filter(|(_, text)| text == word).count();
        until(|| count("queued") > 0).await;
        world.fake.set(run, &json!({ "phase": "Running" }));
        // Again and again, so that clients that give up without news do not.
        until(|| count("running") > 2).await;
        world.fake.set(run, &json!({ "phase": "Succeeded" }));
        assert_eq!(call.await.unwrap().is_error, Some(false));
        let numbers: Vec<f64> =
            client.seen.progress.lock().unwrap().iter().map(|(number, _)| *number).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    }
}

#[tokio::test]
async fn notices_that_a_client_never_takes_hold_up_neither_the_end_nor_the_limits() {
    let (fake, unwanted) = (Fake::new(), CancellationToken::new());
    let ends = async |timing: Timing, change: fn(&Fake, &CancellationToken)| {
        let caller = Caller { namespace: "a".into(), user: "u".into(), groups: [].into() };
        let execution = fake.start(&ExecutionRequest::new(caller, "a", "slow")).await.unwrap();
        let count = Mutex::new(0);
        let notices = |_| {
            *count.lock().unwrap() += 1;
            pending().boxed()
        };
        let following = follow(&fake, &timing, &execution, &unwanted, Some(notices));
        let changing = async {
            until(|| *count.lock().unwrap() == 1).await;
            change(&fake, &unwanted);
        };
        tokio::time::timeout(LIMIT, async { tokio::join!(following, changing).0 }).await.expect("an end")
    };
    let end = ends(timing(), |fake, _| fake.set(0, &json!({ "phase": "Succeeded" }))).await;
    assert!(matches!(end, End::Ended(_)), "{end:?}");
    let short = Timing { call: Duration::from_millis(20), ..timing() };
    let end = ends(short, |_, _| {}).await;
    assert!(matches!(end, End::TooLate), "{end:?}");
    let end = ends(timing(), |_, unwanted| unwanted.cancel()).await;
    assert!(matches!(end, End::Unwanted), "{end:?}");
}

#[tokio::test]
async fn a_cancelled_call_cancels_its_run() {
    let world = World::new().await;
    world.fake.put_plain("a", "slow");
    for lifecycle in [ClientLifecycleMode::Initialize, without_sessions()] {
        let run = world.fake.started();
        let client = world.client_of("a", lifecycle).await;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params("slow", json!({}))));
        let options = PeerRequestOptions::no_options();
        let handle = client.service.send_cancellable_request(request, options).await.unwrap();
        until(|| world.fake.started() > run).await;
        handle.cancel(Some("no longer wanted".to_owned())).await.unwrap();
        until(|| world.fake.cancelled.lock().unwrap().len() > run).await;
        assert_eq!(world.fake.cancelled.lock().unwrap()[run], format!("run-{run}"));
    }
}

#[tokio::test]
async fn a_run_that_outlasts_its_call_continues() {
    let short = Timing { call: Duration::from_millis(20), ..timing() };
    let world = World::of(Arc::new(Fake::new()), short).await;
    world.fake.put_plain("a", "slow");
    let client = world.client("a").await;
    let result = client.call("slow", json!({})).await;
    assert_eq!((result.is_error, text(&result)["reason"].as_str()), (Some(true), Some("TooLate")));
    assert!(text(&result)["message"].as_str().unwrap().contains("run-0"));
    assert!(world.fake.cancelled.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_call_takes_room_until_it_is_answered() {
    for lifecycle in [ClientLifecycleMode::Initialize, without_sessions()] {
        let world = World::new().await;
        world.fake.put_plain("a", "sum");
        let client = world.client_of("a", lifecycle).await;
        let call = called(&world, &client, "sum", json!({ "list": vec![0; 50_000] })).await;
        assert!(world.fake.room.reserved() > 3 * 3_000_000, "{}", world.fake.room.reserved());
        world.fake.set(0, &json!({ "phase": "Succeeded", "output": {} }));
        call.await.unwrap();
        until(|| world.fake.room.reserved() < 1_000_000).await;
    }
}

#[tokio::test]
async fn a_large_answer_takes_the_room_of_its_input() {
    let world = World::new().await;
    world.fake.put_plain("a", "sum");
    let client = world.client("a").await;
    let call = called(&world, &client, "sum", json!({ "list": vec![0; 400_000] })).await;
    let held = world.fake.room.reserved();
    world.fake.set(0, &json!({ "phase": "Succeeded", "output": { "list": vec![0; 800_000] } }));
    assert_eq!(call.await.unwrap().is_error, Some(false), "beside {held}");
}

#[tokio::test]
async fn an_output_of_more_values_than_there_is_room_for_is_named_and_left() {
    let world = World::new().await;
    world.fake.put_plain("a", "sum");
    let client = world.client("a").await;
    let call = called(&world, &client, "sum", json!({})).await;
    world.fake.set(0, &json!({ "phase": "Succeeded", "output": vec![json!({ "": 0 }); 170_000] }));
    let result = call.await.unwrap();
    assert_eq!((result.is_error, &result.structured_content), (Some(true), &None));
    let message = text(&result);
    assert_eq!(message["reason"], "TooLarge");
    assert!(
        message["message"].as_str().unwrap().ends_with("the SkillExecution run-0 has its output"),
        "{message}"
    );
}

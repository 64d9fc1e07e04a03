//! The executor against an API server of this process: what it makes, what it waits for, and the races between.

use serde_json::json;
use skillet_api::Phase;

use super::*;
use skillet_kube::testing::{FakeApiServer, eventually, path};

const SOON: Duration = Duration::from_secs(10);

fn caller() -> Caller {
    let user = "system:serviceaccount:team:agent".into();
    Caller { namespace: "team".into(), user, groups: [].into() }
}

fn request() -> ExecutionRequest {
    ExecutionRequest { input: json!({ "a": 1 }), ..ExecutionRequest::new(caller(), "team", "sum") }
}

fn keyed(key: &str) -> ExecutionRequest {
    ExecutionRequest { idempotency: Some(key.into()), ..request() }
}

fn done() -> Value {
    json!({ "phase": "Succeeded", "output": { "sum": 1 }, "attempts": 1, "truncated": false })
}

fn running() -> Value {
    json!({ "phase": "Running", "attempts": 1, "truncated": false })
}

/// An executor whose watch has seen everything.
async fn watching(api: &FakeApiServer) -> Arc<ExecutionClient> {
    let executor = Arc::new(ExecutionClient::new(api.client()));
    tokio::spawn(executor.clone().watch_all());
    let watched = executor.clone();
    eventually("the watch is in", || {
        watched.is_synced() && api.count("GET /apis/skillet.dev/v1alpha1/skillexecutions?&watch=true") > 0
    })
    .await;
    executor
}

fn phase(execution: &Execution) -> Phase {
    execution.status.as_ref().unwrap().phase
}

/// Waits in a task of its own, and gives back once the question after joining was answered, so that only news can
/// end the waiting.
async fn waiting(
    api: &FakeApiServer,
    executor: &Arc<ExecutionClient>,
    execution: &Arc<Execution>,
) -> tokio::task::JoinHandle<Result<Arc<Execution>, ExecutionError>> {
    let question = format!("GET {}", path("team", "skillexecutions", &execution.metadata.name));
    let before = api.count(&question);
    let task = tokio::spawn({
        let (executor, execution) = (executor.clone(), execution.clone());
        async move { executor.wait(&execution, SOON).await }
    });
    eventually("it has asked", || api.count(&question) > before).await;
    task
}

/// Starts an execution and waits for it, under a watch that has seen everything.
async fn started(
    api: &FakeApiServer,
) -> (Arc<Execution>, tokio::task::JoinHandle<Result<Arc<Execution>, ExecutionError>>) {
    let executor = watching(api).await;
    let execution = executor.start(&request()).await.unwrap();
    let waiting = waiting(api, &executor, &execution).await;
    (execution, waiting)
}

#[tokio::test]
async fn executions_are_watched_without_a_list_of_them() {
    let api = FakeApiServer::default();
    for number in 0..50 {
        api.put(
            "skillexecutions",
            json!({ "metadata": { "namespace": "team", "name": format!("old-{number}") } }),
        );
    }
    let (execution, waiting) = started(&api).await;
    api.end_watches();
    api.set_status("team", &execution.metadata.name, done());
    assert_eq!(phase(&waiting.await.unwrap().unwrap()), Phase::Succeeded);
    let all = "GET /apis/skillet.dev/v1alpha1/skillexecutions?";
    let lists: Vec<String> = api
        .requests()
        .into_iter()
        .filter(|line| line.starts_with(all) && !line.contains("watch=true"))
        .collect();
    assert!(!lists.is_empty() && lists.iter().all(|line| line.contains("limit=1")), "{lists:?}");
}

#[tokio::test]
async fn a_run_is_created_and_the_watch_reports_its_end() {
    let api = FakeApiServer::default();
    let executor = watching(&api).await;
    let execution = executor.start(&request()).await.unwrap();
    assert!(execution.metadata.name.starts_with("sum-"));
    let waiting = waiting(&api, &executor, &execution).await;
    api.set_status("team", &execution.metadata.name, running());
    api.set_status("team", &execution.metadata.name, done());
    let ended = waiting.await.unwrap().unwrap();
    assert_eq!(
        (phase(&ended), ended.status.as_ref().unwrap().output.as_ref().unwrap().get()),
        (Phase::Succeeded, r#"{"sum":1}"#)
    );
    assert_eq!(executor.waiting(&execution.metadata.uid.clone()), 0, "nothing is kept");
}

#[tokio::test]
async fn an_end_before_the_waiting_began_is_found_by_asking() {
    let api = FakeApiServer::default();
    api.set_status_on_create(done());
    let executor = watching(&api).await;
    let execution = executor.start(&request()).await.unwrap();
    assert!(!execution.is_ended(), "the answer to the creation is from before the end");
    eventually("the watch has passed it", || api.executions().len() == 1).await;
    assert_eq!(phase(&executor.wait(&execution, SOON).await.unwrap()), Phase::Succeeded);
}

#[tokio::test]
async fn an_execution_that_has_ended_is_not_asked_for() {
    let api = FakeApiServer::default();
    let executor = ExecutionClient::new(api.client());
    let execution = executor.start(&request()).await.unwrap();
    api.set_status("team", &execution.metadata.name, done());
    let ended = executor.find("team", &execution.metadata.name).await.unwrap().unwrap();
    let asked = api.requests().len();
    executor.wait(&ended, Duration::ZERO).await.unwrap();
    assert_eq!(api.requests().len(), asked);
}

#[tokio::test]
async fn an_end_during_an_interruption_is_found_by_asking() {
    let api = FakeApiServer::default();
    let (execution, waiting) = started(&api).await;
    api.end_watches();
    api.set_status("team", &execution.metadata.name, done());
    assert_eq!(phase(&waiting.await.unwrap().unwrap()), Phase::Succeeded);
}

#[tokio::test]
async fn a_deletion_during_an_interruption_is_found_by_asking() {
    let api = FakeApiServer::default();
    let (execution, waiting) = started(&api).await;
    api.end_watches();
    api.delete(&path("team", "skillexecutions", &execution.metadata.name));
    assert!(matches!(waiting.await.unwrap(), Err(ExecutionError::Gone { .. })));
}

#[tokio::test]
async fn the_watch_reports_a_deletion() {
    let api = FakeApiServer::default();
    let (execution, waiting) = started(&api).await;
    api.delete(&path("team", "skillexecutions", &execution.metadata.name));
    assert!(matches!(waiting.await.unwrap(), Err(ExecutionError::Gone { .. })));
}

#[tokio::test]
async fn another_execution_under_the_same_name_is_not_taken_for_it() {
    let api = FakeApiServer::default();
    let executor = ExecutionClient::new(api.client());
    let execution = executor.start(&keyed("k")).await.unwrap();
    api.delete(&path("team", "skillexecutions", &execution.metadata.name));
    api.set_status_on_create(done());
    executor.start(&keyed("k")).await.unwrap();
    assert!(matches!(executor.wait(&execution, SOON).await, Err(ExecutionError::Gone { .. })));
    assert!(matches!(executor.cancel(&execution.metadata).await, Err(ExecutionError::Gone { .. })));
}

#[tokio::test(start_paused = true)]
async fn reads_replace_a_watch_that_hangs() {
    let api = FakeApiServer::default();
    let executor = Arc::new(ExecutionClient::new(api.client()));
    api.mute_watches();
    let execution = executor.start(&request()).await.unwrap();
    let waiting = tokio::spawn({
        let (executor, execution) = (executor.clone(), execution.clone());
        async move { executor.wait(&execution, Duration::from_secs(300)).await }
    });
    let question = format!("GET {}", path("team", "skillexecutions", &execution.metadata.name));
    eventually("it has asked", || api.count(&question) == 1).await;
    api.set_status("team", &execution.metadata.name, done());
    assert_eq!(phase(&waiting.await.unwrap().unwrap()), Phase::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_fails_is_asked_again() {
    let api = FakeApiServer::default();
    let executor = ExecutionClient::new(api.client());
    let execution = executor.start(&request()).await.unwrap();
    api.set_status("team", &execution.metadata.name, done());
    api.fail_next("GET ", 400, "not now");
    assert_eq!(phase(&executor.wait(&execution, SOON).await.unwrap()), Phase::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn waiting_has_a_limit_and_leaves_the_run_alone() {
    let api = FakeApiServer::default();
    let executor = ExecutionClient::new(api.client());
    let execution = executor.start(&request()).await.unwrap();
    let late = executor.wait(&execution, Duration::from_secs(2)).await;
    assert!(matches!(late, Err(ExecutionError::TooLate { limit, .. }) if limit == Duration::from_secs(2)));
    assert_eq!(api.executions()[0]["spec"]["cancel"], false);
    assert_eq!(executor.waiting(&execution.metadata.uid.clone()), 0);
}

#[tokio::test]
async fn the_same_key_is_the_same_execution_on_every_replica() {
    let api = FakeApiServer::default();
    let (one, two) = (ExecutionClient::new(api.client()), ExecutionClient::new(api.client()));
    let (first, second, third) = (keyed("k"), keyed("k"), keyed("l"));
    let (first, second) = tokio::join!(one.start(&first), two.start(&second));
    assert_eq!(first.unwrap().metadata.uid, second.unwrap().metadata.uid);
    one.start(&third).await.unwrap();
    assert_eq!(api.executions().len(), 2);
}

#[tokio::test]
async fn a_key_used_for_another_call_is_a_conflict() {
    let api = FakeApiServer::default();
    let executor = ExecutionClient::new(api.client());
    executor.start(&keyed("k")).await.unwrap();
    let other = ExecutionRequest { input: json!({ "a": 2 }), ..keyed("k") };
    assert!(matches!(executor.start(&other).await, Err(ExecutionError::Conflict)));
    assert_eq!(api.executions().len(), 1);
}

#[tokio::test]
async fn a_key_whose_execution_vanishes_between_two_looks_makes_it_anew() {
    let api = FakeApiServer::default();
    let executor = ExecutionClient::new(api.client());
    let first = executor.start(&keyed("k")).await.unwrap();
    api.fail_next(
        &format!("GET {}", path("team", "skillexecutions", &first.metadata.name)),
        404,
        "not found",
    );
    // The fake answers the question with 404 once; the object is still there, so the second look finds it.
    assert_eq!(executor.start(&keyed("k")).await.unwrap().metadata.uid, first.metadata.uid);
    assert_eq!(api.count("POST "), 3);
}

#[tokio::test]
async fn what_the_api_server_refuses_is_a_typed_error() {
    let api = FakeApiServer::default();
    let executor = ExecutionClient::new(api.client());
    api.fail_next("POST ", 403, "exceeded quota");
    assert!(
        matches!(executor.start(&request()).await, Err(ExecutionError::Forbidden { message, .. }) if message == "exceeded quota")
    );
    api.fail_next("POST ", 404, "no namespace");
    assert!(matches!(executor.start(&request()).await, Err(ExecutionError::NoPlace { .. })));
    api.fail_next("POST ", 422, "too long");
    assert!(matches!(executor.start(&request()).await, Err(ExecutionError::Invalid { .. })));
    api.fail_next("POST ", 409, "no free name");
    assert!(matches!(executor.start(&request()).await, Err(ExecutionError::Create { .. })));
    assert!(api.executions().is_empty());
}

#[tokio::test]
async fn an_execution_keeps_the_id_of_the_request_that_created_it() {
    let api = FakeApiServer::default();
    let executor = watching(&api).await;
    for id in ["first", "second"] {
        let request = ExecutionRequest {
            idempotency: Some("k".into()),
            request_id: Some(id.into()),
            ..ExecutionRequest::new(caller(), "team", "sum")
        };
        executor.start(&request).await.unwrap();
    }
    let [execution] = api.executions().try_into().unwrap();
    assert_eq!(execution["metadata"]["annotations"], json!({ "skillet.dev/request-id": "first" }));
}

#[tokio::test]
async fn following_shows_the_states_in_order_to_everyone_who_follows() {
    let api = FakeApiServer::default();
    let executor = watching(&api).await;
    let execution = executor.start(&request()).await.unwrap();
    let (mut one, mut two) = (executor.watch(&execution), executor.watch(&execution));
    for watch in [&mut one, &mut two] {
        assert!(watch.next().await.unwrap().status.is_none());
    }
    api.set_status("team", &execution.metadata.name, running());
    assert_eq!(phase(&one.next().await.unwrap()), Phase::Running);
    api.set_status("team", &execution.metadata.name, done());
    assert_eq!(phase(&one.next().await.unwrap()), Phase::Succeeded);
    drop(one);
    let mut last = two.next().await.unwrap();
    while !last.is_ended() {
        last = two.next().await.unwrap();
    }
    drop(two);
    assert_eq!(executor.waiting(&execution.metadata.uid.clone()), 0);
}

/// Drops the future that waits for a run, and returns the state of the run.
async fn drop_waiting(cancel_when_dropped: bool, is_shared: bool) -> (FakeApiServer, Arc<Execution>) {
    let api = FakeApiServer::default();
    let executor = watching(&api).await;
    let request = ExecutionRequest { cancel_when_dropped, ..keyed("k") };
    let run = tokio::spawn({
        let executor = executor.clone();
        async move { executor.run(&request, SOON).await }
    });
    let created = || api.executions().first().cloned();
    eventually("it is made", || created().is_some()).await;
    let execution: Arc<Execution> = Arc::new(serde_json::from_value(created().unwrap()).unwrap());
    let uid = execution.metadata.uid.clone();
    eventually("it is waited for", || executor.waiting(&uid) > 0).await;
    let other = is_shared.then(|| executor.watch(&execution));
    run.abort();
    // The task of its own, which outlives the dropped future, holds the executor.
    eventually("nothing is left of it", || Arc::strong_count(&executor) == 2).await;
    drop(other);
    assert_eq!(executor.waiting(&uid), 0);
    (api, execution)
}

#[tokio::test]
async fn a_dropped_future_leaves_the_run_unless_the_order_says_otherwise() {
    let (api, _) = drop_waiting(false, false).await;
    assert_eq!(api.count("PATCH "), 0);
    let (api, execution) = drop_waiting(true, false).await;
    assert_eq!(api.count(&format!("PATCH {}", path("team", "skillexecutions", &execution.metadata.name))), 1);
}

#[tokio::test]
async fn a_run_that_another_request_waits_for_is_not_cancelled() {
    let (api, _) = drop_waiting(true, true).await;
    assert_eq!(api.count("PATCH "), 0);
}

#[tokio::test]
async fn a_run_that_is_wanted_to_its_end_answers_it() {
    for cancel_when_dropped in [false, true] {
        let api = FakeApiServer::default();
        api.set_status_on_create(done());
        let executor = watching(&api).await;
        let ended = executor.run(&ExecutionRequest { cancel_when_dropped, ..request() }, SOON).await.unwrap();
        assert_eq!(phase(&ended), Phase::Succeeded);
        api.fail_next("POST ", 422, "too long");
        let refused = executor.run(&ExecutionRequest { cancel_when_dropped, ..request() }, SOON).await;
        assert!(matches!(refused, Err(ExecutionError::Invalid { .. })));
    }
}

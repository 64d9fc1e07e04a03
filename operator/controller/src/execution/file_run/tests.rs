//! Runs of the file built-ins over a scripted API server and a served store: outputs, failures, and writes at most once.

use std::{collections::BTreeMap, net::TcpListener};

use serde_json::json;
use skillet_api::{SkillExecutionSpec, SkillExecutionStatus, SkillPolicySpec, SkillSpec};
use skillet_core::skill::validate_content;
use skillet_workspace::{LIMITS, Limits, Served, WorkspaceClient, WorkspaceId};
use tokio::{sync::mpsc, time::timeout};

use super::{
    super::tests::{Call, calls, context, execution, serving},
    *,
};
use crate::execution::{adopt::LeftoverRuns, entry::RoomReporter};

const OWNER: &str = "team/team/agent";

fn of_caller(caller: Option<&str>) -> SkillExecution {
    let spec = SkillExecutionSpec { caller: caller.map(str::to_owned), ..execution("s").spec };
    SkillExecution { spec, ..execution("s") }
}

fn assignment(builtin: &str, input: &Value) -> Assignment {
    let spec: SkillSpec =
        serde_saphyr::from_str(&format!("version: 1.0.0\nrun: {{builtin: {builtin}}}")).unwrap();
    let policy: SkillPolicySpec = serde_saphyr::from_str("builtins: [file_read, file_write]").unwrap();
    let execution = of_caller(Some("team/agent"));
    Assignment {
        reference: Arc::new(ExecutionRef::of(&execution).unwrap()),
        execution: Arc::new(execution),
        admitted: Admitted {
            skill: "s".into(),
            version: "1.0.0".parse().unwrap(),
            digest: String::new(),
            content: Arc::new(validate_content(&spec, &policy).unwrap()),
            args: Vec::new(),
            stdin: input.to_string().into(),
            variables: BTreeMap::new(),
            timeout: Duration::from_secs(5),
            retries: 0,
        },
        point: ResumePoint::FIRST,
        // Its sender is gone: nobody cancels.
        order: watch::channel(Order::Run).1,
        room: RoomReporter { uid: "u".into(), outbox: mpsc::unbounded_channel().0 },
        has_waited: false,
    }
}

/// Runs an assignment to its end, and returns the statuses that were written.
async fn statuses(workspaces: Option<WorkspaceClient>, assignment: Assignment) -> Vec<Value> {
    let (client, seen) = serving(|_| Some((200, b"{}".to_vec())));
    let mut ctx = context(client);
    Arc::get_mut(&mut ctx).unwrap().workspaces = workspaces;
    assert!(matches!(crate::execution::run(&ctx, assignment).await, RunEnd::Finished));
    calls(&seen).into_iter().filter(Call::is_status).map(|call| call.body["status"].clone()).collect()
}

async fn last_status(workspaces: Option<WorkspaceClient>, assignment: Assignment) -> Value {
    statuses(workspaces, assignment).await.pop().unwrap()
}

/// Returns phase, reason, message and number of attempts.
fn words(status: &Value) -> (String, String, String, u64) {
    let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    (text("phase"), text("reason"), text("message"), status["attempts"].as_u64().unwrap_or_default())
}

async fn fails(
    workspaces: Option<WorkspaceClient>,
    assignment: Assignment,
    expected: (&str, &str, &str, u64),
) {
    let (phase, reason, message, attempts) = words(&last_status(workspaces, assignment).await);
    assert_eq!((phase.as_str(), reason.as_str(), message.as_str(), attempts), expected);
}

fn phases(statuses: &[Value]) -> Vec<&str> {
    statuses.iter().map(|status| status["phase"].as_str().unwrap()).collect()
}

/// A store that no connection reaches, and one that takes a connection and says nothing.
fn unreachable(store: &Served, hangs: bool) -> (WorkspaceClient, Option<TcpListener>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (store.client_at(address), hangs.then_some(listener))
}

#[tokio::test]
async fn a_file_is_written_and_read_by_its_caller_alone() {
    let store = Served::start(LIMITS).await;
    let client = || Some(store.client());
    let write = |input: Value| statuses(client(), assignment("file_write", &input));
    let written = write(json!({"path": "a/./b.txt", "content": "ä"})).await;
    assert_eq!(phases(&written), ["Running", "Succeeded"], "it says Running before it writes");
    let expected = json!({"success": true, "path": "a/b.txt", "bytesWritten": 2, "context": "team/agent"});
    assert_eq!((&written[1]["output"], &written[1]["attempts"]), (&expected, &json!(1)));
    write(json!({"path": "a/b.txt", "content": "b", "append": true})).await;
    let again = write(json!({"path": "a/b.txt", "content": "c", "overwrite": false})).await;
    let exists = "a/b.txt exists already; write with overwrite, or to another path";
    assert_eq!(words(&again[1]), ("Failed".into(), "FileExists".into(), exists.into(), 1));
    let read = statuses(client(), assignment("file_read", &json!({"path": "a/b.txt"}))).await;
    let expected = json!({
        "success": true, "path": "a/b.txt", "content": "äb", "bytesRead": 3, "encoding": "utf8",
        "context": "team/agent",
    });
    assert_eq!((phases(&read), &read[0]["output"]), (vec!["Succeeded"], &expected));
    for caller in [None, Some("team/other")] {
        let mut other = assignment("file_read", &json!({"path": "a/b.txt"}));
        other.execution = Arc::new(of_caller(caller));
        fails(client(), other, ("Failed", "FileNotFound", "the workspace has no a/b.txt", 1)).await;
    }
    write(json!({"path": "a/b.txt", "content": ""})).await;
    let id = WorkspaceId::of_owner(OWNER);
    assert_eq!(store.client().read(&id, "a/b.txt", 9).await.unwrap(), "", "a plain write replaces");
    store.stop().await;
}

#[tokio::test]
async fn without_a_caller_the_context_is_the_namespace() {
    let store = Served::start(LIMITS).await;
    let mut anonymous = assignment("file_write", &json!({"path": "a", "content": "x"}));
    anonymous.execution = Arc::new(of_caller(None));
    assert_eq!(last_status(Some(store.client()), anonymous).await["output"]["context"], "team");
    let id = WorkspaceId::of_owner("team/anonymous");
    assert_eq!(store.client().read(&id, "a", 9).await.unwrap(), "x");
    store.stop().await;
}

#[tokio::test]
async fn an_input_that_names_no_file_calls_no_store() {
    let store = Served::start(LIMITS).await;
    for (builtin, input, message) in [
        ("file_read", json!({"path": "../a"}), "spec.input: Skill file path escapes the skill workspace"),
        ("file_write", json!({"path": "a"}), "spec.input: Missing required fields: path, content"),
    ] {
        let expected = ("Failed", "InputInvalid", message, 0);
        fails(Some(store.client()), assignment(builtin, &input), expected).await;
    }
    let mut broken = assignment("file_read", &json!({}));
    broken.admitted.stdin = "{".into();
    assert_eq!(words(&last_status(Some(store.client()), broken).await).1, "InputInvalid");
    store.stop().await;
}

#[tokio::test]
async fn without_a_store_the_run_fails_with_the_fix() {
    let message =
        "this operator has no store of workspaces; the chart installs one with workspaces.enabled: true";
    let expected = ("Failed", "WorkspaceUnavailable", message, 0);
    fails(None, assignment("file_read", &json!({"path": "a"})), expected).await;
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_may_have_written() {
    let store = Served::start(LIMITS).await;
    let (client, _) = unreachable(&store, false);
    let read = last_status(Some(client.clone()), assignment("file_read", &json!({"path": "a"}))).await;
    assert_eq!(words(&read).1, "WorkspaceUnavailable");
    assert!(!words(&read).2.contains("may have been written"), "{read}");
    let input = json!({"path": "a", "content": ""});
    let write = last_status(Some(client), assignment("file_write", &input)).await;
    assert_eq!(words(&write).1, "WorkspaceUnavailable");
    assert!(
        words(&write).2.ends_with("a may have been written: read it before you write it again"),
        "{write}"
    );
    store.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_ends_the_run_at_its_limit() {
    let store = Served::start(LIMITS).await;
    for (builtin, may_be) in [
        ("file_read", ""),
        ("file_write", "; the file may have been written: read it before you write it again"),
    ] {
        let (client, _listener) = unreachable(&store, true);
        let mut run = assignment(builtin, &json!({"path": "a", "content": ""}));
        run.admitted.timeout = Duration::from_secs(1);
        let statuses = statuses(Some(client), run).await;
        assert_eq!(phases(&statuses), ["Running", "TimedOut"], "a long read is shown as Running, too");
        let message = format!("the store of workspaces did not answer within the limit of 1s{may_be}");
        assert_eq!(words(&statuses[1]), ("TimedOut".into(), "TimedOut".into(), message, 1));
    }
}

#[tokio::test]
async fn a_cancelled_run_ends_and_a_stopped_one_says_nothing() {
    let store = Served::start(LIMITS).await;
    for (order, expected) in [(Order::Cancel, vec!["Cancelled"]), (Order::Stop, vec![])] {
        let (client, _listener) = unreachable(&store, true);
        let (_sender, receiver) = watch::channel(order);
        let read = Assignment { order: receiver, ..assignment("file_read", &json!({"path": "a"})) };
        assert_eq!(phases(&statuses(Some(client), read).await), expected);
    }
    store.stop().await;
}

/// The operator is killed while it writes the final status.
#[tokio::test]
async fn an_operator_killed_after_a_write_does_not_write_again() {
    let store = Served::start(LIMITS).await;
    let (client, seen) = serving(|call| {
        let is_end = call.is_status() && call.body["status"]["phase"] == "Succeeded";
        (!is_end).then(|| (200, b"{}".to_vec()))
    });
    let mut ctx = context(client);
    Arc::get_mut(&mut ctx).unwrap().workspaces = Some(store.client());
    let append = || assignment("file_write", &json!({"path": "a", "content": "x", "append": true}));
    let run = crate::execution::run(&ctx, append());
    assert!(timeout(Duration::from_millis(500), run).await.is_err(), "killed");
    let first = calls(&seen).into_iter().find(Call::is_status).unwrap();
    let status: SkillExecutionStatus = serde_json::from_value(first.body["status"].clone()).unwrap();
    let mut left = of_caller(Some("team/agent"));
    left.status = Some(status);
    let point = LeftoverRuns::default().take(&left).unwrap().point;
    let message = "the operator ended after it began to write a, and before it knew the end; read the file to see if it was written";
    let resumed = Assignment { point: point.clone(), ..append() };
    fails(Some(store.client()), resumed, ("Failed", "ResultLost", message, 1)).await;
    let read = Assignment { point, ..assignment("file_read", &json!({"path": "a"})) };
    let read = last_status(Some(store.client()), read).await;
    assert_eq!(
        (&read["output"]["content"], &read["attempts"]),
        (&json!("x"), &json!(2)),
        "a read is repeated"
    );
    store.stop().await;
}

#[tokio::test]
async fn an_execution_that_is_gone_writes_nothing() {
    let store = Served::start(LIMITS).await;
    let (client, seen) = serving(|_| {
        let gone = json!({ "kind": "Status", "status": "Failure", "code": 404, "message": "no", "reason": "NotFound" });
        Some((404, gone.to_string().into_bytes()))
    });
    let mut ctx = context(client);
    Arc::get_mut(&mut ctx).unwrap().workspaces = Some(store.client());
    let write = assignment("file_write", &json!({"path": "a", "content": "x"}));
    assert!(matches!(crate::execution::run(&ctx, write).await, RunEnd::Finished));
    assert_eq!(calls(&seen).iter().filter(|call| call.is_status()).count(), 1);
    assert!(store.client().read(&WorkspaceId::of_owner(OWNER), "a", 9).await.is_err());
    store.stop().await;
}

#[tokio::test]
async fn a_file_that_does_not_fit_is_a_failure() {
    let large = Limits {
        quota_bytes: 8 << 20,
        write_bytes: 4 << 20,
        file_bytes: 4 << 20,
        memory_bytes: 32 << 20,
        ..LIMITS
    };
    let store = Served::start(large).await;
    let id = WorkspaceId::of_owner(OWNER);
    for (path, size) in [("cut", 700 << 10), ("large", (1 << 20) + 1)] {
        store.client().write(&id, path, vec![b'x'; size].into(), WriteMode::Create).await.unwrap();
    }
    let message =
        "the file is too large for the status of an execution; kubectl skill workspace cp copies it";
    let expected = ("Failed", "OutputTooLarge", message, 1);
    fails(Some(store.client()), assignment("file_read", &json!({"path": "cut"})), expected).await;
    let message = "Skill file exceeds the 1048576 byte read limit: large would have 1048577 bytes, and at most 1048576 are allowed";
    let expected = ("Failed", "FileTooLarge", message, 1);
    fails(Some(store.client()), assignment("file_read", &json!({"path": "large"})), expected).await;
    store.stop().await;
}

#[tokio::test]
async fn an_output_is_checked_by_the_schema_of_the_skill() {
    let mut run = assignment("file_read", &json!({"path": "a"}));
    let spec = "version: 1.0.0\nrun: {builtin: file_read}\ntool: {outputSchema: {properties: {content: {maxLength: 1}}}}";
    let spec: SkillSpec = serde_saphyr::from_str(spec).unwrap();
    let policy: SkillPolicySpec = serde_saphyr::from_str("builtins: [file_read]").unwrap();
    run.admitted.content = Arc::new(validate_content(&spec, &policy).unwrap());
    let store = Served::start(LIMITS).await;
    store.client().write(&WorkspaceId::of_owner(OWNER), "a", "xy".into(), WriteMode::Create).await.unwrap();
    let (phase, reason, message, _) = words(&last_status(Some(store.client()), run).await);
    assert_eq!((phase.as_str(), reason.as_str()), ("Failed", "OutputInvalid"));
    assert!(message.starts_with("the output breaks tool.outputSchema: /content"), "{message}");
    store.stop().await;
}

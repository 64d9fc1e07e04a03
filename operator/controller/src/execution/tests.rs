//! The driver over a scripted API server: the order of its writes, the window in which an operator is killed, and log
//! lines that name their execution. What follows each outcome is a table.

use std::{
    collections::BTreeMap,
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt as _, stream};
use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client,
    client::Body,
    runtime::{events::Reporter as Source, watcher},
};
use serde_json::{Value, json};
use skillet_api::{SkillExecutionSpec, SkillExecutionStatus, SkillPolicySpec, SkillSpec, names};
use skillet_core::{schema::Schema, skill::validate_content};
use skillet_kube::{Leadership, RawObject};
use skillet_protocol::{Isolation, Receipt};
use tokio::sync::mpsc;
use tracing_subscriber::fmt::MakeWriter;

use super::{engine::Engine, *};
use crate::{
    metrics::Metrics,
    report::Reporter,
    sandbox::{PodWatch, Remover},
    settings::{RunnerDelivery, SandboxPodSettings, SandboxSettings},
};

mod quota;
mod starting;

/// One request to the scripted API server.
#[derive(Clone, Debug)]
pub(super) struct Call {
    method: Method,
    pub(super) path: String,
    pub(super) body: Value,
}

impl Call {
    pub(super) fn is_status(&self) -> bool {
        self.method == Method::PATCH && self.path.ends_with("/status")
    }

    pub(super) fn is_read(&self) -> bool {
        self.method == Method::GET
    }
}

pub(super) type Calls = Arc<Mutex<Vec<Call>>>;

pub(super) fn calls(calls: &Calls) -> Vec<Call> {
    calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Takes every status. Has no object, refuses every new Job, and answers no deletion if it `hangs_at_delete`.
fn api_server(hangs_at_delete: bool) -> (Client, Calls) {
    serving(move |call| {
        let (code, answer) = answer(call);
        let hangs = hangs_at_delete && call.method == Method::DELETE;
        (!hangs).then(|| (code, answer.into_bytes()))
    })
}

/// Answers with status and body. Without an answer, a deletion or an event hangs and any other request loses its connection.
pub(super) fn serving(
    answer: impl Fn(&Call) -> Option<(u16, Vec<u8>)> + Send + Sync + 'static,
) -> (Client, Calls) {
    let calls = Calls::default();
    let seen = calls.clone();
    let answer = Arc::new(answer);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (seen, answer) = (seen.clone(), answer.clone());
        async move {
            let (parts, body) = request.into_parts();
            let text = String::from_utf8(body.collect_bytes().await.unwrap().to_vec()).unwrap();
            let body = serde_saphyr::from_str(&text).unwrap_or(Value::Null);
            let call = Call { method: parts.method.clone(), path: parts.uri.path().to_owned(), body };
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
            let answered = answer(&call);
            if answered.is_none() && (call.method == Method::DELETE || call.path.ends_with("/events")) {
                std::future::pending::<()>().await;
            }
            let (code, body) = answered.ok_or_else(|| io::Error::other("lost"))?;
            Ok::<_, io::Error>(Response::builder().status(code).body(Body::from(body)).unwrap())
        }
    });
    (Client::new(service, "default"), calls)
}

fn answer(call: &Call) -> (u16, String) {
    let failed = |code: u16| {
        let status = json!({ "kind": "Status", "status": "Failure", "code": code, "message": "no", "reason": if code == 404 { "NotFound" } else { "Forbidden" } });
        (code, status.to_string())
    };
    match call.method {
        Method::GET if call.path.ends_with("/log") => (200, String::new()),
        Method::GET if call.path.ends_with("/skills/missing") => failed(404),
        // The execution is not over.
        Method::GET if call.path.ends_with("/skillexecutions") => (
            200,
            json!({ "metadata": {}, "items": [{ "metadata": { "name": "e", "uid": "u" } }] }).to_string(),
        ),
        Method::GET => (200, json!({ "metadata": {}, "items": [] }).to_string()),
        Method::POST => failed(403),
        Method::PATCH | Method::DELETE => (200, json!({ "metadata": { "name": "e" } }).to_string()),
        _ => failed(405),
    }
}

pub(super) fn context(client: Client) -> Arc<Context> {
    let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
    let settings = SandboxSettings {
        namespace: "sandboxes".into(),
        shell_image: "shell:1".into(),
        python_image: "python:1".into(),
        node_image: "node:1".into(),
        browser_image: "browser:1".into(),
        runner_image: "runner:1".into(),
        runner_delivery: RunnerDelivery::InitContainer,
        image_pull_policy: None,
        runtime_class: None,
        pod: SandboxPodSettings::default(),
    };
    let source = Source { controller: names::REPORTING_CONTROLLER.into(), instance: None };
    let catalog = crate::catalog::Catalog::default();
    catalog.learn_policy(skillet_api::SkillPolicy::new(names::POLICY_NAME, SkillPolicySpec::default()));
    let (remover, _) = Remover::new(kube::Api::namespaced(client.clone(), "sandboxes"));
    Arc::new(Context {
        reporter: Reporter::new(client.clone(), source, metrics.clone()),
        catalog: catalog.into(),
        newest_version: crate::revision::NewestRevision::default(),
        checks: Arc::default(),
        pace: crate::pace::Pace::default(),
        health: crate::health::Health::default(),
        version_pins: Arc::default(),
        pods: PodWatch::default(),
        mcp_sessions: McpSessions::default(),
        egress: crate::egress::Egress::default(),
        workspaces: None,
        kept_outputs: KeptOutputs::default(),
        probed: std::sync::Mutex::default(),
        leadership: Leadership::of_test(1),
        client,
        settings,
        namespace: "skillet-system".into(),
        remover,
        metrics,
    })
}

pub(super) fn execution(skill: &str) -> SkillExecution {
    let spec = SkillExecutionSpec { skill: skill.into(), ..SkillExecutionSpec::default() };
    let mut execution = SkillExecution::new("e", spec);
    execution.metadata.namespace = Some("team".into());
    execution.metadata.uid = Some("u".into());
    execution.metadata.annotations =
        Some([(names::ANNOTATION_REQUEST_ID.to_owned(), "r-7".to_owned())].into());
    execution
}

fn admitted(retries: u32) -> Admitted {
    let spec: SkillSpec =
        serde_saphyr::from_str("version: 1.0.0\nrun: {sandbox: {runtime: shell, script: cat}}").unwrap();
    Admitted {
        skill: "s".into(),
        version: "1.0.0".parse().unwrap(),
        digest: String::new(),
        content: Arc::new(validate_content(&spec, &SkillPolicySpec::default()).unwrap()),
        args: Vec::new(),
        stdin: "{}".into(),
        variables: BTreeMap::new(),
        timeout: Duration::from_secs(5),
        retries,
    }
}

/// A run of an execution that resumes from its `ordinal`th sandbox, which exists.
fn assignment(execution: &SkillExecution, ordinal: u32) -> Assignment {
    Assignment {
        reference: Arc::new(ExecutionRef::of(execution).unwrap()),
        execution: Arc::new(execution.clone()),
        admitted: admitted(0),
        point: ResumePoint { ordinal, sandbox: SandboxState::Exists, ..ResumePoint::FIRST },
        // Its sender is gone: nobody cancels.
        order: watch::channel(Order::Run).1,
        room: RoomReporter { uid: "u".into(), outbox: mpsc::unbounded_channel().0 },
        has_waited: false,
    }
}

pub(super) fn pod(yaml: &str) -> Pod {
    let head = "metadata: {name: p, labels: {batch.kubernetes.io/job-name: run-u-1}}";
    serde_saphyr::from_str(&format!("{head}\n{yaml}")).unwrap()
}

/// The pod of a sandbox whose runner ended without a run.
fn unused_pod() -> Pod {
    let receipt = Receipt::unused(Isolation::default()).termination_message().replace('\'', "''");
    pod(&format!(
        "spec: {{containers: [], nodeName: n}}\nstatus: {{phase: Succeeded, containerStatuses: [{{name: c, image: i, imageID: '', ready: false, restartCount: 0, state: {{terminated: {{exitCode: 0, message: '{receipt}'}}}}}}]}}"
    ))
}

#[tokio::test(start_paused = true)]
async fn an_unused_sandbox_is_recorded_before_its_job_is_removed_and_never_as_running() {
    let (client, seen) = api_server(false);
    let ctx = context(client);
    ctx.pods.show(unused_pod(), false);
    assert!(matches!(run(&ctx, assignment(&execution("s"), 1)).await, RunEnd::Finished));
    let writes: Vec<String> = calls(&seen)
        .iter()
        .filter(|call| call.method != Method::GET && !call.path.contains("events"))
        .map(|call| {
            let status = &call.body["status"];
            if call.is_status() {
                format!("{} of {} started {}", status["phase"], status["job"], status["startedAt"])
            } else {
                format!("{} {}", call.method, call.path.rsplit('/').next().unwrap_or_default())
            }
        })
        .collect();
    let expected = [
        "\"Pending\" of \"run-u-1\" started null",
        "DELETE run-u-1",
        "POST jobs",
        "\"Failed\" of \"run-u-2\" started null",
        "DELETE run-u-2",
    ];
    assert_eq!(writes, expected);
}

/// The operator is killed while it removes the Job of an unused sandbox.
#[tokio::test(start_paused = true)]
async fn an_operator_killed_at_the_removal_of_an_unused_sandbox_loses_no_run() {
    let (client, seen) = api_server(true);
    let ctx = context(client);
    ctx.pods.show(unused_pod(), false);
    let mut execution = execution("s");
    let run = run(&ctx, assignment(&execution, 1));
    assert!(tokio::time::timeout(Duration::from_secs(60), run).await.is_err(), "killed");
    let seen = calls(&seen);
    let last = seen.iter().rev().find(|call| call.is_status()).unwrap();
    assert_eq!(seen.last().map(|call| call.method.clone()), Some(Method::DELETE));
    let status: SkillExecutionStatus = serde_json::from_value(last.body["status"].clone()).unwrap();
    execution.status = Some(status);
    // The next operator: the Job is gone, the status is what the last one wrote.
    let point = LeftoverRuns::default().take(&execution).unwrap().point;
    assert_eq!(point, ResumePoint { ordinal: 2, ..ResumePoint::FIRST });
}

/// The runner of an adopted sandbox has said nothing, and no attach succeeds.
#[tokio::test(start_paused = true)]
async fn a_sandbox_whose_runner_accepted_nothing_is_never_reported_as_running() {
    let (client, seen) = api_server(false);
    let ctx = context(client);
    let spoken_to = pod("spec: {containers: [], nodeName: n}");
    ctx.pods.show(spoken_to, false);
    let end = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        ctx.pods.show(unused_pod(), false);
    };
    tokio::join!(run(&ctx, assignment(&execution("s"), 1)), end);
    let seen = calls(&seen);
    assert!(seen.iter().any(Call::is_status));
    for call in seen.iter().filter(|call| call.is_status()) {
        assert_ne!(call.body["status"]["phase"], "Running", "{call:?}");
        assert_eq!(call.body["status"]["startedAt"], Value::Null, "{call:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_without_room_gives_its_place_back_and_its_status_says_why() {
    let (client, seen) = api_server(false);
    let ctx = context(client);
    let condition =
        "{type: PodScheduled, status: 'False', reason: Unschedulable, message: 1 Insufficient cpu}";
    ctx.pods.show(pod(&format!("spec: {{containers: []}}\nstatus: {{conditions: [{condition}]}}")), false);
    match run(&ctx, assignment(&execution("s"), 1)).await {
        RunEnd::NoRoom(point) => assert_eq!(point, ResumePoint { ordinal: 2, ..ResumePoint::FIRST }),
        RunEnd::Finished => panic!("the run has ended"),
    }
    let seen = calls(&seen);
    let status = &seen.iter().find(|call| call.is_status()).unwrap().body["status"];
    assert_eq!(status["message"], "waits for room in the cluster: 1 Insufficient cpu");
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Pending"), &json!("Queued")));
    assert_eq!(status["attempts"], 0);
    assert!(seen.iter().any(|call| call.method == Method::DELETE && call.path.ends_with("run-u-1")));
    assert!(seen.iter().any(|call| call.path.contains("events")), "an event says so too");
}

/// A server that has a Job with this status, and no pod.
fn with_job(status: Value) -> (Client, Calls) {
    serving(move |call| {
        let (code, body) = match (&call.method, call.path.rsplit('/').next()) {
            (&Method::GET, Some("jobs")) => {
                let job = json!({ "metadata": { "name": "run-u-1" }, "status": status });
                (200, json!({ "metadata": {}, "items": [job] }).to_string())
            }
            _ => answer(call),
        };
        Some((code, body.into_bytes()))
    })
}

#[tokio::test(start_paused = true)]
async fn an_adopted_sandbox_that_never_had_a_pod_is_replaced() {
    let (client, seen) = with_job(json!({}));
    let point = ResumePoint { sandbox: SandboxState::Exists, ..ResumePoint::FIRST };
    run(&context(client), Assignment { point, ..assignment(&execution("s"), 1) }).await;
    let seen = calls(&seen);
    let status = &seen.iter().find(|call| call.is_status()).unwrap().body["status"];
    assert_eq!((&status["phase"], &status["job"]), (&json!("Pending"), &json!("run-u-1")), "{status}");
    assert!(status["message"].as_str().unwrap().contains("no pod was made for the Job"), "{status}");
    assert!(seen.iter().any(|call| call.method == Method::POST && call.path.ends_with("/jobs")));
}

#[tokio::test(start_paused = true)]
async fn an_adopted_sandbox_whose_pod_was_deleted_is_lost_at_once() {
    let (client, seen) = with_job(json!({ "failed": 1 }));
    let ctx = context(client);
    let point = ResumePoint { sandbox: SandboxState::Exists, ..ResumePoint::FIRST };
    let begun = tokio::time::Instant::now();
    let end = run(&ctx, Assignment { point, ..assignment(&execution("s"), 1) }).await;
    assert!(matches!(end, RunEnd::Finished));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let seen = calls(&seen);
    let status = &seen.iter().rev().find(|call| call.is_status()).unwrap().body["status"];
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("SandboxLost")));
    assert_eq!(status["message"], "the sandbox was deleted while the program ran");
}

/// Runs an execution that has no sandbox, over a server that creates Jobs. Returns the writes other than of events.
async fn writes_of_run(
    order: watch::Receiver<Order>,
    is_over: bool,
    limit: Duration,
) -> (Option<RunEnd>, Vec<String>) {
    let (client, seen) = serving(move |call| {
        let (code, body) = match call.method {
            Method::POST if call.path.ends_with("/jobs") => {
                (201, json!({ "metadata": { "name": "run-u-1" } }).to_string())
            }
            Method::GET if is_over && call.path.ends_with("/skillexecutions") => {
                (200, json!({ "metadata": {}, "items": [] }).to_string())
            }
            _ => answer(call),
        };
        Some((code, body.into_bytes()))
    });
    let ctx = context(client);
    ctx.pods.show(pod("spec: {containers: [], nodeName: n}"), false);
    let assignment = Assignment { point: ResumePoint::FIRST, order, ..assignment(&execution("s"), 1) };
    let end = tokio::time::timeout(limit, run(&ctx, assignment)).await.ok();
    let writes = calls(&seen).into_iter().filter(|call| call.method != Method::GET);
    (end, writes.map(|call| format!("{} {}", call.method, call.path)).collect())
}

/// An operator that was cut off while another one ran the execution and removed its sandbox.
#[tokio::test(start_paused = true)]
async fn an_execution_that_ended_meanwhile_is_not_run_again_by_an_old_operator() {
    let order = watch::channel(Order::Run).1;
    let (end, writes) = writes_of_run(order, true, Duration::from_secs(1)).await;
    assert!(matches!(end, Some(RunEnd::Finished)));
    assert_eq!(writes, ["POST /apis/batch/v1/namespaces/sandboxes/jobs"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_the_watch_shows_as_ended_is_stopped_and_writes_nothing() {
    let (sender, order) = watch::channel(Order::Run);
    let stop = async {
        // Before the status says what the sandbox waits for.
        tokio::time::sleep(Duration::from_millis(500)).await;
        sender.send_replace(Order::Stop);
    };
    let ((end, writes), ()) = tokio::join!(writes_of_run(order, false, Duration::from_secs(4)), stop);
    assert!(matches!(end, Some(RunEnd::Finished)));
    assert_eq!(writes, ["POST /apis/batch/v1/namespaces/sandboxes/jobs"]);
}

/// Lines of the log, as the JSON format writes them.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn every_log_line_of_a_run_names_the_execution_and_the_request() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(lines.clone())
        .finish();
    // While one subscriber is the only one, tracing asks the thread that first meets a line of log if anybody wants it.
    // That may be the thread of another test, which has no subscriber.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let _logging = tracing::subscriber::set_default(subscriber);
    let (client, seen) = api_server(false);
    let engine = Engine::new(context(client), LeftoverRuns::default(), mpsc::unbounded_channel().0);
    let raw = RawObject::new(&execution("missing")).unwrap();
    let events = stream::iter([watcher::Event::Apply(raw)]).chain(stream::pending());
    let is_refused = async {
        while !calls(&seen).iter().any(|call| call.path.contains("events")) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = engine.work(events) => {}
        () = is_refused => {}
    }
    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let ours: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["target"].as_str().is_some_and(|of| of.contains("execution")))
        .collect();
    assert!(ours.len() >= 2, "{log}");
    for line in ours {
        let span = &line["span"];
        assert_eq!(span["name"], "execution", "{line}");
        assert_eq!((&span["uid"], &span["request_id"]), (&json!("u"), &json!("r-7")), "{line}");
    }
}

fn check(outcome: AttemptOutcome, attempt: u32, unused: u32, expected: &str) {
    let step = match next_step(outcome, attempt, unused, &admitted(1)) {
        Step::Finish(conclusion) => format!("finish {:?} {}", conclusion.phase, conclusion.must_end),
        Step::NewSandbox(message) => format!("new sandbox: {message}"),
        Step::Retry(conclusion) => format!("retry {:?}", conclusion.reason.unwrap()),
        Step::WaitForRoom(message) => format!("wait: {message}"),
        Step::TakenOver(_) => "taken over".into(),
    };
    assert_eq!(step, expected);
}

#[test]
fn what_follows_an_attempt_depends_on_its_outcome_only() {
    let unused = || AttemptOutcome::Unused { message: "idle".into() };
    check(unused(), 1, 0, "new sandbox: idle");
    check(unused(), 1, 1, "new sandbox: idle");
    check(unused(), 1, 2, "finish Failed true");
    let no_room = || AttemptOutcome::NoRoom { message: "full".into() };
    check(no_room(), 1, 0, "wait: full");
    check(no_room(), 2, 2, "wait: full");
    let lost = || AttemptOutcome::lost("gone".into());
    check(lost(), 1, 0, "retry SandboxLost");
    check(lost(), 2, 0, "finish Failed true");
    check(AttemptOutcome::Cancelled, 1, 0, "finish Cancelled true");
    check(AttemptOutcome::TimedOut, 1, 0, "finish TimedOut true");
    let never = AttemptOutcome::Unusable { reason: Reason::Unschedulable, message: "huge".into() };
    check(never, 1, 0, "finish Failed true");
    let receipt = Box::new(Receipt::unused(Isolation::default()));
    let ran = AttemptOutcome::Ran { receipt, captured: attempt_outcome::Captured::default() };
    check(ran, 1, 0, "finish Failed false");
}

#[test]
fn only_an_output_whose_check_may_take_long_is_checked_on_a_thread_of_its_own() {
    let takes_long = |bytes: usize, admitted: &Admitted| {
        let captured = attempt_outcome::Captured { stdout: vec![b'0'; bytes], ..Default::default() };
        let receipt = Box::new(Receipt::unused(Isolation::default()));
        large_output(&AttemptOutcome::Ran { receipt, captured }, admitted).is_some()
    };
    let plain = admitted(0);
    assert!(!takes_long(SMALL_OUTPUT, &plain) && takes_long(SMALL_OUTPUT + 1, &plain));
    let mut restricted = admitted(0);
    let schema = Schema::compile("spec.tool.outputSchema", &json!({})).unwrap();
    Arc::make_mut(&mut restricted.content).output_schema = Some(Arc::new(schema));
    assert!(takes_long(0, &restricted));
    assert_eq!(large_output(&AttemptOutcome::Cancelled, &restricted), None);
}

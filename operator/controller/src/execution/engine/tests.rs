//! The engine over a scripted API server: executions that cannot be read or run, and runs that another operator ended.

use std::{
    convert::Infallible,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use futures::stream;
use http::{Method, Request, Response};
use kube::{Client, client::Body};
use serde_json::json;
use skillet_api::names;
use skillet_core::{lane::Lane, queue::SandboxSize};
use skillet_kube::lock;
use tokio::time::{sleep, timeout};
use tracing::Span;

use super::{
    super::{
        queued_status::QueuedStatusWriter,
        tests::{Call, Calls, calls, context, execution, serving},
    },
    *,
};
use crate::version_head::VersionHead;

type Events = mpsc::UnboundedSender<watcher::Event<RawObject<SkillExecution>>>;

fn failed(code: u16) -> (u16, Vec<u8>) {
    let status = json!({ "kind": "Status", "status": "Failure", "code": code, "message": "unable to parse", "reason": if code == 404 { "NotFound" } else { "" } });
    (code, status.to_string().into_bytes())
}

/// An engine over a server that answers reads by `read`, and takes every write.
fn start(read: impl Fn(&Call) -> Option<(u16, Vec<u8>)> + Send + Sync + 'static) -> (Events, Calls) {
    let (client, seen) = serving(move |call| {
        let written = || Some((200, json!({ "metadata": { "name": "e" } }).to_string().into_bytes()));
        if call.is_read() { read(call) } else { written() }
    });
    let engine = Engine::new(context(client), LeftoverRuns::default(), mpsc::unbounded_channel().0);
    let (events, receiver) = mpsc::unbounded_channel();
    let events_of =
        stream::unfold(receiver, |mut events| async move { Some((events.recv().await?, events)) });
    tokio::spawn(engine.work(events_of));
    (events, seen)
}

async fn status(seen: &Calls) -> serde_json::Value {
    let written = async {
        loop {
            if let Some(call) = calls(seen).iter().find(|call| call.is_status()) {
                return call.body["status"].clone();
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(Duration::from_secs(300), written).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_skill_that_is_no_name_is_refused_without_a_request_for_it() {
    for skill in ["word-count@1.0.0", "My Skill", ".."] {
        let (events, seen) = start(|_| None);
        events.send(watcher::Event::Apply(RawObject::new(&execution(skill)).unwrap())).unwrap();
        let status = status(&seen).await;
        assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("SpecInvalid")));
        assert!(status["message"].as_str().unwrap().starts_with("spec.skill: "), "{status}");
        assert!(!calls(&seen).iter().any(Call::is_read));
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_that_the_api_server_refuses_ends_the_execution() {
    let read = |call: &Call| Some(failed(if call.path.ends_with("/skillversions") { 400 } else { 404 }));
    let (events, seen) = start(read);
    events.send(watcher::Event::Apply(RawObject::new(&execution("s")).unwrap())).unwrap();
    let status = status(&seen).await;
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("ApiError")));
    assert_eq!(status["message"], "could not read SkillVersion: unable to parse");
    assert_eq!(calls(&seen).iter().filter(|call| call.is_read()).count(), 3, "each once");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_execution_is_not_asked_for_any_more() {
    let (events, seen) = start(|_| None);
    let raw = RawObject::new(&execution("s")).unwrap();
    events.send(watcher::Event::Apply(raw.clone())).unwrap();
    sleep(Duration::from_secs(10)).await;
    let asked = calls(&seen).len();
    assert!(asked > 3, "{asked}");
    events.send(watcher::Event::Delete(raw)).unwrap();
    sleep(Duration::from_secs(60)).await;
    assert!(calls(&seen).len() <= asked + 1);
}

/// The `number`th of many executions, in one of fifty namespaces.
fn numbered(number: usize) -> SkillExecution {
    let mut execution = execution("s");
    execution.metadata.uid = Some(format!("u{number}"));
    execution.metadata.name = Some(format!("e{number}"));
    execution.metadata.namespace = Some(format!("team-{}", number % 50));
    execution
}

/// The load of a server that takes a tenth of a second for each request. It answers the first status of each execution
/// with 429, and has no Skill.
#[derive(Default)]
struct Load {
    /// Reads and writes at this time.
    now: [AtomicUsize; 2],
    most: [AtomicUsize; 2],
    /// Paths of the statuses that were sent, and whether each was taken.
    statuses: Mutex<HashMap<String, bool>>,
}

impl Load {
    fn serve(self: &Arc<Self>) -> Client {
        let load = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let load = load.clone();
            async move {
                let kind = usize::from(request.method() != Method::GET);
                load.most[kind].fetch_max(load.now[kind].fetch_add(1, Relaxed) + 1, Relaxed);
                sleep(Duration::from_millis(100)).await;
                load.now[kind].fetch_sub(1, Relaxed);
                let (code, body) = load.answer(request.uri().path());
                Ok::<_, Infallible>(Response::builder().status(code).body(Body::from(body)).unwrap())
            }
        });
        Client::new(service, "default")
    }

    fn answer(&self, path: &str) -> (u16, Vec<u8>) {
        if path.ends_with("/status") {
            let mut statuses = lock(&self.statuses);
            let is_second = statuses.contains_key(path);
            statuses.insert(path.to_owned(), is_second);
            if !is_second {
                return failed(429);
            }
        }
        let list = json!({ "metadata": { "name": "e" }, "items": [] });
        if path.ends_with("/skills/s") { failed(404) } else { (200, list.to_string().into_bytes()) }
    }

    /// Waits until `count` statuses were taken. Returns the most reads and writes at one time.
    async fn wait_for_statuses(&self, count: usize) -> (usize, usize) {
        let all = async {
            while lock(&self.statuses).values().filter(|is_taken| **is_taken).count() < count {
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(Duration::from_secs(300), all).await.unwrap();
        (self.most[0].load(Relaxed), self.most[1].load(Relaxed))
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_refused_executions_is_read_and_written_a_few_at_a_time() {
    let load = Arc::new(Load::default());
    let engine = Engine::new(context(load.serve()), LeftoverRuns::default(), mpsc::unbounded_channel().0);
    let burst: Vec<_> = (0..500).map(|number| RawObject::new(&numbered(number)).unwrap()).collect();
    let events = stream::iter(burst).map(watcher::Event::Apply).chain(stream::pending());
    let (reads, writes) = tokio::select! {
        most = load.wait_for_statuses(500) => most,
        () = engine.work(events) => unreachable!(),
    };
    assert!((8..=16).contains(&reads), "{reads}");
    assert!((4..=8).contains(&writes), "{writes}");
}

#[tokio::test(start_paused = true)]
async fn every_waiting_execution_gets_its_status_also_from_a_busy_server() {
    let load = Arc::new(Load::default());
    let ctx = context(load.serve());
    let start = |number| {
        let reference = Arc::new(ExecutionRef::of(&numbered(number)).unwrap());
        QueuedStatusWriter::start(&ctx, &reference, &Span::none(), "why")
    };
    let mut writers: Vec<_> = (0..500).map(start).collect();
    // Its turn has not come, so nothing is sent.
    writers.pop().unwrap().finish().await;
    let (_, most) = load.wait_for_statuses(499).await;
    assert_eq!(most, 8);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(lock(&load.statuses).len(), 499);
}

/// A list of one sandbox's Job, of which only what the next operator reads is there.
fn list_of_a_job() -> String {
    let labels = json!({
        "skillet.dev/execution-uid": "u", "skillet.dev/execution-namespace": "team", "skillet.dev/skill": "s",
        "skillet.dev/version": "1.0.0", "skillet.dev/sandbox": "1", "skillet.dev/attempt": "1",
    });
    let container =
        json!({ "name": "sandbox", "resources": { "limits": { "cpu": "1500m", "memory": "1073741824" } } });
    let spec = json!({ "template": { "spec": { "containers": [container] } } });
    let job = json!({ "metadata": { "name": "run-u-1", "labels": labels }, "spec": spec });
    json!({ "metadata": {}, "items": [job] }).to_string()
}

#[tokio::test(start_paused = true)]
async fn a_run_of_an_earlier_operator_counts_in_the_lane_of_its_caller_with_its_size() {
    let (client, _) = serving(|_| Some((200, list_of_a_job().into_bytes())));
    let ctx = context(client);
    let meta = execution("s").metadata;
    ctx.catalog.learn_version(&VersionHead::new("s", "1.0.0", "d").into_version(&meta));
    let leftovers = LeftoverRuns::list(&ctx.sandbox_jobs(), &ctx.version_pins).await.unwrap();
    let mut engine = Engine::new(ctx, leftovers, mpsc::unbounded_channel().0);
    let mut execution = execution("s");
    execution.metadata.labels = Some([(names::LABEL_CALLER_NAMESPACE.to_owned(), "app".to_owned())].into());
    engine.apply(RawObject::new(&execution).unwrap());
    let running = &engine.running;
    assert_eq!(running.in_lane(&Lane::new("team", Some("app"))), 1);
    assert_eq!((running.total(), running.of_skill("team", "s")), (1, 1));
    let size = SandboxSize { cpu_millis: 1500, memory_bytes: 1 << 30 };
    assert_eq!(engine.entries["u"].size, size);
    engine.free_place(&"u".to_owned());
    assert_eq!(engine.running.total(), 0);
}

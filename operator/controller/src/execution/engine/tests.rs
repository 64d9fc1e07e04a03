//! The engine over a scripted API server: executions that cannot be read or run, and runs that another operator ended.

use std::time::Duration;

use futures::stream;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::{
    super::tests::{Call, Calls, calls, context, execution, serving},
    *,
};

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
    assert!(asked > 5, "{asked}");
    events.send(watcher::Event::Delete(raw)).unwrap();
    sleep(Duration::from_secs(60)).await;
    assert!(calls(&seen).len() <= asked + 1);
}

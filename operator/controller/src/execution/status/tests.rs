//! Tests of `status`.

use serde_json::{Value, json};
use skillet_api::execution::StreamStatus;

use super::*;

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn finished_with(output: Value) -> SkillExecutionStatus {
    let conclusion = Conclusion {
        phase: Phase::Succeeded,
        reason: Some(Reason::Succeeded),
        output: Some(output),
        attempts: 1,
        ..Conclusion::default()
    };
    finished(conclusion, Some(1), now())
}

#[test]
fn a_success_is_finished_and_succeeded() {
    let status = finished_with(json!({"a": 1}));
    let said: Vec<_> =
        status.conditions.iter().map(|c| (c.type_.as_str(), c.status.as_str(), c.reason.as_str())).collect();
    assert_eq!(said, [("Finished", "True", "Succeeded"), ("Succeeded", "True", "Succeeded")]);
    assert_eq!(status.finished_at, Some(MicroTime(now())));
    assert!(!status.truncated && status.job.is_none());
}

#[test]
fn a_failure_is_finished_and_not_succeeded_for_the_same_reason() {
    let status = finished(Conclusion::failed(Reason::SkillOff, "mode is off".into()), Some(1), now());
    let said: Vec<_> = status.conditions.iter().map(|c| (c.type_.as_str(), c.status.as_str())).collect();
    assert_eq!(said, [("Finished", "True"), ("Succeeded", "False"), ("Stalled", "True")]);
    let reasons = status.conditions.iter().map(|c| (c.reason.as_str(), c.message.as_str()));
    assert!(reasons.into_iter().all(|said| said == ("SkillOff", "mode is off")), "{:?}", status.conditions);
}

#[test]
fn a_status_without_its_texts_keeps_sizes_and_digests() {
    let mut status = finished_with(json!({"a": 1}));
    let stream = StreamStatus { head: "a".into(), tail: "b".into(), bytes: 7, sha256: "d".into() };
    status.stderr = Some(stream.clone());
    drop_texts(&mut status);
    assert_eq!(status.stderr, Some(StreamStatus { head: String::new(), tail: String::new(), ..stream }));
    assert_eq!((status.output, status.stdout), (None, None));
    assert_eq!((status.phase, status.reason), (Phase::Failed, Some(Reason::OutputTooLarge)));
    let succeeded = status.conditions.iter().find(|condition| condition.type_ == SUCCEEDED).unwrap();
    assert_eq!((succeeded.status.as_str(), succeeded.reason.as_str()), ("False", "OutputTooLarge"));
    let stalled = find_condition(&status.conditions, STALLED).unwrap();
    assert_eq!((stalled.status.as_str(), stalled.reason.as_str()), ("True", "OutputTooLarge"));
    assert!(status.truncated && status.conditions.iter().all(|c| c.message.contains("digests")));
}

#[test]
fn a_running_status_names_the_sandbox() {
    let sandbox = SandboxRef {
        job: "run-u-1".into(),
        pod: Some("run-u-1-x".into()),
        node: Some("n".into()),
        ..SandboxRef::default()
    };
    let status = running("1.2.3", "d", 2, &sandbox, now());
    assert_eq!((status.phase, status.attempts, status.node.as_deref()), (Phase::Running, 2, Some("n")));
    assert_eq!(status.digest.as_deref(), Some("d"));
    assert!(status.finished_at.is_none());
}

#[test]
fn a_released_sandbox_leaves_its_job_and_no_start() {
    let first = released("1.2.3", 0, "run-u-2", "waits for room".into(), now());
    assert_eq!((first.phase, first.reason), (Phase::Pending, Some(Reason::Queued)));
    assert_eq!((first.attempts, first.job.as_deref()), (0, Some("run-u-2")));
    assert!(first.started_at.is_none() && first.resolved_version.is_none());
    let second = released("1.2.3", 1, "run-u-3", "waits for room".into(), now());
    assert_eq!((second.attempts, second.resolved_version.as_deref()), (1, Some("1.2.3")));
}

#[test]
fn between_two_attempts_the_status_says_how_the_last_one_ended() {
    let sandbox = SandboxRef { job: "run-u-1".into(), ..SandboxRef::default() };
    let lost = Conclusion::failed(Reason::SandboxLost, "the node is gone".into());
    let status = retried("1.2.3", 1, &sandbox, &lost, now());
    assert_eq!((status.phase, status.reason), (Phase::Pending, Some(Reason::SandboxLost)));
    assert_eq!((status.attempts, status.job.as_deref()), (1, Some("run-u-1")));
    assert_eq!(
        status.message.as_deref(),
        Some("attempt 1 ended SandboxLost (the node is gone); it is tried again")
    );
}

#[test]
fn tools_that_read_kstatus_wait_for_an_execution_that_has_not_ended() {
    let sandbox = SandboxRef::default();
    let statuses = [
        queued("waits", now()),
        starting(None, "waits", now()),
        running("1.2.3", "d", 1, &sandbox, now()),
        retried("1.2.3", 1, &sandbox, &Conclusion::default(), now()),
        released("1.2.3", 1, "run-u-1", "waits".into(), now()),
    ];
    for status in statuses {
        let [condition] = &status.conditions[..] else { panic!("{status:?}") };
        assert_eq!((condition.type_.as_str(), condition.status.as_str()), (RECONCILING, "True"));
        assert_eq!(condition.reason, format!("{:?}", status.phase));
        assert_eq!(condition.last_transition_time.0, now());
    }
}

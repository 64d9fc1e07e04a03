//! Sandboxes that a quota refuses.

use super::*;

/// A run of a sandbox without a pod, of whose Job the events say this. The status of its Job is `job`.
async fn run_refused(state: SandboxState, message: &'static str, job: Value) -> (RunEnd, Value) {
    let (client, seen) = serving(move |call| {
        let (code, body) = match (&call.method, call.path.rsplit('/').next()) {
            (&Method::POST, Some("jobs")) => (201, json!({ "metadata": { "name": "run-u-1" } }).to_string()),
            (&Method::GET, Some("jobs")) => {
                let job = json!({ "metadata": { "name": "run-u-1" }, "status": job });
                (200, json!({ "metadata": {}, "items": [job] }).to_string())
            }
            (&Method::GET, Some("events")) => {
                let event = json!({ "metadata": {}, "involvedObject": {}, "reason": "FailedCreate", "message": message });
                (200, json!({ "metadata": {}, "items": [event] }).to_string())
            }
            _ => answer(call),
        };
        Some((code, body.into_bytes()))
    });
    let ctx = context(client);
    let point = ResumePoint { sandbox: state, ..ResumePoint::FIRST };
    let end = run(&ctx, Assignment { point, ..assignment(&execution("s"), 1) }).await;
    let status = calls(&seen).iter().rev().find(|call| call.is_status()).unwrap().body["status"].clone();
    (end, status)
}

const NO_QUOTA: &str = "Error creating: pods \"p\" is forbidden: exceeded quota: q, requested: limits.cpu=4, used: limits.cpu=8, limited: limits.cpu=9";

#[tokio::test(start_paused = true)]
async fn a_run_whose_sandbox_a_quota_refuses_waits() {
    for state in [SandboxState::NotCreated, SandboxState::Exists] {
        let began = tokio::time::Instant::now();
        let (end, status) = run_refused(state, NO_QUOTA, json!({})).await;
        assert!(matches!(end, RunEnd::NoRoom(_)), "{state:?}: {status}");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert_eq!((&status["phase"], &status["reason"]), (&json!("Pending"), &json!("Queued")));
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with("waits for room in the cluster: exceeded quota: q, "), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_larger_than_a_quota_or_refused_by_another_rule_fails() {
    let huge = "Error creating: exceeded quota: q, requested: limits.cpu=4, used: limits.cpu=0, limited: limits.cpu=2";
    let (end, status) = run_refused(SandboxState::NotCreated, huge, json!({})).await;
    assert!(matches!(end, RunEnd::Finished));
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("Unschedulable")));
    let other = "Error creating: pods \"p\" is forbidden: violates PodSecurity";
    let (end, status) = run_refused(SandboxState::NotCreated, other, json!({})).await;
    assert!(matches!(end, RunEnd::Finished));
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("SandboxUnavailable")));
}

/// A pod that was refused, came a moment later, and is gone: it may have run the program.
#[tokio::test(start_paused = true)]
async fn an_adopted_sandbox_that_had_a_pod_after_a_refusal_is_not_run_again() {
    let uncounted = json!({ "uncountedTerminatedPods": { "failed": ["p"] } });
    let (end, status) = run_refused(SandboxState::Exists, NO_QUOTA, uncounted).await;
    assert!(matches!(end, RunEnd::Finished));
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("SandboxLost")));
}

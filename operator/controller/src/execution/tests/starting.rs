//! Sandboxes that take long to start.

use kube::ResourceExt as _;

use super::*;

/// The statuses of a run whose new sandbox has this pod.
async fn statuses(ordinal: u32, pod_yaml: &str) -> Vec<Value> {
    let (client, seen) = serving(|call| {
        let (code, body) = match (&call.method, call.path.rsplit('/').next()) {
            (&Method::POST, Some("jobs")) => (201, json!({ "metadata": { "name": "run-u-1" } }).to_string()),
            _ => answer(call),
        };
        Some((code, body.into_bytes()))
    });
    let ctx = context(client);
    let mut shown = pod(pod_yaml);
    shown.labels_mut().insert("batch.kubernetes.io/job-name".into(), format!("run-u-{ordinal}"));
    ctx.pods.show(shown, false);
    let point = ResumePoint { ordinal, sandbox: SandboxState::NotCreated, ..ResumePoint::FIRST };
    run(&ctx, Assignment { point, ..assignment(&execution("s"), ordinal) }).await;
    calls(&seen).iter().filter(|call| call.is_status()).map(|call| call.body["status"].clone()).collect()
}

const NO_IMAGE: &str = "spec: {containers: [], nodeName: n}\nstatus: {containerStatuses: [{name: c, image: i, imageID: '', ready: false, restartCount: 0, state: {waiting: {reason: ErrImagePull, message: no such host}}}]}";

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_does_not_start_says_once_what_it_waits_for() {
    let written = statuses(1, NO_IMAGE).await;
    let [first, last] = &written[..] else { panic!("{written:?}") };
    assert_eq!(first["message"], "n cannot start the image shell:1: ErrImagePull: no such host");
    assert_eq!((&first["phase"], &first["reason"]), (&json!("Pending"), &Value::Null));
    // By the name of a Job the next operator would take the sandbox for used.
    assert_eq!((&first["job"], &first["attempts"]), (&Value::Null, &json!(0)));
    assert_eq!((&last["phase"], &last["reason"]), (&json!("Failed"), &json!("ImageUnavailable")));
}

#[tokio::test(start_paused = true)]
async fn a_second_sandbox_that_does_not_start_keeps_the_name_of_the_first() {
    let written = statuses(2, NO_IMAGE).await;
    assert_eq!(written[0]["job"], "run-u-1", "{written:?}");
}

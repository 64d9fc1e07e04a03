//! Tests of `pod_state`.

use std::sync::Arc;

use skillet_protocol::{Isolation, RunOutcome};

use super::*;

fn state(yaml: &str) -> PodState {
    view(yaml, false)
}

fn view(yaml: &str, is_deleted: bool) -> PodState {
    let pod: Pod = serde_saphyr::from_str(yaml).unwrap();
    PodState::of(Some(&PodView { pod: Arc::new(pod), is_deleted }))
}

#[test]
fn without_a_pod_there_is_only_the_job() {
    assert_eq!(PodState::of(None), PodState::NoPod);
}

#[test]
fn a_pod_without_a_node_has_the_schedulers_message() {
    assert_eq!(state("spec: {containers: []}"), PodState::Unscheduled);
    let full = "spec: {containers: []}\nstatus: {conditions: [{type: PodScheduled, status: 'False', message: 0/1 nodes are available}]}";
    assert_eq!(state(full), PodState::Unschedulable { message: "0/1 nodes are available".into() });
}

#[test]
fn a_bound_pod_may_be_attached_to() {
    assert_eq!(state("spec: {containers: [], nodeName: n}"), PodState::Bound);
    let creating = "spec: {containers: [], nodeName: n}\nstatus: {containerStatuses: [{name: c, image: i, imageID: '', ready: false, restartCount: 0, state: {waiting: {reason: ContainerCreating}}}]}";
    assert_eq!(state(creating), PodState::Bound);
}

fn waiting_with(reason: &str, message: &str) -> PodState {
    state(&format!(
        "spec: {{containers: [], nodeName: n}}\nstatus: {{containerStatuses: [{{name: c, image: i, imageID: '', ready: false, restartCount: 0, state: {{waiting: {{reason: {reason}, message: '{message}'}}}}}}]}}"
    ))
}

#[test]
fn an_image_that_can_never_be_pulled_is_final() {
    for (reason, message, wanted) in [
        ("ErrImageNeverPull", "no", true),
        ("InvalidImageName", "no", true),
        ("ErrImagePull", "docker.io/x: not found", true),
        ("ErrImagePull", "connection refused", false),
        ("ImagePullBackOff", "Back-off", false),
        ("CreateContainerError", "no such file", false),
    ] {
        match waiting_with(reason, message) {
            PodState::ImageProblem { message: text, is_final } => {
                assert_eq!(is_final, wanted, "{reason} {message}");
                assert_eq!(text, format!("{reason}: {message}"));
            }
            other => panic!("{reason}: {other:?}"),
        }
    }
}

fn terminated(body: &str) -> String {
    format!(
        "spec: {{containers: [], nodeName: n}}\nstatus: {{phase: Failed, containerStatuses: [{{name: c, image: i, imageID: '', ready: false, restartCount: 0, state: {{terminated: {{{body}}}}}}}]}}"
    )
}

#[test]
fn a_container_killed_for_memory_says_so() {
    let PodState::Ended(ended) = state(&terminated("exitCode: 137, reason: OOMKilled")) else {
        panic!("not ended")
    };
    assert!(ended.is_out_of_memory);
    assert_eq!(ended.receipt, None);
    assert_eq!(ended.message, "OOMKilled");
}

#[test]
fn the_receipt_is_read_from_the_termination_message() {
    let receipt = Receipt::unused(Isolation::default());
    let text = receipt.termination_message().replace('\'', "''");
    let PodState::Ended(ended) =
        state(&terminated(&format!("exitCode: 0, reason: Completed, message: '{text}'")))
    else {
        panic!("not ended")
    };
    assert_eq!(ended.receipt.map(|r| r.outcome), Some(RunOutcome::Unused));
    assert_eq!(ended.message, "Completed");
}

#[test]
fn a_deleted_pod_keeps_what_was_seen_of_its_end() {
    assert_eq!(view("spec: {containers: [], nodeName: n}", true), PodState::Gone(None));
    match view(&terminated("exitCode: 1, reason: Error, message: ' bad '"), true) {
        PodState::Gone(Some(ended)) => assert_eq!(ended.message, "Error: bad"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_running_pod_that_is_not_ready_is_on_a_lost_node() {
    let lost = |state: &str, ready: &str, is_deleted: bool| {
        let pod: Pod = serde_saphyr::from_str(&format!(
            "spec: {{containers: [], nodeName: n}}\nstatus: {{conditions: [{{type: Ready, status: '{ready}'}}], containerStatuses: [{{name: c, image: i, imageID: '', ready: true, restartCount: 0, state: {{{state}}}}}]}}"
        ))
        .unwrap();
        is_node_unreachable(&PodView { pod: Arc::new(pod), is_deleted })
    };
    assert!(lost("running: {}", "False", false));
    assert!(!lost("running: {}", "True", false));
    assert!(!lost("running: {}", "False", true), "deleted");
    assert!(!lost("waiting: {reason: ContainerCreating}", "False", false));
}

#[test]
fn an_evicted_pod_has_ended_without_a_container_status() {
    match state(
        "spec: {containers: [], nodeName: n}\nstatus: {phase: Failed, reason: Evicted, message: disk}",
    ) {
        PodState::Ended(ended) => assert_eq!(ended.message, "Evicted: disk"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_image_of_the_sandbox_is_the_one_that_its_node_reports() {
    let check = |container: &str, id: &str, expected: Option<&str>| {
        let pod: Pod = serde_saphyr::from_str(&format!(
            "spec: {{containers: []}}\nstatus: {{containerStatuses: [{{name: {container}, image: 'r.example/a:1', imageID: '{id}', ready: true, restartCount: 0}}]}}"
        ))
        .unwrap();
        assert_eq!(image_id(&pod), expected, "{container} {id}");
    };
    check("sandbox", "r.example/a@sha256:0123", Some("r.example/a@sha256:0123"));
    check("sandbox", "", None);
    check("sandbox", &"a".repeat(1025), None);
    check("injected", "r.example/sidecar@sha256:0123", None);
    assert_eq!(image_id(&Pod::default()), None);
}

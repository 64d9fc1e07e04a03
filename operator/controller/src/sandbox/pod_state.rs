//! The state of a sandbox by its pod's status. Pure: a pod goes in, one of few states comes out.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStateWaiting, Pod, PodCondition};
use skillet_protocol::Receipt;

use super::pod_watch::PodView;

/// The state of a sandbox as the API shows it.
#[derive(Clone, Debug, PartialEq)]
pub enum PodState {
    /// The Job has no pod yet.
    NoPod,
    /// The pod has no node, and the scheduler has not said why.
    Unscheduled,
    /// The scheduler found no node for the pod; it tries again when the cluster changes.
    Unschedulable { message: String },
    /// Bound to a node. The container may run already: the API is up to a second late.
    Bound,
    /// The container cannot be made from its image. `is_final` when trying again cannot help.
    ImageProblem { message: String, is_final: bool },
    /// The container has ended and the pod still exists.
    Ended(Ended),
    /// The pod was deleted; how its container ended, if that was seen.
    Gone(Option<Ended>),
}

/// The end of a container.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// A container was started and ended; else the pod ended without one, such as by eviction.
    pub is_container: bool,
    /// The kernel ended the container for its memory limit.
    pub is_out_of_memory: bool,
    /// The runner's receipt from the termination message.
    pub receipt: Option<Box<Receipt>>,
    /// Kubernetes' own message, for people.
    pub message: String,
}

impl Ended {
    /// Returns true if the runner's receipt is that of a run.
    pub fn was_used(&self) -> bool {
        self.receipt.as_ref().is_some_and(|receipt| !receipt.is_unused())
    }

    /// Returns true if the kubelet refused the pod because its node had no room, as in `OutOfcpu`.
    pub fn had_no_room(&self) -> bool {
        !self.is_container && self.message.starts_with("OutOf")
    }
}

const OOM_KILLED: &str = "OOMKilled";
/// Waiting reasons after which the kubelet never tries again.
const FINAL_WAITING: [&str; 2] = ["ErrImageNeverPull", "InvalidImageName"];
/// Waiting reasons that mean trouble with the image or with making the container from it.
const IMAGE_WAITING: [&str; 8] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

impl PodState {
    /// Reads the newest known state of a sandbox's pod.
    pub fn of(view: Option<&PodView>) -> Self {
        let Some(view) = view else { return Self::NoPod };
        let ended = ended(&view.pod);
        if view.is_deleted {
            return Self::Gone(ended);
        }
        if let Some(ended) = ended {
            return Self::Ended(ended);
        }
        if view.pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none()) {
            return unschedulable(&view.pod).unwrap_or(Self::Unscheduled);
        }
        waiting(&view.pod).and_then(image_problem).unwrap_or(Self::Bound)
    }
}

/// Returns true if the control plane has lost the pod's node: a pod whose container runs is then not ready. A sandbox has
/// no readiness check of its own.
pub fn is_node_unreachable(view: &PodView) -> bool {
    let Some(status) = view.pod.status.as_ref().filter(|_| !view.is_deleted) else { return false };
    let is_running = status
        .container_statuses
        .iter()
        .flatten()
        .any(|container| container.state.as_ref().is_some_and(|state| state.running.is_some()));
    let is_ready = |condition: &PodCondition| condition.type_ == "Ready" && condition.status == "True";
    is_running && !status.conditions.iter().flatten().any(is_ready)
}

fn ended(pod: &Pod) -> Option<Ended> {
    let status = pod.status.as_ref()?;
    let terminated = status
        .container_statuses
        .iter()
        .flatten()
        .find_map(|container| container.state.as_ref()?.terminated.as_ref());
    let pod_is_over = matches!(status.phase.as_deref(), Some("Failed" | "Succeeded"));
    match terminated {
        Some(terminated) => Some(from_terminated(terminated)),
        None if pod_is_over => Some(Ended {
            is_container: false,
            is_out_of_memory: false,
            receipt: None,
            message: join(status.reason.as_deref(), status.message.as_deref()),
        }),
        None => None,
    }
}

fn from_terminated(terminated: &ContainerStateTerminated) -> Ended {
    let receipt = terminated.message.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let message = match &receipt {
        Some(_) => join(terminated.reason.as_deref(), None),
        None => join(terminated.reason.as_deref(), terminated.message.as_deref()),
    };
    Ended {
        is_container: true,
        is_out_of_memory: terminated.reason.as_deref() == Some(OOM_KILLED),
        receipt,
        message,
    }
}

fn join(reason: Option<&str>, message: Option<&str>) -> String {
    match (reason, message) {
        (Some(reason), Some(message)) => format!("{reason}: {}", message.trim()),
        (Some(text), None) | (None, Some(text)) => text.trim().to_owned(),
        (None, None) => "the container ended without a reason".to_owned(),
    }
}

fn unschedulable(pod: &Pod) -> Option<PodState> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|c| c.type_ == "PodScheduled" && c.status == "False")?;
    Some(PodState::Unschedulable { message: scheduled.message.clone().unwrap_or_default() })
}

fn waiting(pod: &Pod) -> Option<&ContainerStateWaiting> {
    let status = pod.status.as_ref()?;
    let init = status.init_container_statuses.iter().flatten();
    init.chain(status.container_statuses.iter().flatten())
        .find_map(|container| container.state.as_ref()?.waiting.as_ref())
}

fn image_problem(waiting: &ContainerStateWaiting) -> Option<PodState> {
    let reason = waiting.reason.as_deref()?;
    if !IMAGE_WAITING.contains(&reason) {
        return None;
    }
    let detail = waiting.message.as_deref().unwrap_or_default();
    // A registry that answered "there is no such image" will not change its mind within a start limit.
    let is_pull = matches!(reason, "ErrImagePull" | "ImagePullBackOff");
    let is_final = FINAL_WAITING.contains(&reason) || (is_pull && detail.contains("not found"));
    Some(PodState::ImageProblem { message: join(Some(reason), waiting.message.as_deref()), is_final })
}

#[cfg(test)]
mod tests {
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
}

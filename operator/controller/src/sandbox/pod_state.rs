//! The state of a sandbox by its pod's status. Pure: a pod goes in, one of few states comes out.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStateWaiting, Pod, PodCondition};
use skillet_protocol::Receipt;

use super::{manifest::CONTAINER, pod_watch::PodView};

/// The state of a sandbox as the API shows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PodState {
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
pub(crate) struct Ended {
    /// A container was started and ended; else the pod ended without one, such as by eviction.
    pub(crate) is_container: bool,
    /// The kernel ended the container for its memory limit.
    pub(crate) is_out_of_memory: bool,
    /// The runner's receipt from the termination message.
    pub(crate) receipt: Option<Box<Receipt>>,
    /// Kubernetes' own message, for people.
    pub(crate) message: String,
}

impl Ended {
    /// Returns true if the runner's receipt is that of a run.
    pub(crate) fn was_used(&self) -> bool {
        self.receipt.as_ref().is_some_and(|receipt| !receipt.is_unused())
    }

    /// Returns true if the kubelet refused the pod because its node had no room, as in `OutOfcpu`.
    pub(crate) fn had_no_room(&self) -> bool {
        !self.is_container && self.message.starts_with("OutOf")
    }
}

/// Longest image that a status takes.
const MAX_IMAGE_ID: usize = 1024;
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
    pub(crate) fn of(view: Option<&PodView>) -> Self {
        let Some(view) = view else { return Self::NoPod };
        let ended = Self::end_of(&view.pod);
        if view.is_deleted {
            return Self::Gone(ended);
        }
        if let Some(ended) = ended {
            return Self::Ended(ended);
        }
        if view.pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none()) {
            return read_unschedulable(&view.pod).unwrap_or(Self::Unscheduled);
        }
        waiting(&view.pod).and_then(image_problem).unwrap_or(Self::Bound)
    }

    /// The end of a pod's container, if it has ended.
    pub(crate) fn end_of(pod: &Pod) -> Option<Ended> {
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
}

/// Returns the image of the sandbox's container, with its digest, if its node has reported it.
pub(crate) fn image_id(pod: &Pod) -> Option<&str> {
    let mut containers = pod.status.as_ref()?.container_statuses.iter().flatten();
    let id = &containers.find(|container| container.name == CONTAINER)?.image_id;
    (!id.is_empty() && id.len() <= MAX_IMAGE_ID).then_some(id.as_str())
}

/// Returns true if the control plane has lost the pod's node: a pod whose container runs is then not ready. A sandbox has
/// no readiness check of its own.
pub(crate) fn is_node_unreachable(view: &PodView) -> bool {
    let Some(status) = view.pod.status.as_ref().filter(|_| !view.is_deleted) else { return false };
    let is_running = status
        .container_statuses
        .iter()
        .flatten()
        .any(|container| container.state.as_ref().is_some_and(|state| state.running.is_some()));
    let is_ready = |condition: &PodCondition| condition.type_ == "Ready" && condition.status == "True";
    is_running && !status.conditions.iter().flatten().any(is_ready)
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

fn read_unschedulable(pod: &Pod) -> Option<PodState> {
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
mod tests;

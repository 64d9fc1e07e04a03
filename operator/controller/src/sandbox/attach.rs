//! Attaching to a sandbox: from a Job that was just created to a stream whose runner has proven its isolation.
//!
//! First the pod must get a node ([`wait_until_bound`]). Time without room in the cluster does not count against the
//! start limit. Then attach is tried until the container runs: the API says Running up to a second late.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::{Api, ResourceExt, api::ListParams};
use skillet_protocol::Ready;
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    pod_state::{Ended, PodState},
    pod_watch::PodReceiver,
    quota::QuotaRefusal,
    runner_stream::{RunnerStream, StreamEnd},
};

/// Shortest pause between two tries.
const FIRST_GAP: Duration = Duration::from_millis(15);
/// Longest pause between two tries.
const LAST_GAP: Duration = Duration::from_millis(500);

/// The error of a sandbox that gave no stream.
#[derive(Debug, Error)]
pub(crate) enum AttachError {
    #[error("the image cannot be started: {0}")]
    Image(String),
    /// The pod has no node, so nothing of it ran.
    #[error("the cluster has no room for the sandbox: {0}")]
    NoRoom(String),
    #[error("a quota has no room for the sandbox: {}", .0.message)]
    Quota(QuotaRefusal),
    #[error("no sandbox became usable within {limit:?}: {message}")]
    Timeout { limit: Duration, message: String },
    #[error("the sandbox ended before it was used: {}", .0.message)]
    Ended(Ended),
    #[error("the sandbox was deleted before it was used")]
    Gone(Option<Ended>),
    /// The attach succeeded, but the runner is not idle: another operator's run is in the sandbox.
    #[error("the sandbox is in use")]
    InUse(#[source] StreamEnd),
}

/// Returns true if the kubelet is still pulling `image` for `pod`. Its events say so, late under load. A pod whose
/// sandbox is ready and whose container does not exist waits for its image.
pub(crate) async fn is_pulling(events: &Api<Event>, pod: &Pod, image: &str) -> bool {
    let of_pod = ListParams::default().fields(&format!("involvedObject.name={}", pod.name_any()));
    let Ok(found) = events.list(&of_pod).await else { return false };
    let quoted = format!("\"{image}\"");
    let has = |reason: &str| {
        let is_published = |event: &Event| {
            event.reason.as_deref() == Some(reason)
                && event.message.as_deref().is_some_and(|message| message.contains(&quoted))
        };
        found.items.iter().any(is_published)
    };
    !has("Pulled") && (has("Pulling") || is_ready_to_start(pod))
}

fn is_ready_to_start(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "PodReadyToStartContainers" && condition.status == "True")
}

/// A stream to an idle runner, and where it runs.
pub(crate) struct Attached {
    pub(crate) stream: RunnerStream,
    pub(crate) ready: Ready,
    pub(crate) pod: String,
    pub(crate) node: String,
}

/// The times for which a pod may be without a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BindLimits {
    /// Until a Job has a pod, and until the scheduler has decided about that pod.
    pub(crate) undecided: Duration,
    /// After the scheduler found no room.
    pub(crate) no_room: Duration,
}

/// Waits until the pod that `receiver` follows has a node, or needs none because it has ended. Calls `on_no_room`
/// once, when the scheduler first finds no room.
pub(crate) async fn wait_until_bound(
    receiver: &mut PodReceiver,
    limits: BindLimits,
    on_no_room: impl FnOnce(),
) -> Result<(), AttachError> {
    let created_at = Instant::now();
    let (mut pod_at, mut no_room_at, mut on_no_room) = (None, None, Some(on_no_room));
    loop {
        let state = PodState::of(receiver.borrow_and_update().as_ref());
        let (deadline, error) = match state {
            PodState::NoPod => {
                let message = "no pod was made for the Job (an admission rule?)".to_owned();
                let error = AttachError::Timeout { limit: limits.undecided, message };
                (created_at + limits.undecided, error)
            }
            PodState::Unscheduled => {
                let since = *pod_at.get_or_insert_with(Instant::now);
                (
                    since + limits.undecided,
                    AttachError::NoRoom("the scheduler has not looked at the pod".into()),
                )
            }
            PodState::Unschedulable { message } => {
                let since = *no_room_at.get_or_insert_with(Instant::now);
                if let Some(on_no_room) = on_no_room.take() {
                    on_no_room();
                }
                (since + limits.no_room, AttachError::NoRoom(message))
            }
            PodState::Bound | PodState::ImageProblem { .. } | PodState::Ended(_) | PodState::Gone(_) => {
                return Ok(());
            }
        };
        if !matches!(timeout_at(deadline, receiver.changed()).await, Ok(Ok(()))) {
            return Err(error);
        }
    }
}

/// Attaches to the pod that `receiver` follows, within `limit`. The pod has a node, see [`wait_until_bound`].
pub(crate) async fn attach(
    pods: &Api<Pod>,
    receiver: &mut PodReceiver,
    epoch: u64,
    limit: Duration,
) -> Result<Attached, AttachError> {
    let bound_at = Instant::now();
    let deadline = bound_at + limit;
    loop {
        let state = PodState::of(receiver.borrow_and_update().as_ref());
        match state {
            PodState::ImageProblem { message, is_final: true } => return Err(AttachError::Image(message)),
            PodState::Ended(ended) => return Err(AttachError::Ended(ended)),
            PodState::Gone(ended) => return Err(AttachError::Gone(ended)),
            PodState::NoPod
            | PodState::Unscheduled
            | PodState::Unschedulable { .. }
            | PodState::ImageProblem { .. } => {
                if timeout_at(deadline, receiver.changed()).await.is_err() {
                    return Err(timeout_error(receiver, limit));
                }
            }
            PodState::Bound => {
                // A kubelet that accepts and does not answer must not hold this past its limit.
                if let Ok(attached) = timeout_at(deadline, try_attach(pods, receiver, epoch)).await
                    && let Some(attached) = attached?
                {
                    return Ok(attached);
                }
                if Instant::now() >= deadline {
                    return Err(timeout_error(receiver, limit));
                }
                // Each try costs a node under load time that it needs to start the pod, so that gaps grow.
                let gap = (bound_at.elapsed() / 8).clamp(FIRST_GAP, LAST_GAP);
                tokio::select! {
                    () = sleep(gap) => {}
                    _ = receiver.changed() => {}
                }
            }
        }
    }
}

async fn try_attach(
    pods: &Api<Pod>,
    receiver: &PodReceiver,
    epoch: u64,
) -> Result<Option<Attached>, AttachError> {
    let Some(pod) = receiver.borrow().as_ref().map(|view| view.pod.clone()) else { return Ok(None) };
    let name = pod.name_any();
    match RunnerStream::attach(pods, &name, epoch).await {
        Ok((stream, ready)) => {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
            Ok(Some(Attached { stream, ready, pod: name, node }))
        }
        // Not running yet, or the kubelet is busy: the next try finds out.
        Err(StreamEnd::Attach(_) | StreamEnd::Closed | StreamEnd::Read(_) | StreamEnd::Write(_)) => Ok(None),
        Err(
            end @ (StreamEnd::Protocol(_)
            | StreamEnd::Encode(_)
            | StreamEnd::TooLong
            | StreamEnd::NoAnswer
            | StreamEnd::NotReady),
        ) => Err(AttachError::InUse(end)),
    }
}

fn timeout_error(receiver: &PodReceiver, limit: Duration) -> AttachError {
    let message = match PodState::of(receiver.borrow().as_ref()) {
        PodState::ImageProblem { message, .. } => return AttachError::Image(message),
        PodState::Ended(ended) => return AttachError::Ended(ended),
        PodState::Gone(ended) => return AttachError::Gone(ended),
        PodState::NoPod | PodState::Unscheduled | PodState::Unschedulable { .. } | PodState::Bound => {
            "the container did not start".to_owned()
        }
    };
    AttachError::Timeout { limit, message }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, sync::Arc};

    use tokio::sync::watch;

    use super::{super::pod_watch::PodView, *};

    const LIMITS: BindLimits =
        BindLimits { undecided: Duration::from_secs(60), no_room: Duration::from_secs(5) };
    const UNDECIDED: &str = "spec: {containers: []}";
    const FULL: &str = "spec: {containers: []}\nstatus: {conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: Insufficient cpu}]}";
    const BOUND: &str = "spec: {containers: [], nodeName: n}";

    fn view(yaml: &str) -> PodView {
        let pod: Pod = serde_saphyr::from_str(yaml).unwrap();
        PodView { pod: Arc::new(pod), is_deleted: false }
    }

    /// Shows each pod after its second. Expects the error, the second of the decision, and the calls of `on_no_room`.
    async fn check(shown: &[(u64, &str)], expected: Result<(), &str>, after: u64, no_room: u32) {
        let (sender, mut receiver) = watch::channel(None);
        let (began, calls) = (Instant::now(), Cell::new(0));
        let show = async {
            for (second, yaml) in shown {
                tokio::time::sleep_until(began + Duration::from_secs(*second)).await;
                sender.send_replace(Some(view(yaml)));
            }
            std::future::pending::<()>().await;
        };
        let bound = wait_until_bound(&mut receiver, LIMITS, || calls.set(calls.get() + 1));
        let bound = tokio::select! {
            bound = bound => bound,
            () = show => unreachable!(),
        };
        assert_eq!(bound.map_err(|error| error.to_string()), expected.map_err(ToOwned::to_owned));
        assert_eq!((began.elapsed().as_secs(), calls.get()), (after, no_room), "{shown:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_without_a_verdict_has_the_start_limit_and_one_without_room_a_short_one() {
        let no_pod = "no sandbox became usable within 60s: no pod was made for the Job (an admission rule?)";
        check(&[], Err(no_pod), 60, 0).await;
        let undecided = "the cluster has no room for the sandbox: the scheduler has not looked at the pod";
        check(&[(10, UNDECIDED)], Err(undecided), 70, 0).await;
        let full = "the cluster has no room for the sandbox: Insufficient cpu";
        check(&[(1, UNDECIDED), (2, FULL), (4, FULL)], Err(full), 7, 1).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_gets_a_node_in_time_is_bound() {
        check(&[(59, BOUND)], Ok(()), 59, 0).await;
        check(&[(1, FULL), (5, BOUND)], Ok(()), 5, 1).await;
    }
}

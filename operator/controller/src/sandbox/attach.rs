//! Opening a sandbox: from a Job that was just made to a stream whose runner has proven its isolation.
//!
//! The API says Running up to a second after a container runs, so attach is tried from the moment the pod is
//! bound, never waited for.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::{Api, ResourceExt, api::ListParams};
use skillet_protocol::Ready;
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    pod_state::{Ended, PodState},
    pod_watch::PodReceiver,
    runner_stream::{RunnerStream, StreamEnd},
};

/// Shortest pause between two tries.
const FIRST_GAP: Duration = Duration::from_millis(15);
/// Longest pause between two tries.
const LAST_GAP: Duration = Duration::from_millis(500);

/// Why no stream came of a sandbox.
#[derive(Debug, Error)]
pub enum AttachError {
    #[error("the image cannot be started: {0}")]
    Image(String),
    #[error("no sandbox became usable within {limit:?}: {message}")]
    TooLate { limit: Duration, message: String },
    #[error("the sandbox ended before it was used: {}", .0.message)]
    Ended(Ended),
    #[error("the sandbox was deleted before it was used")]
    Gone(Option<Ended>),
    /// Attached, but the runner is not idle: somebody else's run is in it.
    #[error("the sandbox is in use")]
    InUse(#[source] StreamEnd),
}

/// Whether the kubelet is still pulling `image` for `pod`. Its events tell, and under load they come late: a pod whose
/// sandbox is ready and whose container is not there waits for its image.
pub async fn is_pulling(events: &Api<Event>, pod: &Pod, image: &str) -> bool {
    let of_pod = ListParams::default().fields(&format!("involvedObject.name={}", pod.name_any()));
    let Ok(found) = events.list(&of_pod).await else { return false };
    let quoted = format!("\"{image}\"");
    let has = |reason: &str| {
        let is_told = |event: &Event| {
            event.reason.as_deref() == Some(reason)
                && event.message.as_deref().is_some_and(|message| message.contains(&quoted))
        };
        found.items.iter().any(is_told)
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
pub struct Attached {
    pub stream: RunnerStream,
    pub ready: Ready,
    pub pod: String,
    pub node: String,
}

/// Waits for the pod that `follower` follows and attaches to it, for at most `limit`.
pub async fn attach(
    pods: &Api<Pod>,
    follower: &mut PodReceiver,
    epoch: u64,
    limit: Duration,
) -> Result<Attached, AttachError> {
    let deadline = Instant::now() + limit;
    let mut bound_at = None;
    loop {
        let state = PodState::of(follower.borrow_and_update().as_ref());
        match state {
            PodState::ImageProblem { message, is_final: true } => return Err(AttachError::Image(message)),
            PodState::Ended(ended) => return Err(AttachError::Ended(ended)),
            PodState::Gone(ended) => return Err(AttachError::Gone(ended)),
            PodState::NoPod | PodState::Unscheduled { .. } | PodState::ImageProblem { .. } => {
                if timeout_at(deadline, follower.changed()).await.is_err() {
                    return Err(too_late(follower, limit));
                }
            }
            PodState::Bound => {
                let bound_at = *bound_at.get_or_insert_with(Instant::now);
                // A kubelet that accepts and does not answer must not hold this past its limit.
                if let Ok(attached) = timeout_at(deadline, try_attach(pods, follower, epoch)).await
                    && let Some(opened) = attached?
                {
                    return Ok(opened);
                }
                if Instant::now() >= deadline {
                    return Err(too_late(follower, limit));
                }
                // A node under load is asked less often: each try costs it time it needs to start the pod.
                let gap = (bound_at.elapsed() / 8).clamp(FIRST_GAP, LAST_GAP);
                tokio::select! {
                    () = sleep(gap) => {}
                    _ = follower.changed() => {}
                }
            }
        }
    }
}

async fn try_attach(
    pods: &Api<Pod>,
    follower: &PodReceiver,
    epoch: u64,
) -> Result<Option<Attached>, AttachError> {
    let Some(pod) = follower.borrow().as_ref().map(|view| view.pod.clone()) else { return Ok(None) };
    let name = pod.name_any();
    match RunnerStream::attach(pods, &name, epoch).await {
        Ok((stream, ready)) => {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
            Ok(Some(Attached { stream, ready, pod: name, node }))
        }
        // Not running yet, or the kubelet is busy: the next try tells.
        Err(StreamEnd::Attach(_) | StreamEnd::Closed | StreamEnd::Read(_) | StreamEnd::Write(_)) => Ok(None),
        Err(
            end @ (StreamEnd::Protocol(_) | StreamEnd::Encode(_) | StreamEnd::NoAnswer | StreamEnd::NotReady),
        ) => Err(AttachError::InUse(end)),
    }
}

fn too_late(follower: &PodReceiver, limit: Duration) -> AttachError {
    let message = match PodState::of(follower.borrow().as_ref()) {
        PodState::ImageProblem { message, .. } => return AttachError::Image(message),
        PodState::NoPod => "no pod was made for the Job (quota, or an admission rule)".to_owned(),
        PodState::Unscheduled { message } => message.unwrap_or_else(|| "the pod was not scheduled".into()),
        PodState::Bound => "the container did not start".to_owned(),
        PodState::Ended(ended) => return AttachError::Ended(ended),
        PodState::Gone(ended) => return AttachError::Gone(ended),
    };
    AttachError::TooLate { limit, message }
}

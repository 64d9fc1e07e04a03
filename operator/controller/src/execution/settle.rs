//! Settles a run from what its sandbox left: pod status, termination message and container log.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, api::ListParams};
use skillet_api::Reason;
use skillet_kube::Backoff;
use skillet_protocol::{Receipt, RunOutcome, RunnerMessage};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::warn;

use super::{
    attempt_outcome::{Captured, SandboxRef},
    gather::{is_permanent, until_read},
};
use crate::{
    context::Context,
    sandbox::{
        Ended, PodReceiver, PodState, is_node_unreachable, logs,
        pod_watch::{JOB_NAME, PodView},
    },
};

/// The log of an ended container may take this long to be whole, once it can be read.
const LOG_LIMIT: Duration = Duration::from_secs(10);
/// A log may be unreadable for this long. The control plane takes most of a minute to notice a lost node.
const SILENCE_LIMIT: Duration = Duration::from_secs(180);
/// A request that is not answered in this time is repeated.
const REQUEST_LIMIT: Duration = Duration::from_secs(15);
/// Pauses between two reads of a pod or a log.
const READS: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(2));

/// The result of a run, from what its sandbox left.
#[derive(Debug, PartialEq)]
pub(crate) enum Settled {
    Ran {
        receipt: Box<Receipt>,
        captured: Captured,
    },
    Unused,
    OutOfMemory,
    Lost {
        reason: Reason,
        message: String,
        receipt: Option<Box<Receipt>>,
    },
    /// The runner has answered no operator. An operator sends a Run only after the answer, so nothing ran.
    NeverBegan,
    /// The program or its runner hangs.
    Hangs,
}

/// Returns true if the pod that `receiver` follows has ended or is gone.
pub(crate) fn has_ended(receiver: &PodReceiver) -> bool {
    matches!(PodState::of(receiver.borrow().as_ref()), PodState::Ended(_) | PodState::Gone(_))
}

/// Returns true if an operator has spoken to the runner of an adopted sandbox. A runner says nothing unasked, so that its
/// log is empty until then.
pub(crate) async fn is_used(ctx: &Context, receiver: &PodReceiver) -> bool {
    let Some(view) = receiver.borrow().clone() else { return false };
    if has_ended(receiver) {
        return true;
    }
    // Without a readable log, the attach that follows finds out.
    peek(ctx, &view.pod).await.is_ok_and(|text| !text.is_empty())
}

/// Returns the loss of an adopted sandbox whose Job has ended and whose pod is gone: no event will tell of it any more.
pub(crate) async fn find_lost(
    ctx: &Context,
    receiver: &PodReceiver,
    sandbox: &SandboxRef,
) -> Option<Settled> {
    if receiver.borrow().is_some() {
        return None;
    }
    let had_pod = has_counted_pod(ctx, &sandbox.job).await?;
    // The watch may not have shown the pod yet.
    (had_pod && read_pod(ctx, &sandbox.job).await.is_none()).then(|| from_gone(None))
}

/// Returns true if the Job exists and no pod of it ever did. A pod that is gone was counted in its Job's status before.
pub(crate) async fn never_had_pod(ctx: &Context, job: &str) -> bool {
    read_pod(ctx, job).await.is_none() && has_counted_pod(ctx, job).await == Some(false)
}

/// Returns true if the Job's status counts a pod that has ended. `None` if there is no such Job.
async fn has_counted_pod(ctx: &Context, job: &str) -> Option<bool> {
    let jobs = ctx.sandbox_jobs();
    let named = ListParams::default().fields(&format!("metadata.name={job}"));
    let found = until_read("Job", Duration::MAX, || jobs.list(&named)).await.ok()?;
    let status = found.items.into_iter().next()?.status.unwrap_or_default();
    let ended = status.failed.unwrap_or_default() + status.succeeded.unwrap_or_default();
    let uncounted = status.uncounted_terminated_pods.unwrap_or_default();
    let uncounted = [uncounted.failed, uncounted.succeeded].into_iter().flatten().flatten().count();
    Some(ended > 0 || uncounted > 0)
}

/// The first byte of a pod's log, which its kubelet gives.
async fn peek(ctx: &Context, pod: &Pod) -> kube::Result<String> {
    ctx.sandbox_pods().logs(&pod.name_any(), &logs::params(1)).await
}

/// Waits up to `limit` for the sandbox's end and reads what it left.
pub(crate) async fn settle(
    ctx: &Context,
    receiver: &mut PodReceiver,
    sandbox: &mut SandboxRef,
    limit: Duration,
) -> Settled {
    let deadline = Instant::now() + limit;
    loop {
        let view = receiver.borrow_and_update().clone();
        if let Some(view) = &view {
            sandbox.locate(view);
        }
        match PodState::of(view.as_ref()) {
            PodState::Ended(ended) => {
                return read_ended(ctx, sandbox.pod.as_deref().unwrap_or_default(), ended).await;
            }
            PodState::Gone(ended) => return from_gone(ended),
            PodState::NoPod
            | PodState::Unscheduled
            | PodState::Unschedulable { .. }
            | PodState::Bound
            | PodState::ImageProblem { .. } => {}
        }
        match timeout_at(deadline, receiver.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return from_gone(None),
            Err(_) => return settle_overdue(ctx, receiver, sandbox).await,
        }
    }
}

/// Settles a sandbox that is over its time. Silence decides nothing: the API server says if the pod has ended or its node
/// is lost, and the kubelet has the log. Both are asked again until they answer.
pub(crate) async fn settle_overdue(ctx: &Context, receiver: &PodReceiver, sandbox: &SandboxRef) -> Settled {
    let (mut silent_since, mut pauses) = (None, READS);
    loop {
        let Some(pod) = read_pod(ctx, &sandbox.job).await else {
            let last = receiver.borrow().as_ref().and_then(|view| PodState::end_of(&view.pod));
            return from_gone(last);
        };
        let name = pod.name_any();
        if let Some(ended) = PodState::end_of(&pod) {
            return read_ended(ctx, &name, ended).await;
        }
        if is_node_unreachable(&PodView { pod: Arc::new(pod), is_deleted: false }) {
            return lost(node_lost(sandbox));
        }
        match read_log(ctx, &name).await {
            Ok(logs::Logged::Whole(messages)) => return from_messages(messages).unwrap_or(Settled::Hangs),
            Ok(logs::Logged::Empty) => return Settled::NeverBegan,
            Ok(logs::Logged::NotAccepted | logs::Logged::Torn) => return Settled::Hangs,
            // The next read of the pod shows if it has ended. A lost node is shown before the limit.
            Err(LogError { is_final, message }) => {
                let since = *silent_since.get_or_insert_with(Instant::now);
                if is_final || since.elapsed() >= SILENCE_LIMIT {
                    return lost(format!("the log of the sandbox could not be read: {message}"));
                }
                warn!(job = sandbox.job, message, "Log of an overdue sandbox could not be read yet");
            }
        }
        pauses.pause().await;
    }
}

fn node_lost(sandbox: &SandboxRef) -> String {
    let node = sandbox.node.as_deref().unwrap_or("unknown");
    format!("node {node} does not answer any more, and the sandbox on it neither")
}

/// Reads the sandbox's pod as the API server knows it now. Waits for an API server that does not answer.
async fn read_pod(ctx: &Context, job: &str) -> Option<Pod> {
    let of_job = ListParams::default().labels(&format!("{JOB_NAME}={job}"));
    let mut pauses = READS;
    loop {
        match timeout(REQUEST_LIMIT, ctx.sandbox_pods().list(&of_job)).await {
            Ok(Ok(pods)) => return pods.items.into_iter().next(),
            Ok(Err(error)) => warn!(job, %error, "Pod could not be read yet"),
            Err(_) => warn!(job, "API server does not answer"),
        }
        pauses.pause().await;
    }
}

/// The error of a log that could not be read.
struct LogError {
    /// The API server refuses the request, such as for a pod that is gone.
    is_final: bool,
    message: String,
}

async fn read_log(ctx: &Context, pod: &str) -> Result<logs::Logged, LogError> {
    match timeout(REQUEST_LIMIT, logs::read(&ctx.sandbox_pods(), pod)).await {
        Ok(Ok(logged)) => Ok(logged),
        Ok(Err(error)) => Err(LogError { is_final: is_permanent(&error), message: error.to_string() }),
        Err(_) => Err(LogError { is_final: false, message: "no answer".into() }),
    }
}

async fn read_ended(ctx: &Context, pod: &str, ended: Ended) -> Settled {
    // A receipt of a sandbox in which nothing ran needs no log.
    if ended.receipt.as_ref().is_some_and(|receipt| receipt.is_unused()) {
        return from_status(ended);
    }
    let (since, mut torn_since, mut pauses) = (Instant::now(), None, READS);
    loop {
        match read_log(ctx, pod).await {
            Ok(logs::Logged::Whole(messages)) => {
                return from_messages(messages).unwrap_or_else(|| from_status(ended));
            }
            // The API may show a container's end before the last of its log is written.
            Ok(logs::Logged::Empty | logs::Logged::NotAccepted | logs::Logged::Torn) => {
                let torn_since = *torn_since.get_or_insert_with(Instant::now);
                if !ended.was_used() || torn_since.elapsed() >= LOG_LIMIT {
                    return from_status(ended);
                }
            }
            Err(LogError { is_final, message }) => {
                warn!(pod, message, "Log of an ended sandbox could not be read");
                if is_final || since.elapsed() >= SILENCE_LIMIT {
                    return from_status(ended);
                }
            }
        }
        pauses.pause().await;
    }
}

/// The result of a run whose log is whole. `None` if it holds more output than a runner sends.
fn from_messages(messages: Vec<RunnerMessage>) -> Option<Settled> {
    let mut captured = Captured::default();
    for message in messages {
        match message {
            RunnerMessage::Exit(receipt) => return Some(Settled::Ran { receipt, captured }),
            message => captured.take(message).ok()?,
        }
    }
    None
}

fn from_gone(ended: Option<Ended>) -> Settled {
    ended.map_or_else(|| lost("the sandbox was deleted while the program ran".into()), from_status)
}

fn from_status(ended: Ended) -> Settled {
    match ended.receipt {
        Some(receipt) if receipt.is_unused() => Settled::Unused,
        // A runner that is ended from outside, such as with a pod whose log nobody can read any more.
        Some(receipt) if matches!(receipt.outcome, RunOutcome::Cancelled) => {
            Settled::Ran { receipt, captured: Captured::default() }
        }
        Some(receipt) => Settled::Lost {
            reason: Reason::ResultLost,
            message: "the program ended, and its output did not arrive whole".into(),
            receipt: Some(receipt),
        },
        None if ended.is_out_of_memory => Settled::OutOfMemory,
        // A container that ended without a receipt was ended from outside.
        None => lost(format!("the sandbox ended without a receipt: {}", ended.message)),
    }
}

fn lost(message: String) -> Settled {
    Settled::Lost { reason: Reason::SandboxLost, message, receipt: None }
}

#[cfg(test)]
mod tests;

//! Settles a run from what its sandbox left: pod status, termination message and container log.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, api::LogParams};
use skillet_api::Reason;
use skillet_protocol::{Receipt, RunnerMessage};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::warn;

use super::attempt_outcome::{Captured, SandboxRef};
use crate::{
    context::Context,
    sandbox::{Ended, PodReceiver, PodState, is_node_unreachable, logs},
};

/// The log of an ended container may take this long to be whole; it is read again after each gap.
const LOG_LIMIT: Duration = Duration::from_secs(10);
const LOG_GAP: Duration = Duration::from_millis(250);
/// A kubelet that takes longer to answer is gone.
const KUBELET_LIMIT: Duration = Duration::from_secs(2);

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
    /// Still not ended when it should have.
    OverTime,
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

/// The cause of a sandbox's silence after its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// The runner has answered no operator. An operator sends a Run only after the answer, so nothing ran.
    NeverBegan,
    /// The program or its runner hangs.
    Program,
    /// The node does not answer: the control plane says so, or its kubelet is silent.
    Node,
}

/// Asks the kubelet of a sandbox that is over its time: the control plane takes most of a minute to notice a lost node.
pub(crate) async fn find_silence(ctx: &Context, receiver: &PodReceiver) -> Silence {
    let Some(view) = receiver.borrow().clone() else { return Silence::Program };
    if is_node_unreachable(&view) {
        return Silence::Node;
    }
    explain_silence(timeout(KUBELET_LIMIT, peek(ctx, &view.pod)).await.ok())
}

/// Reads the kubelet's answer to [`peek`]; `None` if it gave none in time.
fn explain_silence(answer: Option<kube::Result<String>>) -> Silence {
    match answer {
        Some(Ok(log)) if log.is_empty() => Silence::NeverBegan,
        // The API server's own answers, such as that there is no such pod, say nothing of the node.
        Some(Err(kube::Error::Api(answer))) if answer.code >= 500 => Silence::Node,
        Some(Ok(_) | Err(_)) => Silence::Program,
        None => Silence::Node,
    }
}

/// The first byte of a pod's log, which its kubelet gives.
async fn peek(ctx: &Context, pod: &Pod) -> kube::Result<String> {
    let params = LogParams { limit_bytes: Some(1), ..LogParams::default() };
    ctx.sandbox_pods().logs(&pod.name_any(), &params).await
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
            PodState::Ended(ended) => return read_ended(ctx, sandbox, ended).await,
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
            Err(_) => return Settled::OverTime,
        }
    }
}

async fn read_ended(ctx: &Context, sandbox: &SandboxRef, ended: Ended) -> Settled {
    let pod = sandbox.pod.as_deref().unwrap_or_default();
    let deadline = Instant::now() + LOG_LIMIT;
    loop {
        let logged = logs::read(&ctx.sandbox_pods(), pod).await;
        if let Err(error) = &logged {
            warn!(job = sandbox.job, %error, "Log of an ended sandbox could not be read");
        }
        // The API may show a container's end before the last of its log is written.
        let may_grow = ended.was_used();
        if matches!(logged, Ok(logs::Logged::Whole(_))) || !may_grow || Instant::now() >= deadline {
            return combine(logged.ok(), ended);
        }
        sleep(LOG_GAP).await;
    }
}

/// The result by log and pod status together.
fn combine(logged: Option<logs::Logged>, ended: Ended) -> Settled {
    if let Some(logs::Logged::Whole(messages)) = logged {
        let mut captured = Captured::default();
        for message in messages {
            match message {
                RunnerMessage::Exit(receipt) => return Settled::Ran { receipt, captured },
                message => captured.take(message),
            }
        }
    }
    from_status(ended)
}

fn from_gone(ended: Option<Ended>) -> Settled {
    ended.map_or_else(|| lost("the sandbox was deleted while the program ran".into()), from_status)
}

fn from_status(ended: Ended) -> Settled {
    match ended.receipt {
        Some(receipt) if receipt.is_unused() => Settled::Unused,
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
mod tests {
    use skillet_protocol::{Isolation, RunOutcome};

    use super::*;

    fn ended(receipt: Option<RunOutcome>, is_out_of_memory: bool) -> Ended {
        let receipt =
            receipt.map(|outcome| Box::new(Receipt { outcome, ..Receipt::unused(Isolation::default()) }));
        Ended { is_container: true, is_out_of_memory, receipt, message: "Error".into() }
    }

    fn reason(settled: &Settled) -> Option<Reason> {
        match settled {
            Settled::Lost { reason, .. } => Some(*reason),
            Settled::Ran { .. } | Settled::Unused | Settled::OutOfMemory | Settled::OverTime => None,
        }
    }

    #[test]
    fn a_whole_log_is_the_result_of_the_run() {
        let exit = RunnerMessage::Exit(Box::new(Receipt::unused(Isolation::default())));
        let whole = logs::Logged::Whole(vec![
            RunnerMessage::Stdout(b"a".to_vec()),
            RunnerMessage::Stdout(b"b".to_vec()),
            exit,
        ]);
        match combine(Some(whole), ended(None, false)) {
            Settled::Ran { captured, .. } => assert_eq!(captured.stdout, b"ab"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_receipt_without_a_log_is_a_lost_result() {
        let settled = combine(Some(logs::Logged::Torn), ended(Some(RunOutcome::Exited { code: 0 }), false));
        assert_eq!(reason(&settled), Some(Reason::ResultLost));
        let settled = from_gone(Some(ended(Some(RunOutcome::Exited { code: 0 }), false)));
        assert_eq!(reason(&settled), Some(Reason::ResultLost));
    }

    #[test]
    fn an_unused_sandbox_ran_nothing() {
        assert_eq!(combine(None, ended(Some(RunOutcome::Unused), false)), Settled::Unused);
        assert_eq!(from_gone(Some(ended(Some(RunOutcome::Unused), false))), Settled::Unused);
    }

    #[test]
    fn an_empty_log_after_the_time_limit_means_that_nothing_ran() {
        let refused = |code| {
            let status = kube::core::Status { code, ..kube::core::Status::default() };
            Some(Err(kube::Error::Api(Box::new(status))))
        };
        assert_eq!(explain_silence(Some(Ok(String::new()))), Silence::NeverBegan);
        assert_eq!(explain_silence(Some(Ok("{".into()))), Silence::Program);
        assert_eq!(explain_silence(refused(404)), Silence::Program);
        assert_eq!(explain_silence(refused(500)), Silence::Node);
        assert_eq!(explain_silence(None), Silence::Node);
    }

    #[test]
    fn a_container_killed_for_memory_is_out_of_memory() {
        assert_eq!(combine(Some(logs::Logged::Torn), ended(None, true)), Settled::OutOfMemory);
    }

    #[test]
    fn without_receipt_and_log_the_sandbox_is_lost() {
        assert_eq!(reason(&combine(None, ended(None, false))), Some(Reason::SandboxLost));
        assert_eq!(reason(&from_gone(None)), Some(Reason::SandboxLost));
    }
}

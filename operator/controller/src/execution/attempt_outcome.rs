//! The outcome of one attempt, its sandbox, and its output.

use kube::ResourceExt as _;
use skillet_api::{IsolationLevel, Reason, network::Connections};
use skillet_protocol::{Isolation, Receipt, RunOutcome, RunnerMessage};
use thiserror::Error;

use super::{adopt::ResumePoint, gather::ReadError};
use crate::sandbox::{QuotaRefusal, StreamEnd, attach::Attached, pod_watch::PodView};

/// The sandbox of an attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SandboxRef {
    pub(crate) job: String,
    pub(crate) pod: Option<String>,
    pub(crate) node: Option<String>,
    /// The image of its container, as the node reports it.
    pub(crate) image_id: Option<String>,
    /// The proof that the sandbox gave before the program was started.
    pub(crate) isolation: Option<Isolation>,
    /// Connections that its program asked for.
    pub(crate) connections: Option<Connections>,
}

impl SandboxRef {
    /// Takes pod and node from what the watch shows.
    pub(crate) fn locate(&mut self, view: &PodView) {
        self.pod = Some(view.pod.name_any());
        self.node = view.pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    }
}

/// Most bytes of one output stream: a runner keeps to `limits.outputBytes`, which is at most half a megabyte.
const MAX_CAPTURED: usize = 1 << 20;
/// Most bytes of standard output, in which a browser has pictures beside that.
const MAX_STDOUT: usize = 5 << 20;

/// Output and receipt of a run whose stream was whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Captured {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stdout_tail: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) stderr_tail: Vec<u8>,
}

/// The error of a stream that gave no end.
#[derive(Debug, Error)]
pub(crate) enum DriveError {
    #[error(transparent)]
    Stream(#[from] StreamEnd),
    #[error("a newer operator has the sandbox")]
    TakenOver,
}

/// The outcome of an attempt.
#[derive(Debug, PartialEq)]
pub(crate) enum AttemptOutcome {
    /// The runner says how.
    Ran { receipt: Box<Receipt>, captured: Captured },
    /// The operator ended an MCP server that nobody called, after so many answers.
    Closed { receipt: Box<Receipt>, captured: Captured, answered: u64 },
    /// The program was not started, and trying again cannot help.
    Unusable { reason: Reason, message: String },
    /// The sandbox was not used; another may be.
    Unused { message: String },
    /// The cluster has no room for the sandbox now; nothing ran.
    NoRoom { message: String },
    /// The program may have run, and nothing says how it ended.
    Lost { reason: Reason, message: String, receipt: Option<Box<Receipt>> },
    /// The kernel ended the whole sandbox for its memory limit.
    OutOfMemory,
    /// The operator ended it: over time although the runner should have seen to it.
    TimedOut,
    /// The operator ended it on request.
    Cancelled,
}

impl AttemptOutcome {
    /// The outcome of a container that could not be started, by the kubelet's message. The kubelet reports one that its memory
    /// limit ended in the same way.
    pub(crate) fn never_began(message: String) -> Self {
        if ["OOM-killed", "OOMKilled"].iter().any(|word| message.contains(word)) {
            return Self::OutOfMemory;
        }
        Self::Unusable { reason: Reason::ImageUnavailable, message }
    }

    /// The cause if no program was started in the sandbox, for the metric.
    pub(crate) fn start_failure(&self) -> Option<&'static str> {
        match self {
            Self::Unusable { reason, .. } => Some(reason.as_str()),
            Self::Unused { .. } => Some("Unused"),
            Self::NoRoom { .. } => Some("NoRoom"),
            Self::Ran { .. }
            | Self::Closed { .. }
            | Self::Lost { .. }
            | Self::OutOfMemory
            | Self::TimedOut
            | Self::Cancelled => None,
        }
    }
}

/// The reason for which this operator stops handling an execution.
#[derive(Debug, PartialEq)]
pub(crate) enum TakenOver {
    /// Another operator has created the sandbox: this one resumes from there.
    Resume(ResumePoint),
    /// Another operator has ended the execution, or it was deleted.
    Finished,
    /// A newer operator handles it.
    ByNewer,
}

/// An attempt's early return.
#[derive(Debug)]
pub(crate) enum Interrupted {
    Outcome(AttemptOutcome),
    TakenOver(TakenOver),
}

impl From<AttemptOutcome> for Interrupted {
    fn from(outcome: AttemptOutcome) -> Self {
        Self::Outcome(outcome)
    }
}

impl From<ReadError> for Interrupted {
    fn from(error: ReadError) -> Self {
        Self::Outcome(AttemptOutcome::Unusable { reason: Reason::ApiError, message: error.to_string() })
    }
}

impl AttemptOutcome {
    /// The sandbox does not prove what the policy requires.
    pub(crate) fn unproven(attached: &Attached, missing: &[&str], isolation: IsolationLevel) -> Self {
        let notes = &attached.ready.isolation.notes;
        let why = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        let message = format!(
            "node {} does not prove {} which isolation {isolation:?} of SkillPolicy requires{why}",
            attached.node,
            missing.join(", "),
        );
        Self::Unusable { reason: Reason::IsolationUnavailable, message }
    }

    /// The sandbox cannot give its program the connections that the skill names.
    pub(crate) fn without_egress(attached: &Attached) -> Self {
        let Isolation { kernel, notes, .. } = &attached.ready.isolation;
        let why = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        let message = format!(
            "node {} cannot pass on the connections of a program, for which spec.network of the Skill asks: its kernel is {kernel}, and 5.19 is needed{why}",
            attached.node
        );
        Self::Unusable { reason: Reason::IsolationUnavailable, message }
    }

    /// Nothing ran. A sandbox that is larger than a whole quota fails; any other waits for room.
    pub(crate) fn refused_by_quota(QuotaRefusal { message, is_final }: QuotaRefusal) -> Self {
        if is_final {
            Self::Unusable { reason: Reason::Unschedulable, message }
        } else {
            Self::NoRoom { message }
        }
    }

    /// The end that a receipt reports. A runner that is ended from outside reports that its program was cancelled. If
    /// nobody cancelled the execution, the sandbox was deleted.
    pub(crate) fn ran(receipt: Box<Receipt>, captured: Captured, is_cancelled: bool) -> Self {
        if matches!(receipt.outcome, RunOutcome::Cancelled) && !is_cancelled {
            let message = "the sandbox was deleted while the program ran".into();
            return Self::Lost { reason: Reason::SandboxLost, message, receipt: Some(receipt) };
        }
        Self::Ran { receipt, captured }
    }

    /// A program that may have run and of whose end nothing is left.
    pub(crate) fn lost(message: String) -> Self {
        Self::Lost { reason: Reason::SandboxLost, message, receipt: None }
    }
}

impl Captured {
    /// Takes one output message; the others are not output. Fails if it is more than a runner sends.
    pub(crate) fn take(&mut self, message: RunnerMessage) -> Result<(), StreamEnd> {
        let (kept, bytes, most) = match message {
            RunnerMessage::Stdout(bytes) => (&mut self.stdout, bytes, MAX_STDOUT),
            RunnerMessage::Stderr(bytes) => (&mut self.stderr, bytes, MAX_CAPTURED),
            RunnerMessage::StdoutTail(bytes) => (&mut self.stdout_tail, bytes, MAX_CAPTURED),
            RunnerMessage::StderrTail(bytes) => (&mut self.stderr_tail, bytes, MAX_CAPTURED),
            RunnerMessage::Ready(_)
            | RunnerMessage::Accepted(_)
            | RunnerMessage::Refused(_)
            | RunnerMessage::Network(_)
            | RunnerMessage::Exit(_) => return Ok(()),
        };
        if kept.len() + bytes.len() > most {
            return Err(StreamEnd::TooLong);
        }
        kept.extend(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_that_its_memory_limit_ends_before_it_begins_is_out_of_memory() {
        let killed = "container init was OOM-killed (memory limit too low?)";
        assert!(matches!(AttemptOutcome::never_began(killed.to_owned()), AttemptOutcome::OutOfMemory));
        let missing = AttemptOutcome::never_began("exec: no such file".to_owned());
        assert!(matches!(missing, AttemptOutcome::Unusable { reason: Reason::ImageUnavailable, .. }));
    }

    #[test]
    fn a_runner_that_sends_without_end_fills_no_memory() {
        let mut captured = Captured::default();
        let frame = || RunnerMessage::Stdout(vec![b'a'; 64 * 1024]);
        let taken = (0..1000).take_while(|_| captured.take(frame()).is_ok()).count();
        assert_eq!((taken, captured.stdout.len()), (80, MAX_STDOUT));
        assert!(captured.take(RunnerMessage::Stderr(b"b".to_vec())).is_ok(), "each stream has its own limit");
    }
}

//! How one attempt ended, where it took place, and what it wrote.

use skillet_api::{IsolationLevel, Reason};
use skillet_protocol::{Isolation, Outcome, Receipt, RunnerMessage};

use super::adopt::ResumePoint;
use crate::sandbox::attach::Attached;

/// Where an attempt took place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxRef {
    pub job: String,
    pub pod: Option<String>,
    pub node: Option<String>,
    /// What the sandbox proved before the program was started.
    pub isolation: Option<Isolation>,
}

/// Output and receipt of a run whose stream was whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Captured {
    pub stdout: Vec<u8>,
    pub stdout_tail: Vec<u8>,
    pub stderr: Vec<u8>,
    pub stderr_tail: Vec<u8>,
}

/// How an attempt ended.
#[derive(Debug, PartialEq)]
pub enum AttemptOutcome {
    /// The runner says how.
    Ran { receipt: Box<Receipt>, captured: Captured },
    /// The program was not started, and trying again cannot help.
    Unusable { reason: Reason, message: String },
    /// The sandbox was not used; another may be.
    Unused { message: String },
    /// The program may have run, and nobody can tell how.
    Lost { reason: Reason, message: String, receipt: Option<Box<Receipt>> },
    /// The kernel ended the whole sandbox for its memory limit.
    OutOfMemory,
    /// The operator ended it: over time although the runner should have seen to it.
    TimedOut,
    /// The operator ended it on request.
    Cancelled,
}

/// Why an attempt is not gone on with here.
#[derive(Debug)]
pub enum TakenOver {
    /// Another operator has begun this: it is to be gone on with.
    Begun(ResumePoint),
    /// Another operator has ended the execution, or it was deleted.
    Over,
    /// A newer operator has this in its hands.
    Newer,
}

/// What ends an attempt before its end.
#[derive(Debug)]
pub enum Interrupted {
    End(AttemptOutcome),
    TakenOver(TakenOver),
}

impl From<AttemptOutcome> for Interrupted {
    fn from(end: AttemptOutcome) -> Self {
        Self::End(end)
    }
}

impl AttemptOutcome {
    /// The sandbox does not prove what the policy requires.
    pub fn unproven(opened: &Attached, missing: &[&str], isolation: IsolationLevel) -> Self {
        let notes = &opened.ready.isolation.notes;
        let why = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        let message = format!(
            "node {} does not prove {} which isolation {isolation:?} of SkillPolicy requires{why}",
            opened.node,
            missing.join(", "),
        );
        Self::Unusable { reason: Reason::IsolationUnavailable, message }
    }

    /// A runner that is told to end says that its program was cancelled. Where nobody here asked for it, somebody
    /// deleted the sandbox.
    pub fn ran(receipt: Box<Receipt>, captured: Captured, is_cancelled: bool) -> Self {
        if matches!(receipt.outcome, Outcome::Cancelled) && !is_cancelled {
            let message = "the sandbox was deleted while the program ran".into();
            return Self::Lost { reason: Reason::SandboxLost, message, receipt: Some(receipt) };
        }
        Self::Ran { receipt, captured }
    }
}

impl Captured {
    /// Takes one output message; the others are not output.
    pub fn take(&mut self, message: RunnerMessage) {
        match message {
            RunnerMessage::Stdout(bytes) => self.stdout.extend(bytes),
            RunnerMessage::Stderr(bytes) => self.stderr.extend(bytes),
            RunnerMessage::StdoutTail(bytes) => self.stdout_tail.extend(bytes),
            RunnerMessage::StderrTail(bytes) => self.stderr_tail.extend(bytes),
            RunnerMessage::Ready(_)
            | RunnerMessage::Accepted(_)
            | RunnerMessage::Refused(_)
            | RunnerMessage::Exit(_) => {}
        }
    }
}

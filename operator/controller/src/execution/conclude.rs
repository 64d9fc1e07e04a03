//! From the outcome of the last attempt to the content of the execution's status. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use skillet_api::{Isolation, Phase, Reason, execution::StreamStatus, network::Connections};
use skillet_core::{
    admission::Refusal,
    outcome::{self, FinishedProgram, Outcome, Termination},
    output,
    skill::{Program as ValidProgram, ValidContent},
};
use skillet_protocol::{self as protocol, Receipt, StreamSummary};

use super::{
    adopt::{ResumePoint, SandboxState},
    attempt_outcome::{AttemptOutcome, Captured, SandboxRef},
    build::sandbox as build,
};

/// Most of a stream's beginning that is kept beside the output.
const HEAD_BYTES: usize = 8 * 1024;

/// The content of the final status, apart from times that its writer knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conclusion {
    pub(crate) phase: Phase,
    pub(crate) reason: Option<Reason>,
    pub(crate) message: Option<String>,
    pub(crate) resolved_version: Option<String>,
    /// Digest of that version's content.
    pub(crate) digest: Option<String>,
    pub(crate) attempts: u32,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) output: Option<Value>,
    pub(crate) stdout: Option<StreamStatus>,
    pub(crate) stderr: Option<StreamStatus>,
    pub(crate) truncated: bool,
    pub(crate) exit_code: Option<i32>,
    pub(crate) sandbox: SandboxRef,
    pub(crate) isolation: Option<Isolation>,
    /// Connections of all attempts.
    pub(crate) connections: Option<Connections>,
    /// Something may still run in the sandbox: it is to be removed at once, after the status is written.
    pub(crate) must_end: bool,
}

impl Conclusion {
    /// An execution that was refused before anything was started.
    pub(crate) fn refused(refusal: &Refusal) -> Self {
        Self::failed(refusal.reason, refusal.message.clone())
    }

    /// An execution that is refused although an earlier operator has created its `ordinal`th sandbox.
    pub(crate) fn refused_with(refusal: &Refusal, execution_uid: &str, ordinal: u32) -> Self {
        let sandbox = SandboxRef { job: build::job_name(execution_uid, ordinal), ..SandboxRef::default() };
        Self { sandbox, must_end: true, ..Self::refused(refusal) }
    }

    /// An execution that is refused at this point of its run.
    pub(crate) fn refused_at(refusal: &Refusal, execution_uid: &str, point: &ResumePoint) -> Self {
        match point.sandbox {
            SandboxState::NotCreated => Self::refused(refusal),
            SandboxState::Exists | SandboxState::Gone => {
                Self::refused_with(refusal, execution_uid, point.ordinal)
            }
        }
    }

    /// An execution that failed with nothing to show.
    pub(crate) fn failed(reason: Reason, message: String) -> Self {
        Self { phase: Phase::Failed, reason: Some(reason), message: Some(message), ..Self::default() }
    }

    /// An execution that was cancelled before its program was started.
    pub(crate) fn cancelled() -> Self {
        Self::ended(Phase::Cancelled, Reason::Cancelled, "cancelled on request".into())
    }

    fn ended(phase: Phase, reason: Reason, message: String) -> Self {
        Self { phase, reason: Some(reason), message: Some(message), ..Self::default() }
    }
}

/// The conclusion of an attempt; `content` says what the output must be, `timeout` is the limit it ran under.
pub(crate) fn conclude(end: AttemptOutcome, content: &ValidContent, timeout: Duration) -> Conclusion {
    match end {
        AttemptOutcome::Ran { receipt, mut captured } => {
            if matches!(program(content), Some(ValidProgram::McpServer { .. })) {
                // What a log has of a server are the messages of its calls.
                (captured.stdout, captured.stdout_tail) = (Vec::new(), Vec::new());
            }
            from_receipt(&receipt, &captured, content, timeout)
        }
        AttemptOutcome::Closed { receipt, captured, answered } => closed(&receipt, &captured, answered),
        AttemptOutcome::Unusable { reason, message } => Conclusion::failed(reason, message),
        AttemptOutcome::Unused { message } | AttemptOutcome::NoRoom { message } => {
            Conclusion::failed(Reason::SandboxUnavailable, message)
        }
        AttemptOutcome::Lost { reason, message, receipt } => {
            let known = receipt.map(|receipt| without_output(&receipt)).unwrap_or_default();
            Conclusion { phase: Phase::Failed, reason: Some(reason), message: Some(message), ..known }
        }
        AttemptOutcome::OutOfMemory => without_receipt(&Termination::OutOfMemory, content, timeout),
        AttemptOutcome::TimedOut => without_receipt(&Termination::TimedOut, content, timeout),
        AttemptOutcome::Cancelled => Conclusion::cancelled(),
    }
}

/// The start of a program that ended before `now` and ran for `duration_ms`, if it has a receipt. An operator may have
/// noticed late that the runner had accepted the run, at `accepted_at`.
pub(crate) fn started_at(
    accepted_at: Option<Timestamp>,
    duration_ms: Option<u64>,
    now: Timestamp,
) -> Option<Timestamp> {
    let ran_for = duration_ms.and_then(|ms| i64::try_from(ms).ok()).map(SignedDuration::from_millis);
    accepted_at.into_iter().chain(ran_for.map(|ran_for| now - ran_for)).min()
}

fn without_receipt(ending: &Termination, content: &ValidContent, timeout: Duration) -> Conclusion {
    let nothing = Captured::default();
    with_outcome(Conclusion::default(), outcome::conclude(describe_end(ending, &nothing, content, timeout)))
}

fn without_output(receipt: &Receipt) -> Conclusion {
    let nothing = Captured::default();
    Conclusion {
        duration_ms: Some(receipt.duration_ms),
        stdout: Some(stream(&receipt.stdout, &nothing.stdout, &nothing.stdout_tail)),
        stderr: Some(stream(&receipt.stderr, &nothing.stderr, &nothing.stderr_tail)),
        isolation: Some(receipt.isolation.clone()),
        ..Conclusion::default()
    }
}

/// The end of an MCP server that nobody called any more.
fn closed(receipt: &Receipt, captured: &Captured, answered: u64) -> Conclusion {
    Conclusion {
        output: Some(json!({ "calls": answered })),
        duration_ms: Some(receipt.duration_ms),
        stderr: Some(stream(&receipt.stderr, &captured.stderr, &captured.stderr_tail)),
        isolation: Some(receipt.isolation.clone()),
        ..Conclusion::ended(
            Phase::Succeeded,
            Reason::Succeeded,
            "the MCP server was ended, since nobody called it or it wrote more than 64 MiB".into(),
        )
    }
}

fn from_receipt(
    receipt: &Receipt,
    captured: &Captured,
    content: &ValidContent,
    timeout: Duration,
) -> Conclusion {
    let Some(ending) = ending(&receipt.outcome) else {
        return Conclusion::failed(Reason::SandboxUnavailable, "the sandbox ran nothing".into());
    };
    let is_truncated = receipt.stdout.is_truncated();
    let outcome = outcome::conclude(FinishedProgram {
        is_truncated,
        ..describe_end(&ending, captured, content, timeout)
    });
    // The text in `output` is not repeated in `stdout`, which keeps size and digest.
    let stdout_head: &[u8] = if outcome.output.is_some() { &[] } else { &captured.stdout };
    let known = Conclusion {
        truncated: is_truncated || outcome.is_cut || receipt.stderr.is_truncated(),
        stdout: (receipt.stdout.bytes > 0)
            .then(|| stream(&receipt.stdout, stdout_head, &captured.stdout_tail)),
        stderr: (receipt.stderr.bytes > 0)
            .then(|| stream(&receipt.stderr, &captured.stderr, &captured.stderr_tail)),
        ..without_output(receipt)
    };
    with_outcome(known, outcome)
}

fn with_outcome(known: Conclusion, outcome: Outcome) -> Conclusion {
    let Outcome { phase, reason, message, output, is_cut: _, exit_code } = outcome;
    Conclusion { phase, reason: Some(reason), message: Some(message), output, exit_code, ..known }
}

fn describe_end<'a>(
    ending: &'a Termination,
    captured: &'a Captured,
    content: &'a ValidContent,
    timeout: Duration,
) -> FinishedProgram<'a> {
    let stderr_end = if captured.stderr_tail.is_empty() { &captured.stderr } else { &captured.stderr_tail };
    FinishedProgram {
        termination: ending,
        stdout: &captured.stdout,
        is_truncated: false,
        is_text: matches!(program(content), Some(ValidProgram::BodyCommand { .. })),
        stderr_end,
        timeout,
        processes: content.limits.processes,
        output_schema: content.output_schema.as_deref(),
    }
}

fn program(content: &ValidContent) -> Option<&ValidProgram> {
    content.sandbox().map(|sandbox| &sandbox.program)
}

/// The runner's outcome as core's; `None` if nothing ran.
fn ending(outcome: &protocol::RunOutcome) -> Option<Termination> {
    Some(match outcome {
        protocol::RunOutcome::Exited { code } => Termination::Exited { code: *code },
        protocol::RunOutcome::Signaled { signal } => Termination::Signaled { signal: *signal },
        protocol::RunOutcome::TimedOut => Termination::TimedOut,
        protocol::RunOutcome::Cancelled => Termination::Cancelled,
        protocol::RunOutcome::OutOfMemory => Termination::OutOfMemory,
        protocol::RunOutcome::StartFailed { message } => {
            Termination::StartFailed { message: message.clone() }
        }
        protocol::RunOutcome::Unused => return None,
    })
}

fn stream(summary: &StreamSummary, head: &[u8], tail: &[u8]) -> StreamStatus {
    StreamStatus {
        head: output::text_head(head, HEAD_BYTES),
        tail: tail_text(head, tail),
        bytes: summary.bytes,
        sha256: summary.sha256.clone(),
    }
}

/// The end of a stream: what the runner sent after its cap, or what the head leaves out.
fn tail_text(head: &[u8], tail: &[u8]) -> String {
    if !tail.is_empty() {
        return String::from_utf8_lossy(tail).into_owned();
    }
    let rest = head.get(HEAD_BYTES..).unwrap_or_default();
    String::from_utf8_lossy(&rest[rest.len().saturating_sub(HEAD_BYTES / 2)..]).into_owned()
}

#[cfg(test)]
mod tests;

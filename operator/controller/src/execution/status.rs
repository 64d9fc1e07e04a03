//! The execution's status: built from a conclusion, written by one server-side apply.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use kube::Client;
use skillet_api::{
    Phase, Reason, SkillExecution, SkillExecutionStatus,
    reason::{FINISHED, RECONCILING, STALLED, SUCCEEDED},
};
use skillet_kube::{Backoff, Conditions, apply_status, find_condition, is_gone, is_of_other_types};
use thiserror::Error;
use tracing::warn;

use super::{attempt_outcome::SandboxRef, conclude::Conclusion, reference::ExecutionRef};
use crate::{pace::Turns, report::chain};

const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));

#[derive(Debug, Error)]
pub(crate) enum StatusError {
    /// Deleted, or deleted and created again under the same name: there is nothing to report to.
    #[error("the execution is gone")]
    Gone,
    /// It has ended already, otherwise: the first end counts.
    #[error("the execution has ended already")]
    Ended,
    /// The API server takes no status of it: its content is not of the types of the definition.
    #[error("the execution's content is not of the types of its definition")]
    OtherTypes,
    #[error("could not apply the status of SkillExecution {namespace}/{name}")]
    Apply { namespace: String, name: String, source: Box<kube::Error> },
}

/// Status of a run that the runner has accepted.
pub(crate) fn running(
    version: &str,
    digest: &str,
    attempts: u32,
    sandbox: &SandboxRef,
    started_at: Timestamp,
) -> SkillExecutionStatus {
    SkillExecutionStatus {
        phase: Phase::Running,
        reason: Some(Reason::Running),
        resolved_version: Some(version.to_owned()),
        digest: Some(digest.to_owned()),
        attempts,
        started_at: Some(MicroTime(started_at)),
        job: Some(sandbox.job.clone()).filter(|job| !job.is_empty()),
        pod: sandbox.pod.clone(),
        node: sandbox.node.clone(),
        conditions: in_progress(Phase::Running, started_at),
        ..SkillExecutionStatus::default()
    }
}

/// Status of an execution between two attempts: the attempt that ended `now`, and how.
pub(crate) fn retried(
    version: &str,
    attempts: u32,
    sandbox: &SandboxRef,
    conclusion: &Conclusion,
    now: Timestamp,
) -> SkillExecutionStatus {
    let reason = conclusion.reason.unwrap_or(Reason::SandboxLost);
    let why = conclusion.message.as_deref().unwrap_or_default();
    SkillExecutionStatus {
        phase: Phase::Pending,
        reason: Some(reason),
        message: Some(format!("attempt {attempts} ended {reason} ({why}); it is tried again")),
        resolved_version: Some(version.to_owned()),
        attempts,
        job: Some(sandbox.job.clone()),
        conditions: in_progress(Phase::Pending, now),
        ..SkillExecutionStatus::default()
    }
}

/// Status of an execution whose sandbox `job` was released unused, after `attempts` attempts of `version` that counted.
///
/// By it the next operator knows that nothing ran in that sandbox, whose Job is gone.
pub(crate) fn released(
    version: &str,
    attempts: u32,
    job: &str,
    message: String,
    now: Timestamp,
) -> SkillExecutionStatus {
    SkillExecutionStatus {
        phase: Phase::Pending,
        reason: Some(Reason::Queued),
        message: Some(message),
        // Without an attempt that counted, the next sandbox may get a newer version.
        resolved_version: (attempts > 0).then(|| version.to_owned()),
        attempts,
        job: Some(job.to_owned()),
        conditions: in_progress(Phase::Pending, now),
        ..SkillExecutionStatus::default()
    }
}

/// Status of an execution whose first attempt gets a sandbox since a time, after a sandbox `previous` that was not used.
pub(crate) fn starting(previous: Option<&str>, message: &str, since: Timestamp) -> SkillExecutionStatus {
    SkillExecutionStatus {
        phase: Phase::Pending,
        message: Some(message.to_owned()),
        job: previous.map(str::to_owned),
        conditions: in_progress(Phase::Pending, since),
        ..SkillExecutionStatus::default()
    }
}

/// Status of an execution that waits since a time.
pub(crate) fn queued(message: &str, since: Timestamp) -> SkillExecutionStatus {
    SkillExecutionStatus {
        phase: Phase::Pending,
        reason: Some(Reason::Queued),
        message: Some(message.to_owned()),
        conditions: in_progress(Phase::Pending, since),
        ..SkillExecutionStatus::default()
    }
}

/// The condition of an execution that has not ended, by which tools that read kstatus wait for it.
fn in_progress(phase: Phase, since: Timestamp) -> Vec<Condition> {
    let conditions = Conditions { old: &[], generation: None, now: since };
    vec![conditions.build(RECONCILING, "True", phase.as_str(), "")]
}

/// The final status.
pub(crate) fn finished(
    conclusion: Conclusion,
    generation: Option<i64>,
    now: Timestamp,
) -> SkillExecutionStatus {
    let conditions = conditions(&conclusion, generation, now);
    let Conclusion {
        phase,
        reason,
        message,
        resolved_version,
        digest,
        attempts,
        started_at,
        duration_ms,
        output,
        stdout,
        stderr,
        truncated,
        exit_code,
        sandbox,
        isolation,
        connections,
        must_end: _,
    } = conclusion;
    SkillExecutionStatus {
        phase,
        reason,
        message: message.filter(|text| !text.is_empty()),
        resolved_version,
        digest,
        attempts,
        started_at: started_at.map(MicroTime),
        finished_at: Some(MicroTime(now)),
        duration_ms,
        output,
        stdout,
        stderr,
        truncated,
        exit_code,
        job: Some(sandbox.job).filter(|job| !job.is_empty()),
        pod: sandbox.pod,
        node: sandbox.node,
        image_id: sandbox.image_id,
        isolation,
        connections,
        conditions,
    }
}

fn conditions(conclusion: &Conclusion, generation: Option<i64>, now: Timestamp) -> Vec<Condition> {
    let reason = conclusion.reason.map(Reason::as_str).unwrap_or_default();
    let message = conclusion.message.as_deref().unwrap_or_default();
    let has_succeeded = if conclusion.phase == Phase::Succeeded { "True" } else { "False" };
    // They are written once, with the end.
    let conditions = Conditions { old: &[], generation, now };
    let mut ended = vec![
        conditions.build(FINISHED, "True", reason, message),
        conditions.build(SUCCEEDED, has_succeeded, reason, message),
    ];
    if conclusion.phase != Phase::Succeeded {
        ended.push(conditions.build(STALLED, "True", reason, message));
    }
    ended
}

/// Applies a status once.
pub(crate) async fn apply(
    client: &Client,
    execution: &ExecutionRef,
    status: &SkillExecutionStatus,
) -> Result<(), StatusError> {
    match apply_status::<SkillExecution>(client, &execution.object(), status).await {
        Ok(()) => Ok(()),
        Err(kube::Error::Api(answer)) if is_gone(&answer) => Err(StatusError::Gone),
        Err(kube::Error::Api(answer)) if has_ended(answer.code, &answer.message) => Err(StatusError::Ended),
        Err(kube::Error::Api(answer)) if is_of_other_types(&answer) => Err(StatusError::OtherTypes),
        Err(source) => Err(StatusError::Apply {
            namespace: execution.lane.namespace.clone(),
            name: execution.name.clone(),
            source: Box::new(source),
        }),
    }
}

/// The definition's own rule protects an end.
fn has_ended(code: u16, message: &str) -> bool {
    code == 422 && message.contains("its phase does not change any more")
}

/// Applies a status until the API server has it, however long that takes: its content exists nowhere else. Returns false if
/// the execution is gone or has ended.
pub(crate) async fn apply_until_done(
    client: &Client,
    turns: &Turns,
    execution: &ExecutionRef,
    status: &mut SkillExecutionStatus,
) -> bool {
    let mut backoff = BACKOFF;
    loop {
        let turn = turns.take().await;
        let applied = apply(client, execution, status).await;
        drop(turn);
        match applied {
            Ok(()) => return true,
            Err(StatusError::Gone | StatusError::Ended | StatusError::OtherTypes) => return false,
            Err(error @ StatusError::Apply { .. }) => {
                if is_refused(&error) {
                    drop_texts(status);
                }
                warn!(error = %chain(&error), "Status could not be written yet");
                backoff.pause().await;
            }
        }
    }
}

/// Returns true if the API server refuses the content of the status: a retry would be refused again.
fn is_refused(error: &StatusError) -> bool {
    match error {
        StatusError::Gone | StatusError::Ended | StatusError::OtherTypes => false,
        StatusError::Apply { source, .. } => match source.as_ref() {
            kube::Error::Api(answer) => {
                matches!(answer.code, 400 | 413 | 422) || answer.message.contains("too large")
            }
            _ => false,
        },
    }
}

/// Drops all texts, so that the rest is taken: an execution without an end is worse than one without its output. A run that
/// succeeded has failed then: its caller gets nothing of what it asked for.
fn drop_texts(status: &mut SkillExecutionStatus) {
    if status.output.take().is_some() {
        (status.phase, status.reason) = (Phase::Failed, Some(Reason::OutputTooLarge));
        for condition in &mut status.conditions {
            Reason::OutputTooLarge.as_str().clone_into(&mut condition.reason);
            if condition.type_ == SUCCEEDED {
                "False".clone_into(&mut condition.status);
            }
        }
        let finished = find_condition(&status.conditions, FINISHED).cloned();
        status
            .conditions
            .extend(finished.map(|finished| Condition { type_: STALLED.to_owned(), ..finished }));
    }
    for stream in [&mut status.stdout, &mut status.stderr].into_iter().flatten() {
        (stream.head, stream.tail) = (String::new(), String::new());
    }
    status.truncated = true;
    let message = "the API server does not take what the program printed beside this input; print less, or pass a smaller input. Sizes and digests are kept";
    status.conditions.iter_mut().for_each(|condition| message.clone_into(&mut condition.message));
    status.message = Some(message.into());
}

#[cfg(test)]
mod tests;

//! The step that follows an attempt. Pure.

use skillet_api::Reason;
use skillet_core::{
    admission::Admitted,
    retry::{self, RetryDecision},
};
use skillet_kube::parsed_size;

use super::{
    SMALL_OUTPUT, UNUSED_LIMIT,
    attempt_outcome::{AttemptOutcome, TakenOver},
    conclude::{self, Conclusion},
};

/// The step that follows an attempt.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Finish(Box<Conclusion>),
    /// The sandbox was not used: the same attempt gets another one.
    NewSandbox(String),
    /// The attempt counts, and another one follows.
    Retry(Box<Conclusion>),
    /// The cluster has no room for the sandbox.
    WaitForRoom(String),
    TakenOver(TakenOver),
}

/// Decides what follows an attempt that ended as `outcome`, after `unused` sandboxes of it that were released. Pure.
pub(super) fn next_step(outcome: AttemptOutcome, attempt: u32, unused: u32, admitted: &Admitted) -> Step {
    let must_end = !matches!(outcome, AttemptOutcome::Ran { .. } | AttemptOutcome::Closed { .. });
    let outcome = match outcome {
        AttemptOutcome::NoRoom { message } => return Step::WaitForRoom(message),
        AttemptOutcome::Unused { message } if unused + 1 < UNUSED_LIMIT => return Step::NewSandbox(message),
        outcome => outcome,
    };
    // What it sent to its hosts may have taken effect, and with its log the end may be rotated away.
    let has_ended_once = admitted.content.network.is_some()
        && matches!(&outcome, AttemptOutcome::Lost { receipt: Some(_), .. });
    let retries = if has_ended_once { 0 } else { admitted.retries };
    let conclusion = conclude::conclude(outcome, &admitted.content, admitted.timeout);
    let conclusion = Box::new(Conclusion { must_end, ..conclusion });
    let reason = conclusion.reason.unwrap_or(Reason::ApiError);
    match retry::decide(reason, attempt, retries, admitted.content.limits.retry_on) {
        RetryDecision::Finish => Step::Finish(conclusion),
        RetryDecision::Retry => Step::Retry(conclusion),
    }
}

/// Returns the memory that the parsed output takes, unless its check takes no time.
pub(super) fn large_output(outcome: &AttemptOutcome, admitted: &Admitted) -> Option<usize> {
    let AttemptOutcome::Ran { captured, .. } = outcome else { return None };
    let takes_long = admitted.content.output_schema.is_some() || captured.stdout.len() > SMALL_OUTPUT;
    takes_long.then(|| parsed_size(&captured.stdout))
}

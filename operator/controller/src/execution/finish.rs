//! The end of an execution: its final status, its event, and the removal of its sandbox.

use std::time::Duration;

use jiff::Timestamp;
use kube::runtime::events::EventType;
use skillet_api::{Phase, Reason};
use tracing::{Instrument as _, info, warn};

use super::{attempt_outcome::SandboxRef, conclude::Conclusion, reference::ExecutionRef, status};
use crate::{context::Context, pace::Turns};

pub(super) const KIND: &str = "SkillExecution";

/// Writes the final status of an execution, and reports it by metric and event. The event follows beside the caller, so
/// that a slow API server holds no place with it.
pub(super) async fn finish(
    ctx: &Context,
    turns: &Turns,
    reference: &ExecutionRef,
    generation: Option<i64>,
    conclusion: Conclusion,
) {
    let (phase, reason) = (conclusion.phase, conclusion.reason.unwrap_or(Reason::ApiError));
    let message = conclusion.message.clone().unwrap_or_default();
    let duration = conclusion.duration_ms.map(Duration::from_millis);
    let version = conclusion.resolved_version.clone();
    let of_version = version.as_deref().unwrap_or_default();
    let succeeded = format!("version {of_version} ran for {:?}", duration.unwrap_or_default());
    let (sandbox, must_end) = (conclusion.sandbox.clone(), conclusion.must_end);
    if conclusion.truncated {
        ctx.metrics.truncated.inc();
    }
    let mut status = status::finished(conclusion, generation, Timestamp::now());
    status::apply_until_done(&ctx.client, turns, reference, &mut status).await;
    // By the Job the next operator knows that this was run: it goes only after the status says so too.
    if must_end && !sandbox.job.is_empty() {
        remove(ctx, &sandbox).await;
    } else if !sandbox.job.is_empty() {
        ctx.remover.later(sandbox.job);
    }
    ctx.metrics.execution_ended(phase, reason, duration);
    let duration_ms = duration.map(|duration| duration.as_secs_f64() * 1000.0);
    info!(?phase, %reason, version, duration_ms, "Execution ended");
    if phase == Phase::Succeeded {
        return ctx.reporter.success(reference.object(), KIND, reason, succeeded);
    }
    // A cancellation is what the user asked for.
    let type_ = if phase == Phase::Cancelled { EventType::Normal } else { EventType::Warning };
    let (object, reporter, turns) = (reference.object(), ctx.reporter.clone(), turns.clone());
    let publish = async move {
        let _turn = turns.take().await;
        reporter.event(&object, KIND, type_, reason, &message).await;
    };
    tokio::spawn(publish.in_current_span());
}

/// Removes a sandbox at once, or later if that fails.
pub(super) async fn remove(ctx: &Context, sandbox: &SandboxRef) {
    if let Err(error) = ctx.remover.now(&sandbox.job).await {
        warn!(job = sandbox.job, %error, "Sandbox could not be removed at once");
        ctx.remover.later(sandbox.job.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skillet_core::admission::Refusal;

    use tokio::time::timeout;

    use super::{
        super::tests::{calls, context, execution, serving},
        *,
    };

    /// Ends `count` executions, and returns type and reason of each event.
    async fn events(conclusion: &Conclusion, count: usize) -> Vec<(Value, Value)> {
        let (client, seen) = serving(|_| Some((200, b"{}".to_vec())));
        let ctx = context(client);
        for number in 0..count {
            let mut execution = execution("s");
            execution.metadata.uid = Some(format!("u{number}"));
            let reference = ExecutionRef::of(&execution).unwrap();
            finish(&ctx, &ctx.pace.ends, &reference, None, conclusion.clone()).await;
        }
        // Events are published beside the run.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let events = calls(&seen).into_iter().filter(|call| call.path.ends_with("/events"));
        events.map(|call| (call.body["type"].clone(), call.body["reason"].clone())).collect()
    }

    fn succeeded() -> Conclusion {
        Conclusion { phase: Phase::Succeeded, reason: Some(Reason::Succeeded), ..Conclusion::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_warnings_and_success_and_cancellation_are_normal() {
        let refused = Conclusion::refused(&Refusal::new(Reason::SkillOff, "off"));
        for (conclusion, expected) in [
            (succeeded(), ["Normal", "Succeeded"]),
            (Conclusion::cancelled(), ["Normal", "Cancelled"]),
            (refused, ["Warning", "SkillOff"]),
        ] {
            let [type_, reason] = expected.map(|text| json!(text));
            assert_eq!(events(&conclusion, 1).await, [(type_, reason)]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_hangs_holds_no_end_of_an_execution() {
        let (client, seen) = serving(|call| (!call.path.ends_with("/events")).then(|| (200, b"{}".to_vec())));
        let ctx = context(client);
        let reference = ExecutionRef::of(&execution("s")).unwrap();
        let failed = Conclusion { phase: Phase::Failed, ..Conclusion::default() };
        let ended = finish(&ctx, &ctx.pace.refusals, &reference, None, failed);
        assert!(timeout(Duration::from_secs(1), ended).await.is_ok());
        tokio::task::yield_now().await;
        let last = calls(&seen).pop().unwrap().path;
        assert!(last.ends_with("/events"), "{last}");
    }

    #[tokio::test(start_paused = true)]
    async fn events_of_many_successes_are_dropped_above_a_rate() {
        let published = events(&succeeded(), 200).await.len();
        assert!((25..=50).contains(&published), "{published}");
    }
}

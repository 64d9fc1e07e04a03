//! One SkillExecution from arrival to its final status: the driver. Read this first.
//!
//! gather (catalogue, secrets) -> validate (`skillet_core::admission`) -> build (manifest and Run frame) ->
//! apply (one attempt after the other, each in a sandbox of its own) -> status (one server-side apply).
//! Who may start when is the `engine`'s business.

pub mod adopt;
pub mod attempt;
pub mod attempt_outcome;
pub mod build;
pub mod conclude;
pub mod engine;
mod entry;
pub mod gather;
pub mod running_status;
pub mod settle;
pub mod status;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use skillet_api::{Phase, Reason, SkillExecution};
use skillet_core::{
    admission::{self, Admitted, Refusal},
    attempts::{self, Next},
    cache::ContentCache,
};
use tokio::sync::watch;
use tracing::{info, warn};

use self::{
    adopt::{ResumePoint, SandboxState},
    attempt::{Attempt, Plan},
    attempt_outcome::{AttemptOutcome, SandboxRef, TakenOver},
    conclude::Conclusion,
    running_status::RunningStatusWriter,
};
use crate::context::Context;

const KIND: &str = "SkillExecution";
/// Sandboxes that are given up unused before the execution is.
const UNUSED_LIMIT: u32 = 3;

/// May this execution run now? From the catalogue only. `begun` is the version of a run that an earlier operator
/// began, which no switch ends.
pub fn admit(
    ctx: &Context,
    contents: &ContentCache,
    execution: &SkillExecution,
    begun: Option<&str>,
) -> Result<Admitted, Refusal> {
    let observed = gather::observe(ctx, execution);
    let policy = ctx.catalog.policy();
    let request = admission::Request {
        execution: &execution.spec,
        skill: observed.skill.as_deref(),
        versions: &observed.versions,
        policy: &policy,
    };
    match begun {
        Some(version) => admission::admit_begun(&request, version, contents),
        None => admission::admit(&request, contents),
    }
}

/// Runs an admitted execution to its end and writes its status. `existing` is how far an earlier operator came.
pub async fn run(
    ctx: Arc<Context>,
    execution: Arc<SkillExecution>,
    admitted: Admitted,
    existing: ResumePoint,
    cancel: watch::Receiver<bool>,
) {
    if existing.sandbox == SandboxState::NotMade && ctx.is_young() && gather::is_over(&ctx, &execution).await
    {
        return;
    }
    let (mut admitted, mut existing, mut _held) = (admitted, existing, None);
    let conclusion = loop {
        let begun = match planned(&ctx, &execution, admitted, cancel.clone()).await {
            Ok(plan) => match attempts(&ctx, &plan, existing, cancel.clone()).await {
                Ok(conclusion) => break conclusion,
                Err(TakenOver::Begun(begun)) => begun,
                Err(TakenOver::Over | TakenOver::Newer) => return,
            },
            Err(conclusion) => break conclusion,
        };
        // What was chosen there, not what was chosen here.
        match admit(&ctx, &ContentCache::new(), &execution, begun.version.as_deref()) {
            Ok(chosen) => {
                _held = Some(ctx.in_use.hold(
                    &execution.namespace().unwrap_or_default(),
                    &chosen.skill,
                    &chosen.version,
                ));
                (admitted, existing) = (chosen, begun);
            }
            Err(refusal) => {
                let uid = execution.uid().unwrap_or_default();
                break Conclusion::refused_with(&refusal, &uid, begun.ordinal);
            }
        }
    };
    finish(&ctx, &execution, conclusion).await;
}

/// All that a run needs; an error is its end.
async fn planned(
    ctx: &Context,
    execution: &Arc<SkillExecution>,
    admitted: Admitted,
    mut cancel: watch::Receiver<bool>,
) -> Result<Plan, Conclusion> {
    let namespace = execution.namespace().unwrap_or_default();
    let read = || gather::secrets(ctx, &namespace, &admitted.content.secret_env);
    let secret_env = tokio::select! {
        secret_env = gather::until_read("Secret", read) => secret_env,
        () = attempt::cancelled(&mut cancel) => return Err(Conclusion::cancelled()),
    };
    let secret_env = secret_env.map_err(|refusal| Conclusion::refused(&refusal))?;
    let policy = ctx.catalog.policy();
    Ok(Plan { execution: execution.clone(), admitted, policy, secret_env })
}

/// Writes the final status of an execution, and tells of a failure by event and metric.
pub async fn finish(ctx: &Context, execution: &SkillExecution, conclusion: Conclusion) {
    let (phase, reason) = (conclusion.phase, conclusion.reason.unwrap_or(Reason::ApiError));
    let message = conclusion.message.clone().unwrap_or_default();
    let duration = conclusion.duration_ms.map(Duration::from_millis);
    let (place, must_end) = (conclusion.place.clone(), conclusion.must_end);
    let mut status = status::finished(conclusion, execution.metadata.generation, Timestamp::now());
    status::apply_until_done(&ctx.client, execution, &mut status).await;
    // The Job is what tells the next operator that this was run: it goes only when the status tells it too.
    if must_end && !place.job.is_empty() {
        remove(ctx, &place).await;
    } else if !place.job.is_empty() {
        ctx.remover.later(place.job);
    }
    ctx.metrics.execution_ended(phase, reason, duration);
    let (namespace, name) = (execution.namespace().unwrap_or_default(), execution.name_any());
    info!(namespace, name, ?phase, %reason, "Execution ended");
    if phase != Phase::Succeeded {
        ctx.reporter.warning(&execution.object_ref(&()), KIND, reason, &message).await;
    }
}

/// One attempt after the other until one counts. An error is what another operator has made of it meanwhile.
async fn attempts(
    ctx: &Arc<Context>,
    plan: &Plan,
    existing: ResumePoint,
    cancel: watch::Receiver<bool>,
) -> Result<Conclusion, TakenOver> {
    let content = &plan.admitted.content;
    let ResumePoint { mut ordinal, mut attempt, mut sandbox, .. } = existing;
    let mut unused = 0;
    loop {
        if *cancel.borrow() && sandbox == SandboxState::NotMade {
            return Ok(describe(plan, Conclusion::cancelled(), attempt - 1, &SandboxRef::default(), None));
        }
        let started = Arc::new(begun_at(&plan.execution, sandbox, attempt));
        let running_status = RunningStatusWriter::new(ctx, plan, attempt, &started);
        let running = Attempt {
            ctx,
            plan,
            ordinal,
            number: attempt,
            sandbox,
            cancel: cancel.clone(),
            started: &started,
            on_running: &|place| running_status.start(place),
        };
        let ran = running.run().await;
        running_status.finish().await;
        let (end, place) = ran?;
        let must_end = !matches!(end, AttemptOutcome::Ran { .. });
        if matches!(end, AttemptOutcome::Unused { .. }) && unused + 1 < UNUSED_LIMIT {
            remove(ctx, &place).await;
            unused += 1;
            ctx.metrics.discarded.inc();
            (ordinal, sandbox) = (ordinal + 1, SandboxState::NotMade);
            continue;
        }
        let conclusion = Conclusion { must_end, ..conclude::conclude(end, content, plan.admitted.timeout) };
        let reason = conclusion.reason.unwrap_or(Reason::ApiError);
        let limits = &content.limits;
        match attempts::next(reason, attempt, plan.admitted.retries, limits.retry_on) {
            Next::Finish => {
                return Ok(describe(plan, conclusion, attempt, &place, started.get().copied()));
            }
            Next::Retry => {
                info!(job = place.job, %reason, attempt, "Attempt failed and is tried again");
                // Written before the Job goes, which is what tells the next operator that this attempt was made.
                let version = plan.admitted.version.to_string();
                let mut retried = status::retried(&version, attempt, &place, &conclusion);
                status::apply_until_done(&ctx.client, &plan.execution, &mut retried).await;
                remove(ctx, &place).await;
                (ordinal, attempt, sandbox) = (ordinal + 1, attempt + 1, SandboxState::NotMade);
            }
        }
    }
}

/// When an attempt was begun under an earlier operator, as its status tells; empty for a new one.
fn begun_at(execution: &SkillExecution, sandbox: SandboxState, attempt: u32) -> OnceLock<Timestamp> {
    let told = execution.status.as_ref().filter(|status| status.attempts == attempt);
    match sandbox {
        SandboxState::NotMade => OnceLock::new(),
        SandboxState::There | SandboxState::Gone => told
            .and_then(|status| status.started_at.as_ref())
            .map_or_else(OnceLock::new, |at| OnceLock::from(at.0)),
    }
}

fn describe(
    plan: &Plan,
    conclusion: Conclusion,
    attempts: u32,
    place: &SandboxRef,
    started: Option<Timestamp>,
) -> Conclusion {
    let ran_for = conclusion.duration_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(0);
    let started_at = started.or_else(|| {
        conclusion.duration_ms.map(|_| Timestamp::now() - jiff::SignedDuration::from_millis(ran_for))
    });
    Conclusion {
        resolved_version: Some(plan.admitted.version.to_string()),
        attempts,
        started_at,
        isolation: conclusion.isolation.or_else(|| place.isolation.as_ref().map(conclude::isolation)),
        place: place.clone(),
        ..conclusion
    }
}

async fn remove(ctx: &Context, place: &SandboxRef) {
    if let Err(error) = ctx.remover.now(&place.job).await {
        warn!(job = place.job, %error, "Sandbox could not be removed at once");
        ctx.remover.later(place.job.clone());
    }
}

//! One SkillExecution from arrival to its final status: the driver. Read this first.
//!
//! gather (catalog, secrets) -> validate (`skillet_core::admission`) -> build (manifest and Run frame) ->
//! apply (one attempt after the other, each in a sandbox of its own) -> status (one server-side apply).
//!
//! Guarantees: an attempt's program starts at most once; the status says Running only after the runner has accepted
//! the run; before the Job of a sandbox goes, the status says how the sandbox was used, so that the next operator
//! resumes from there. The `engine` decides which execution may start when.

mod admit;
mod adopt;
mod attach;
mod attempt;
mod attempt_outcome;
pub(crate) mod build;
mod conclude;
mod deadlines;
mod drive;
pub(crate) mod engine;
mod entry;
mod file_run;
mod finish;
mod gather;
mod http_run;
mod mcp_call;
mod mcp_sessions;
mod order;
mod pictures;
mod plan;
mod program_output;
mod queued_status;
pub(crate) mod reference;
mod running_status;
mod session_driver;
mod settle;
mod starting_status;
pub(crate) mod status;
mod step;
mod stored;
mod unparsable;
mod without_sandbox;
mod workspace;

pub(crate) use adopt::LeftoverRuns;
pub(crate) use gather::is_permanent;
pub(crate) use http_run::KeptOutputs;
pub(crate) use mcp_sessions::McpSessions;

use std::sync::Arc;

use jiff::Timestamp;
use kube::runtime::events::EventType;
use skillet_api::{Reason, SkillExecution, network::Connections};
use skillet_core::{
    admission::{Admitted, Refusal},
    skill::{Handler, RunPart, SandboxProgram},
};
use tokio::sync::watch;
use tracing::info;

use self::{
    adopt::{ResumePoint, SandboxState},
    attempt::Attempt,
    attempt_outcome::{AttemptOutcome, SandboxRef, TakenOver},
    conclude::Conclusion,
    entry::RoomReporter,
    finish::{KIND, finish, remove},
    http_run::RequestProgram,
    order::Order,
    plan::Plan,
    reference::ExecutionRef,
    running_status::RunningStatusWriter,
    step::{Step, large_output, next_step},
};
use crate::{context::Context, egress, version_pins::Pin};

/// An output of more bytes than this is parsed on a thread of its own, also without a schema.
const SMALL_OUTPUT: usize = 16 * 1024;
/// After so many sandboxes of one attempt that were released unused, the execution fails.
const UNUSED_LIMIT: u32 = 3;

/// An admitted execution that has a place.
struct Assignment {
    reference: Arc<ExecutionRef>,
    execution: Arc<SkillExecution>,
    admitted: Admitted,
    point: ResumePoint,
    order: watch::Receiver<Order>,
    room: RoomReporter,
    /// The execution has waited for room before.
    has_waited: bool,
}

/// The end of a run's task, which gives its place back.
enum RunEnd {
    /// Nothing remains to be done.
    Finished,
    /// The cluster has no room: the execution waits and resumes from this point.
    NoRoom(ResumePoint),
}

/// Runs an admitted execution until its status is final or the cluster has no room for it.
async fn run(ctx: &Arc<Context>, assignment: Assignment) -> RunEnd {
    match assignment.admitted.content.handler.clone() {
        Handler::Sandbox(program) => run_in_sandbox(ctx, assignment, program).await,
        Handler::Http(program) => http_run::run(ctx, assignment, RequestProgram::Http(program)).await,
        Handler::Builtin(program) => http_run::run(ctx, assignment, RequestProgram::Builtin(program)).await,
        Handler::File(program) => file_run::run(ctx, assignment, program).await,
    }
}

async fn run_in_sandbox(ctx: &Arc<Context>, assignment: Assignment, program: Arc<SandboxProgram>) -> RunEnd {
    let Assignment { reference, execution, admitted, point, order, room, has_waited } = assignment;
    let (started, orders) = (execution.clone(), order.clone());
    let conclusion = match plan(ctx, reference.clone(), execution, (admitted, program), order.clone()).await {
        Err(conclusion) => conclusion,
        Ok(plan) => {
            let mut run = Run {
                plan,
                point,
                unused: 0,
                last: LastSandbox::default(),
                connections: None,
                pins: Vec::new(),
                order,
                room,
            };
            loop {
                match run.attempt(ctx).await {
                    Step::Finish(conclusion) => break *conclusion,
                    Step::NewSandbox(message) => run.replace_sandbox(ctx, &message).await,
                    Step::Retry(conclusion) => run.record_and_retry(ctx, &conclusion).await,
                    Step::WaitForRoom(message) => return run.release(ctx, &message, has_waited).await,
                    Step::TakenOver(TakenOver::Resume(point)) => match run.adopt(ctx, point).await {
                        Ok(adopted) => run = adopted,
                        Err(conclusion) => break *conclusion,
                    },
                    Step::TakenOver(TakenOver::Finished | TakenOver::ByNewer) => return RunEnd::Finished,
                }
            }
        }
    };
    let generation = order::seen_generation(&started, *orders.borrow());
    finish(ctx, &ctx.pace.ends, &reference, generation, conclusion).await;
    RunEnd::Finished
}

/// Reads all that a run needs; an error is its end.
async fn plan(
    ctx: &Context,
    reference: Arc<ExecutionRef>,
    execution: Arc<SkillExecution>,
    admitted: (Admitted, Arc<SandboxProgram>),
    mut order: watch::Receiver<Order>,
) -> Result<Plan, Conclusion> {
    tokio::select! {
        plan = Plan::read(ctx, reference, execution, admitted) => {
            plan.map_err(|refusal| Conclusion::refused(&refusal))
        }
        () = order::wait_for_cancel(&mut order) => Err(Conclusion::cancelled()),
    }
}

/// A run and its state between attempts.
struct Run {
    plan: Plan,
    /// The sandbox of the next attempt.
    point: ResumePoint,
    /// Sandboxes of this attempt that were released unused.
    unused: u32,
    last: LastSandbox,
    /// Connections of all attempts.
    connections: Option<Connections>,
    /// Keep the versions that other operators chose from being collected.
    pins: Vec<Pin>,
    order: watch::Receiver<Order>,
    room: RoomReporter,
}

/// The sandbox of the last attempt, and when its runner accepted the run.
#[derive(Default)]
struct LastSandbox {
    sandbox: SandboxRef,
    accepted_at: Option<Timestamp>,
}

impl Run {
    async fn attempt(&mut self, ctx: &Arc<Context>) -> Step {
        let Self { plan, point, .. } = self;
        self.last = LastSandbox::default();
        if self.order.borrow().is_cancel() && point.sandbox == SandboxState::NotCreated {
            let attempts = point.attempt - 1;
            return Step::Finish(Box::new(self.complete(Conclusion::cancelled(), attempts)));
        }
        let of_run = (&plan.reference, &plan.admitted);
        let status =
            RunningStatusWriter::new(ctx, of_run, point.attempt, accepted_at(&plan.execution, point));
        let attempt = Attempt {
            ctx,
            plan,
            point,
            order: self.order.clone(),
            status: &status,
            room: &self.room,
            relay: None,
        };
        let ended = attempt.run().await;
        let accepted_at = status.finish().await;
        let (outcome, mut sandbox) = match ended {
            Ok(ended) => ended,
            Err(taken_over) => return Step::TakenOver(taken_over),
        };
        if let Some(later) = sandbox.connections.take() {
            egress::add(&mut self.connections, later);
        }
        self.last = LastSandbox { sandbox, accepted_at };
        let outcome = pictures::save(ctx, &self.plan, outcome).await;
        match self.check_output(ctx, outcome).await {
            Step::Finish(conclusion) => {
                Step::Finish(Box::new(self.complete(*conclusion, self.point.attempt)))
            }
            step => step,
        }
    }

    /// Decides what follows an attempt. An output whose check may take long is checked on a thread of its own.
    async fn check_output(&self, ctx: &Context, outcome: AttemptOutcome) -> Step {
        let (attempt, unused, admitted) = (self.point.attempt, self.unused, self.plan.admitted.clone());
        let Some(size) = large_output(&outcome, &admitted) else {
            return next_step(outcome, attempt, unused, &admitted);
        };
        let turn = ctx.checks.turn_to_check(&self.plan.reference.lane);
        let decided =
            ctx.checks.run(&turn, size, move || next_step(outcome, attempt, unused, &admitted)).await;
        decided.unwrap_or_else(|| {
            let message = "the check of the output was interrupted";
            Step::Finish(Box::new(Conclusion::failed(Reason::ApiError, message.into())))
        })
    }

    /// Another sandbox for the same attempt.
    async fn replace_sandbox(&mut self, ctx: &Context, message: &str) {
        info!(job = self.last.sandbox.job, message, "Sandbox was not used and is replaced");
        self.discard(ctx, format!("{message}; the run gets another sandbox")).await;
        self.unused += 1;
    }

    /// Records the attempt that ended, and prepares the next one.
    async fn record_and_retry(&mut self, ctx: &Context, conclusion: &Conclusion) {
        let (attempt, sandbox) = (self.point.attempt, &self.last.sandbox);
        let reason = conclusion.reason.unwrap_or(Reason::ApiError);
        info!(job = sandbox.job, %reason, attempt, "Attempt failed and is retried");
        ctx.metrics.retried(reason);
        // Written before the Job goes, by which the next operator knows of this attempt.
        let mut retried =
            status::retried(&self.plan.version(), attempt, sandbox, conclusion, Timestamp::now());
        status::apply_until_done(&ctx.client, &ctx.pace.ends, &self.plan.reference, &mut retried).await;
        remove(ctx, sandbox).await;
        self.point = self.point.next_sandbox();
        (self.point.attempt, self.unused) = (attempt + 1, 0);
    }

    /// Gives sandbox and place back.
    async fn release(mut self, ctx: &Context, message: &str, has_waited: bool) -> RunEnd {
        let message = format!("waits for room in the cluster: {message}");
        info!(job = self.last.sandbox.job, message, "Sandbox found no room; the run waits");
        self.discard(ctx, message.clone()).await;
        if !has_waited {
            let object = self.plan.reference.object();
            ctx.reporter.event(&object, KIND, EventType::Warning, Reason::Queued, &message).await;
        }
        RunEnd::NoRoom(self.point)
    }

    /// Removes a sandbox in which nothing ran. The status says so first: without it, the next operator could not tell
    /// an unused sandbox from a lost one.
    async fn discard(&mut self, ctx: &Context, message: String) {
        let (attempts, job) = (self.point.attempt - 1, &self.last.sandbox.job);
        let mut released = status::released(&self.plan.version(), attempts, job, message, Timestamp::now());
        status::apply_until_done(&ctx.client, &ctx.pace.ends, &self.plan.reference, &mut released).await;
        remove(ctx, &self.last.sandbox).await;
        ctx.metrics.discarded.inc();
        self.point = self.point.next_sandbox();
    }

    /// Resumes where another operator is, with the version that it chose.
    async fn adopt(mut self, ctx: &Context, point: ResumePoint) -> Result<Self, Box<Conclusion>> {
        let Plan { reference, execution, .. } = self.plan;
        let version = point.version.as_deref();
        // The values of a script or a command are read again.
        let is_program = RunPart::of(&execution.spec) == RunPart::Program;
        let input = is_program.then_some(self.plan.admitted.stdin);
        let admitted = match admit::choose(ctx, reference.namespace(), &execution, version) {
            Ok(chosen) => admit::admit(ctx, &reference, &execution, &chosen, input).await,
            Err(refusal) => Err(refusal),
        };
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => {
                return Err(Box::new(Conclusion::refused_with(&refusal, &reference.uid, point.ordinal)));
            }
        };
        self.pins.push(ctx.version_pins.pin(reference.namespace(), &admitted.skill, &admitted.version));
        let Some(program) = admitted.content.sandbox().cloned() else {
            let message = format!("version {} of the other operator has no sandbox", admitted.version);
            let refusal = Refusal::new(Reason::SandboxLost, message);
            return Err(Box::new(Conclusion::refused_with(&refusal, &reference.uid, point.ordinal)));
        };
        let plan = plan(ctx, reference, execution, (admitted, program), self.order.clone()).await?;
        Ok(Self { plan, point, unused: 0, ..self })
    }

    /// Adds to a conclusion what the run knows of its last attempt.
    fn complete(&self, conclusion: Conclusion, attempts: u32) -> Conclusion {
        let LastSandbox { sandbox, accepted_at } = &self.last;
        Conclusion {
            resolved_version: Some(self.plan.version()),
            digest: Some(self.plan.admitted.digest.clone()),
            attempts,
            started_at: conclude::started_at(*accepted_at, conclusion.duration_ms, Timestamp::now()),
            isolation: conclusion.isolation.or_else(|| sandbox.isolation.clone()),
            sandbox: sandbox.clone(),
            connections: self.connections.clone(),
            ..conclusion
        }
    }
}

/// The time at which the runner accepted this attempt under an earlier operator, if the status has it.
fn accepted_at(execution: &SkillExecution, point: &ResumePoint) -> Option<Timestamp> {
    match point.sandbox {
        SandboxState::NotCreated => None,
        SandboxState::Exists | SandboxState::Gone => {
            let status = execution.status.as_ref().filter(|status| status.attempts == point.attempt)?;
            status.started_at.as_ref().map(|at| at.0)
        }
    }
}

#[cfg(test)]
mod tests;

//! The run of `file_read` and `file_write`: no sandbox and no request of the broker, but one call of the store of workspaces.
//!
//! Guarantee: a write is sent at most once. The status says Running before it is sent, so that an operator that finds it
//! takes the run for lost.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use skillet_api::{Phase, Reason, SkillExecution, duration::SkillDuration};
use skillet_core::{
    admission::{Admitted, Refusal},
    builtin::{FileCall, FileMode, FileProgram, WorkspacePath, written},
    output::fit,
    schema::summarize,
};
use skillet_workspace::WriteMode;
use tokio::{sync::watch, time::Instant};

use super::{
    Assignment, RunEnd,
    adopt::{ResumePoint, SandboxState},
    conclude::Conclusion,
    finish::finish,
    order::{Order, seen_generation},
    reference::ExecutionRef,
    running_status::{RunningStatusWriter, write_running},
    without_sandbox::{complete, run_until_end, shown_if_slow},
    workspace::CallerWorkspace,
};
use crate::context::Context;

/// Runs an admitted execution until its status is final.
pub(super) async fn run(ctx: &Arc<Context>, assignment: Assignment, program: FileProgram) -> RunEnd {
    let Assignment { reference, execution, admitted, point, order, room: _, has_waited: _ } = assignment;
    let mut run = FileRun {
        ctx,
        reference: &reference,
        execution: &execution,
        admitted: &admitted,
        program,
        attempt: point.attempt + u32::from(point.sandbox == SandboxState::Gone),
        started: Instant::now(),
        has_called: false,
    };
    let Some(conclusion) = run.run_until(&point, order.clone()).await else { return RunEnd::Finished };
    let conclusion = complete(conclusion, &admitted, run.attempt, run.started, run.has_called);
    let generation = seen_generation(&execution, *order.borrow());
    finish(ctx, &ctx.pace.ends, &reference, generation, conclusion).await;
    RunEnd::Finished
}

struct FileRun<'a> {
    ctx: &'a Arc<Context>,
    reference: &'a Arc<ExecutionRef>,
    execution: &'a SkillExecution,
    admitted: &'a Admitted,
    program: FileProgram,
    attempt: u32,
    started: Instant,
    /// The store was called.
    has_called: bool,
}

impl FileRun<'_> {
    /// Runs to an end, its time limit or a cancellation. `None`: another operator has ended the execution.
    async fn run_until(&mut self, point: &ResumePoint, order: watch::Receiver<Order>) -> Option<Conclusion> {
        let (limit, program) = (self.admitted.timeout, self.program);
        let of_run = (self.reference, self.admitted);
        let status = RunningStatusWriter::new(self.ctx, of_run, self.attempt, Some(Timestamp::now()));
        let run = async |status: &RunningStatusWriter| self.run(point, status).await;
        run_until_end(status, order, limit, || timed_out(program, limit), run).await
    }

    /// Returns `None` if the execution is gone or has ended meanwhile.
    async fn run(
        &mut self,
        point: &ResumePoint,
        status: &RunningStatusWriter,
    ) -> Result<Option<Conclusion>, Refusal> {
        let workspace = CallerWorkspace::of(self.ctx, self.reference, self.execution)?;
        let input: Value = serde_json::from_str(&self.admitted.stdin)
            .map_err(|error| Refusal::new(Reason::InputInvalid, format!("spec.input: {error}")))?;
        let call = self.program.call(&input);
        let call = call.map_err(|error| Refusal::new(error.reason(), format!("spec.input: {error}")))?;
        let context = self.execution.spec.caller.as_deref().unwrap_or(self.reference.namespace());
        let output = match call {
            FileCall::Read { path, encoding } => {
                self.has_called = true;
                let bytes = shown_if_slow(status, workspace.read(&path)).await?;
                encoding.output(&path, &bytes, context)
            }
            FileCall::Write { path, content, mode } => {
                if point.sandbox == SandboxState::Gone {
                    return Ok(Some(lost(&path)));
                }
                if !write_running(self.ctx, self.reference, self.admitted, self.attempt).await {
                    return Ok(None);
                }
                self.has_called = true;
                let size = content.len();
                workspace.write(&path, Bytes::from(content), write_mode(mode)).await?;
                written(&path, size, context)
            }
        };
        Ok(Some(succeeded(output, self.admitted)))
    }
}

fn write_mode(mode: FileMode) -> WriteMode {
    match mode {
        FileMode::Create => WriteMode::Create,
        FileMode::Overwrite => WriteMode::Overwrite,
        FileMode::Append => WriteMode::Append,
    }
}

/// An output that does not fit is a failure: a part of a file is not the file.
fn succeeded(output: Value, admitted: &Admitted) -> Conclusion {
    if let Some(schema) = &admitted.content.output_schema
        && let Err(violations) = schema.check(&output)
    {
        let message = format!("the output breaks tool.outputSchema: {}", summarize(&violations));
        return Conclusion::failed(Reason::OutputInvalid, message);
    }
    let (output, is_cut) = fit(output);
    if is_cut {
        let message =
            "the file is too large for the status of an execution; kubectl skill workspace cp copies it";
        return Conclusion::failed(Reason::OutputTooLarge, message.into());
    }
    Conclusion {
        phase: Phase::Succeeded,
        reason: Some(Reason::Succeeded),
        output: Some(output),
        ..Conclusion::default()
    }
}

/// The end of a run whose write was sent by an operator that is gone.
fn lost(path: &WorkspacePath) -> Conclusion {
    let message = format!(
        "the operator ended after it began to write {path}, and before it knew the end; read the file to see if it was written"
    );
    Conclusion::failed(Reason::ResultLost, message)
}

fn timed_out(program: FileProgram, limit: Duration) -> Conclusion {
    let may_be = match program {
        FileProgram::Read => "",
        FileProgram::Write => "; the file may have been written: read it before you write it again",
    };
    let message = format!(
        "the store of workspaces did not answer within the limit of {}{may_be}",
        SkillDuration(limit)
    );
    Conclusion { phase: Phase::TimedOut, ..Conclusion::failed(Reason::TimedOut, message) }
}

#[cfg(test)]
mod tests;

//! Pictures of the built-in `browser`: the sandbox returns them with its output, and they become files of the caller's workspace.
//!
//! A run that is settled from its log by a later operator writes the same files again, with the same bytes.

use bytes::Bytes;
use skillet_api::builtin::Builtin;
use skillet_core::{
    admission::Refusal,
    builtin::{BrowserOutput, needs_workspace},
};
use skillet_workspace::WriteMode;

use super::{attempt_outcome::AttemptOutcome, plan::Plan, workspace::CallerWorkspace};
use crate::context::Context;

/// Refuses a run whose pictures could be kept nowhere.
pub(super) fn check(ctx: &Context, plan: &Plan) -> Result<(), Refusal> {
    if is_browser(plan) && needs_workspace(&plan.admitted.stdin) {
        CallerWorkspace::of(ctx, &plan.reference, &plan.execution)?;
    }
    Ok(())
}

/// Writes the pictures of a run, and leaves the rest of what it printed as its output.
pub(super) async fn save(ctx: &Context, plan: &Plan, outcome: AttemptOutcome) -> AttemptOutcome {
    let AttemptOutcome::Ran { receipt, mut captured } = outcome else { return outcome };
    if !is_browser(plan) {
        return AttemptOutcome::Ran { receipt, captured };
    }
    let (stdin, stdout) = (plan.admitted.stdin.clone(), std::mem::take(&mut captured.stdout));
    // Pictures are megabytes of base64.
    let read = tokio::task::spawn_blocking(move || BrowserOutput::read(&stdin, &stdout).ok_or(stdout));
    captured.stdout = match read.await {
        Ok(Ok(output)) => write(ctx, plan, output).await,
        Ok(Err(mut text)) => {
            text.truncate(usize::try_from(plan.admitted.content.limits.output_bytes).unwrap_or(usize::MAX));
            text
        }
        Err(_) => b"the output could not be read".to_vec(),
    };
    AttemptOutcome::Ran { receipt, captured }
}

async fn write(ctx: &Context, plan: &Plan, mut output: BrowserOutput) -> Vec<u8> {
    let pictures = std::mem::take(&mut output.pictures);
    if !pictures.is_empty() {
        // Another operator may lead already, and the file may have changed since.
        ctx.leadership.confirm().await;
    }
    for picture in pictures {
        let written = match CallerWorkspace::of(ctx, &plan.reference, &plan.execution) {
            Ok(workspace) => {
                let bytes = Bytes::from(picture.bytes.clone());
                workspace.write(&picture.path, bytes, WriteMode::Overwrite).await
            }
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = written {
            output.fail_picture(&picture, &refusal.message);
        }
    }
    let context = plan.execution.spec.caller.as_deref().unwrap_or(plan.reference.namespace());
    output.into_json(context)
}

fn is_browser(plan: &Plan) -> bool {
    plan.program.builtin == Some(Builtin::Browser)
}

#[cfg(test)]
mod tests;

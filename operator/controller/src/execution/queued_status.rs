//! Writes to the status of an execution that it waits for a place, with retries, and never after a later status.
//!
//! Thousands may wait. A few of their statuses are written at a time, and one that the API server does not take now is
//! written later.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::{sync::watch, task::JoinHandle};
use tracing::{Instrument as _, Span, debug};

use super::{
    gather::is_permanent,
    reference::ExecutionRef,
    running_status::write_until_over,
    status::{self, StatusError},
};
use crate::{context::Context, report::chain};

/// The writer of one execution. It stops if it is dropped.
pub(super) struct QueuedStatusWriter {
    is_over: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl QueuedStatusWriter {
    pub(super) fn start(ctx: &Arc<Context>, reference: &Arc<ExecutionRef>, span: &Span, why: &str) -> Self {
        let status = status::queued(&format!("waits for a free place: {why}"), Timestamp::now());
        let (ctx, reference) = (ctx.clone(), reference.clone());
        let (sender, is_over) = watch::channel(false);
        let write = async move {
            let over = is_over.clone();
            write_until_over(is_over, || async {
                let mut over = over.clone();
                let is_over = async { over.wait_for(|is_over| *is_over).await.map(drop) };
                let _turn = tokio::select! {
                    turn = ctx.pace.queued.take() => turn,
                    // Nothing remains to be written.
                    _ = is_over => return Ok(()),
                };
                match status::apply(&ctx.client, &reference, &status).await {
                    Err(StatusError::Apply { source, .. }) if is_permanent(&source) => {
                        debug!(error = %source, "Queued status is refused");
                        Ok(())
                    }
                    written => written.inspect_err(|error| {
                        debug!(error = %chain(error), "Queued status could not be written yet");
                    }),
                }
            })
            .await;
        };
        Self { is_over: sender, task: tokio::spawn(write.instrument(span.clone())) }
    }

    /// Stops writing. Waits for a write in flight, which must not arrive after the next status.
    pub(super) async fn finish(self) {
        self.is_over.send_replace(true);
        // A panic in it was logged by the runtime; the next status replaces this one.
        self.task.await.ok();
    }
}

//! Writes the `Running` status of one attempt, with retries, and never after a later status.
//!
//! Before the runner has accepted the run nothing is written: an operator that finds `Running` and no sandbox takes the
//! run for lost.

use std::{
    mem,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use jiff::Timestamp;
use skillet_core::admission::Admitted;
use skillet_kube::{Backoff, lock};
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tracing::{Instrument as _, warn};

use super::{
    attempt_outcome::SandboxRef,
    reference::ExecutionRef,
    status::{self, StatusError},
};
use crate::{context::Context, report::chain};

const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));

/// The writer of one attempt.
pub(crate) struct RunningStatusWriter {
    ctx: Arc<Context>,
    reference: Arc<ExecutionRef>,
    version: String,
    digest: String,
    attempt: u32,
    accepted_at: OnceLock<Timestamp>,
    is_over: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl RunningStatusWriter {
    /// `accepted_at` is the time of the runner's acceptance, if an earlier operator wrote it down.
    pub(crate) fn new(
        ctx: &Arc<Context>,
        (reference, admitted): (&Arc<ExecutionRef>, &Admitted),
        attempt: u32,
        accepted_at: Option<Timestamp>,
    ) -> Self {
        Self {
            ctx: ctx.clone(),
            reference: reference.clone(),
            version: admitted.version.to_string(),
            digest: admitted.digest.clone(),
            attempt,
            accepted_at: accepted_at.map_or_else(OnceLock::new, OnceLock::from),
            is_over: watch::channel(false).0,
            task: Mutex::default(),
        }
    }

    /// Notes that the runner has accepted the run, not before `at`.
    pub(crate) fn accept(&self, at: Timestamp) {
        self.accepted_at.get_or_init(|| at);
    }

    pub(crate) fn is_accepted(&self) -> bool {
        self.accepted_at.get().is_some()
    }

    /// Starts to write. Does nothing before the runner has accepted the run, nor a second time.
    pub(crate) fn start(&self, sandbox: &SandboxRef) {
        let Some(accepted_at) = self.accepted_at.get() else { return };
        let mut task = lock(&self.task);
        if task.is_some() {
            return;
        }
        let status = status::running(&self.version, &self.digest, self.attempt, sandbox, *accepted_at);
        let (ctx, reference) = (self.ctx.clone(), self.reference.clone());
        let is_over = self.is_over.subscribe();
        let write = async move {
            write_until_over(is_over, || async {
                let written = status::apply(&ctx.client, &reference, &status).await;
                written.inspect_err(|error| {
                    warn!(error = %chain(error), "Running status could not be written yet");
                })
            })
            .await;
        };
        *task = Some(tokio::spawn(write.in_current_span()));
    }

    /// Stops writing, and returns when the runner accepted the run. Waits for a write in flight, which must not
    /// arrive after the next status.
    pub(crate) async fn finish(self) -> Option<Timestamp> {
        self.is_over.send_replace(true);
        let task = mem::take(&mut *lock(&self.task));
        if let Some(task) = task {
            // A panic in it was logged by the runtime; the next status replaces this one.
            task.await.ok();
        }
        self.accepted_at.get().copied()
    }
}

/// Writes that a run without a sandbox may have an effect from now on, and makes sure that this operator still leads. Returns
/// false if the execution is gone or has ended.
pub(super) async fn write_running(
    ctx: &Context,
    reference: &ExecutionRef,
    admitted: &Admitted,
    attempt: u32,
) -> bool {
    let Admitted { version, digest, .. } = admitted;
    let no_sandbox = SandboxRef::default();
    let mut running = status::running(&version.to_string(), digest, attempt, &no_sandbox, Timestamp::now());
    let is_there = status::apply_until_done(&ctx.client, &ctx.pace.ends, reference, &mut running).await;
    if is_there {
        // Another operator may lead already, if this one was stopped or cut off meanwhile.
        ctx.leadership.confirm().await;
    }
    is_there
}

/// Writes until one write succeeds or the status is over.
pub(super) async fn write_until_over<W>(mut is_over: watch::Receiver<bool>, write: impl Fn() -> W)
where
    W: Future<Output = Result<(), StatusError>>,
{
    let mut backoff = BACKOFF;
    loop {
        match write().await {
            Ok(()) | Err(StatusError::Gone | StatusError::Ended | StatusError::OtherTypes) => return,
            Err(StatusError::Apply { .. }) => {}
        }
        if timeout(backoff.next_pause(), is_over.wait_for(|is_over| *is_over)).await.is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::ready};

    use super::*;

    fn failed() -> StatusError {
        let source = Box::new(kube::Error::LinesCodecMaxLineLengthExceeded);
        StatusError::Apply { namespace: "ns".into(), name: "e".into(), source }
    }

    /// The number of writes if the first `failures` fail, with `last` after them.
    async fn writes(failures: u32, last: fn() -> Result<(), StatusError>) -> u32 {
        let (_over, is_over) = watch::channel(false);
        let written = Cell::new(0);
        write_until_over(is_over, || {
            written.set(written.get() + 1);
            ready(if written.get() <= failures { Err(failed()) } else { last() })
        })
        .await;
        written.get()
    }

    #[tokio::test(start_paused = true)]
    async fn running_status_is_retried_until_it_is_written_or_cannot_be() {
        assert_eq!(writes(0, || Ok(())).await, 1);
        assert_eq!(writes(3, || Ok(())).await, 4);
        assert_eq!(writes(1, || Err(StatusError::Ended)).await, 2);
        assert_eq!(writes(0, || Err(StatusError::Gone)).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn running_status_is_not_retried_when_the_run_is_over() {
        let (over, is_over) = watch::channel(false);
        let written = Cell::new(0);
        write_until_over(is_over, || {
            written.set(written.get() + 1);
            over.send_replace(true);
            ready(Err(failed()))
        })
        .await;
        assert_eq!(written.get(), 1);
    }
}

//! Tells in the status that a run goes on: tried again as long as it does, and never written after what comes next.

use std::{
    mem,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use skillet_api::SkillExecution;
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tracing::warn;

use super::{
    attempt::Plan,
    attempt_outcome::SandboxRef,
    status::{self, StatusError},
};
use crate::{context::Context, report::chain};

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(10);

/// Of one attempt.
pub struct RunningStatusWriter {
    ctx: Arc<Context>,
    execution: Arc<SkillExecution>,
    version: String,
    attempt: u32,
    started: Arc<OnceLock<Timestamp>>,
    is_over: watch::Sender<bool>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl RunningStatusWriter {
    /// `started` is when the runner accepted the run, where that is known by the time of telling.
    pub fn new(ctx: &Arc<Context>, plan: &Plan, attempt: u32, started: &Arc<OnceLock<Timestamp>>) -> Self {
        Self {
            ctx: ctx.clone(),
            execution: plan.execution.clone(),
            version: plan.admitted.version.to_string(),
            attempt,
            started: started.clone(),
            is_over: watch::channel(false).0,
            tasks: Mutex::default(),
        }
    }

    /// Begins to tell.
    pub fn start(&self, place: &SandboxRef) {
        let at = *self.started.get_or_init(Timestamp::now);
        let status = Arc::new(status::running(&self.version, self.attempt, place, at));
        let (ctx, execution) = (self.ctx.clone(), self.execution.clone());
        let is_over = self.is_over.subscribe();
        let write = move || {
            let (ctx, execution, status) = (ctx.clone(), execution.clone(), status.clone());
            async move { status::apply(&ctx.client, &execution, &status).await }
        };
        let task = tokio::spawn(until_over(is_over, write));
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    /// Ends telling. What is on its way is waited for: it must not arrive after the next status.
    pub async fn finish(self) {
        self.is_over.send_replace(true);
        let tasks = mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            // A panic in it was logged by the runtime; the next status says all that it would have said.
            task.await.ok();
        }
    }
}

/// Until it is written, or is not to be written any more.
async fn until_over<W>(mut is_over: watch::Receiver<bool>, write: impl Fn() -> W)
where
    W: Future<Output = Result<(), StatusError>>,
{
    let mut pause = FIRST_PAUSE;
    loop {
        match write().await {
            Ok(()) | Err(StatusError::Gone | StatusError::Ended) => return,
            Err(error @ StatusError::Apply { .. }) => {
                warn!(error = %chain(&error), "Running status could not be written yet");
            }
        }
        if timeout(pause, is_over.wait_for(|is_over| *is_over)).await.is_ok() {
            return;
        }
        pause = (pause * 2).min(LAST_PAUSE);
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

    /// How often it is tried where the first `failures` tries fail, with `last` after them.
    async fn tries(failures: u32, last: fn() -> Result<(), StatusError>) -> u32 {
        let (_over, is_over) = watch::channel(false);
        let tried = Cell::new(0);
        until_over(is_over, || {
            tried.set(tried.get() + 1);
            ready(if tried.get() <= failures { Err(failed()) } else { last() })
        })
        .await;
        tried.get()
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_tried_again_until_it_is_written_or_cannot_be() {
        assert_eq!(tries(0, || Ok(())).await, 1);
        assert_eq!(tries(3, || Ok(())).await, 4);
        assert_eq!(tries(1, || Err(StatusError::Ended)).await, 2);
        assert_eq!(tries(0, || Err(StatusError::Gone)).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_not_tried_again_when_the_run_is_over() {
        let (over, is_over) = watch::channel(false);
        let tried = Cell::new(0);
        until_over(is_over, || {
            tried.set(tried.get() + 1);
            over.send_replace(true);
            ready(Err(failed()))
        })
        .await;
        assert_eq!(tried.get(), 1);
    }
}

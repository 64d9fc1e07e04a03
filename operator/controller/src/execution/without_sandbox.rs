//! The common parts of runs without a sandbox: their limit and cancellation, the status Running, and their times.

use std::time::Duration;

use jiff::Timestamp;
use skillet_core::admission::{Admitted, Refusal};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{
    attempt_outcome::SandboxRef,
    conclude::{Conclusion, started_at},
    order::{Order, wait_for_cancel, wait_for_stop},
    running_status::RunningStatusWriter,
};

/// Work without an effect that takes longer than this is shown as Running.
const REPORT_AFTER: Duration = Duration::from_millis(500);

/// Runs to an end, the limit or a cancellation. `None`: another operator has ended the execution.
pub(super) async fn run_until_end(
    status: RunningStatusWriter,
    order: watch::Receiver<Order>,
    limit: Duration,
    timed_out: impl FnOnce() -> Conclusion,
    run: impl AsyncFnOnce(&RunningStatusWriter) -> Result<Option<Conclusion>, Refusal>,
) -> Option<Conclusion> {
    let (mut cancelled, stopped) = (order.clone(), order);
    let ended = tokio::select! {
        ended = run(&status) => ended.unwrap_or_else(|refusal| Some(Conclusion::refused(&refusal))),
        () = wait_for_cancel(&mut cancelled) => Some(Conclusion::cancelled()),
        () = wait_for_stop(stopped) => None,
        () = sleep(limit) => Some(timed_out()),
    };
    status.finish().await;
    ended
}

/// Does work without an effect, and starts to write the status Running if it is slow.
pub(super) async fn shown_if_slow<T>(status: &RunningStatusWriter, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => done,
        () = sleep(REPORT_AFTER) => {
            status.start(&SandboxRef::default());
            work.await
        }
    }
}

/// Adds version, attempts and times. An attempt that has not `begun` does not count.
pub(super) fn complete(
    conclusion: Conclusion,
    admitted: &Admitted,
    attempt: u32,
    started: Instant,
    has_begun: bool,
) -> Conclusion {
    let duration = started.elapsed();
    let ran_for = has_begun.then(|| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
    Conclusion {
        resolved_version: Some(admitted.version.to_string()),
        digest: Some(admitted.digest.clone()),
        attempts: if has_begun { attempt } else { attempt - 1 },
        started_at: started_at(None, ran_for, Timestamp::now()),
        duration_ms: ran_for,
        ..conclusion
    }
}

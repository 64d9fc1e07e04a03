//! Follows one execution to its end: its changes, the clock, and Ctrl-C. The result is judged elsewhere.

use std::{future::pending, pin::pin, time::Duration};

use futures::StreamExt as _;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::json;
use skillet_api::{SkillExecution, duration::SkillDuration};
use tokio::{
    sync::mpsc,
    time::{Instant, interval, sleep_until},
};

use super::progress::Progress;
use crate::error::CliError;

/// Interval at which a terminal's line is overwritten.
const TICK: Duration = Duration::from_millis(125);
/// Longest wait for the end of a canceled execution; the operator settles one within 2 s.
const CANCEL_WAIT: Duration = Duration::from_secs(5);
/// The command fails if the cluster cannot be reached for this long.
const UNREACHABLE_LIMIT: Duration = Duration::from_secs(30);

/// Presses of Ctrl-C since the creation of this value; with none, Ctrl-C ends the process.
pub(crate) struct Interrupts(Option<mpsc::Receiver<()>>);

impl Interrupts {
    pub(crate) fn listen() -> Self {
        let (press, presses) = mpsc::channel(4);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                press.send(()).await.ok();
            }
            // Without signals there is never a press, so the channel must stay open.
            press.closed().await;
        });
        Self(Some(presses))
    }

    pub(crate) fn none() -> Self {
        Self(None)
    }

    async fn next_press(&mut self) {
        match &mut self.0 {
            Some(presses) => drop(presses.recv().await),
            None => pending().await,
        }
    }
}

/// State of the watch.
struct WatchHealth {
    lost_since: Option<Instant>,
}

/// Waits until `created` has ended, for at most `wait`, and returns its last state.
pub(crate) async fn follow(
    api: &Api<SkillExecution>,
    created: &SkillExecution,
    wait: Option<SkillDuration>,
    interrupts: &mut Interrupts,
    progress: &mut Progress,
) -> Result<SkillExecution, CliError> {
    let name = created.name_any();
    let Some(namespace) = created.metadata.namespace.clone() else {
        let action = format!("follow SkillExecution {name}");
        return Err(CliError::Unexpected { action, message: "the API server returned no namespace".into() });
    };
    let started = Instant::now();
    let mut deadline = wait.map(|wait| started + wait.0);
    let mut is_cancelling = false;
    let mut health = WatchHealth { lost_since: None };
    let mut changes = pin!(watcher::watch_object(api.clone(), &name).default_backoff());
    let mut tick = interval(TICK);
    loop {
        tokio::select! {
            change = changes.next() => match change {
                Some(Ok(Some(execution))) => {
                    health.lost_since = None;
                    progress.update(execution.status.as_ref());
                    if execution.status.as_ref().is_some_and(|status| status.phase.is_terminal()) {
                        return Ok(execution);
                    }
                }
                Some(Ok(None)) | None => return Err(CliError::Deleted { namespace, name }),
                Some(Err(error)) => health.lose(error, &namespace, &name, progress)?,
            },
            _ = tick.tick() => progress.tick(started.elapsed()),
            () = sleep_until(deadline.unwrap_or(started)), if deadline.is_some() => {
                return Err(match wait {
                    Some(wait) if !is_cancelling => {
                        CliError::StillRunning { namespace, name, waited: wait.to_string() }
                    }
                    Some(_) | None => CliError::CancelPending { namespace, name },
                });
            }
            () = interrupts.next_press() => {
                if is_cancelling {
                    return Err(CliError::CancelPending { namespace, name });
                }
                is_cancelling = true;
                progress.announce_cancel();
                tokio::select! {
                    cancelled = cancel(api, &namespace, &name) => cancelled?,
                    () = interrupts.next_press() => return Err(CliError::CancelPending { namespace, name }),
                }
                deadline = Some(Instant::now() + CANCEL_WAIT);
            }
        }
    }
}

async fn cancel(api: &Api<SkillExecution>, namespace: &str, name: &str) -> Result<(), CliError> {
    let patch = Patch::Merge(json!({ "spec": { "cancel": true } }));
    let action = || format!("cancel SkillExecution {namespace}/{name}, which keeps running");
    match api.patch(name, &PatchParams::default(), &patch).await {
        Ok(_) => Ok(()),
        Err(error) => Err(CliError::from_api(action(), &error)),
    }
}

impl WatchHealth {
    /// Records a failed watch. The watch is retried unless a retry cannot help.
    fn lose(
        &mut self,
        error: watcher::Error,
        namespace: &str,
        name: &str,
        progress: &Progress,
    ) -> Result<(), CliError> {
        let action = format!("follow SkillExecution {namespace}/{name}, which keeps running");
        let failure = match error {
            // The watch only expired; it is restarted.
            watcher::Error::WatchError(status) if status.code == 410 => return Ok(()),
            watcher::Error::WatchError(status) => CliError::from_status(action, &status),
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => CliError::from_api(action, &error),
            error @ watcher::Error::NoResourceVersion => {
                CliError::Unexpected { action, message: error.to_string() }
            }
        };
        if matches!(
            failure,
            CliError::Forbidden { .. } | CliError::Unauthorized { .. } | CliError::NotInstalled
        ) {
            return Err(failure);
        }
        match self.lost_since {
            Some(since) if since.elapsed() >= UNREACHABLE_LIMIT => Err(failure),
            Some(_) => Ok(()),
            None => {
                self.lost_since = Some(Instant::now());
                progress.say(&format!("{failure}; retrying"));
                Ok(())
            }
        }
    }
}

//! Writes to the status of an execution what its sandbox waits for, in the words of scheduler and kubelet, and never after
//! a later status.
//!
//! Only of a first attempt whose sandbox this operator created: other statuses say more.

use std::time::Duration;

use jiff::Timestamp;
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tracing::{Instrument as _, debug};

use super::{
    adopt::ResumePoint,
    build::sandbox as build,
    plan::Plan,
    status::{self, StatusError},
};
use crate::{
    context::Context,
    report::chain,
    sandbox::{PodReceiver, describe_start},
};

/// Pause before the first look, which most sandboxes do not need, and between two.
const PAUSE: Duration = Duration::from_secs(1);

/// The writer of one sandbox. It stops if it is dropped.
pub(super) struct StartingStatusWriter {
    is_over: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl StartingStatusWriter {
    pub(super) fn start(
        ctx: &Context,
        plan: &Plan,
        point: &ResumePoint,
        pod: PodReceiver,
        image: &str,
    ) -> Self {
        let (client, turns, reference) =
            (ctx.client.clone(), ctx.pace.queued.clone(), plan.reference.clone());
        // The sandbox before this one: by its name the next operator knows which were used.
        let previous = (point.ordinal > 1).then(|| build::job_name(&reference.uid, point.ordinal - 1));
        let image = image.to_owned();
        let (sender, mut is_over) = watch::channel(false);
        let write = async move {
            let (mut written, since) = (None, Timestamp::now());
            while timeout(PAUSE, is_over.wait_for(|is_over| *is_over)).await.is_err() {
                let Some(message) = describe_start(pod.borrow().as_ref(), &image) else { continue };
                if written.as_ref() == Some(&message) {
                    continue;
                }
                let _turn = tokio::select! {
                    turn = turns.take() => turn,
                    _ = is_over.wait_for(|is_over| *is_over) => return,
                };
                let status = status::starting(previous.as_deref(), &message, since);
                match status::apply(&client, &reference, &status).await {
                    Ok(()) => written = Some(message),
                    Err(StatusError::Gone | StatusError::Ended | StatusError::OtherTypes) => return,
                    Err(error @ StatusError::Apply { .. }) => {
                        debug!(error = %chain(&error), "Starting status could not be written yet");
                    }
                }
            }
        };
        Self { is_over: sender, task: tokio::spawn(write.in_current_span()) }
    }

    /// Stops writing. Waits for a write in flight, which must not arrive after the next status.
    pub(super) async fn finish(self) {
        self.is_over.send_replace(true);
        // A panic in it was logged by the runtime; the next status replaces this one.
        self.task.await.ok();
    }
}

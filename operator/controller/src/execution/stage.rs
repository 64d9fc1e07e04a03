//! How far the engine is with each execution, and what it is told.

use std::{sync::Arc, time::Duration};

use skillet_api::{SkillExecution, parse::ParseError};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

use tracing::debug;

use super::status;
use crate::{context::Context, in_use::Hold};

/// Uid of an execution.
pub(super) type Uid = String;

pub(super) enum Message {
    /// A live read of what an execution needs has been made.
    Refreshed(Uid, Refreshed),
    /// A run has ended and its status is written.
    Ended(Uid),
}

/// What a live read found.
pub(super) struct Refreshed {
    /// The skill is there and does not parse.
    pub(super) unreadable: Option<ParseError>,
    /// The versions were read too, not only the skill.
    pub(super) with_versions: bool,
}

pub(super) enum Stage {
    /// A live read is on its way: watches of different kinds run apart, and the catalogue may be behind.
    Refreshing,
    /// The Skill was changed and is not sealed yet.
    Settling { since: Instant },
    /// Waits for a place. The hold keeps its version from being collected.
    Queued { since: Instant, is_told: bool, _hold: Hold },
    /// Has a task of its own until its status is written. `place` is the skill whose run it is; none for a refusal.
    Active { cancel: watch::Sender<bool>, place: Option<String> },
    /// Its status is written; the watch has not shown it yet.
    Done,
}

pub(super) struct Entry {
    /// A status that is being written, to be waited for before the next one.
    pub(super) told: Option<JoinHandle<()>>,
    /// The watch has shown the end, or that the object is gone.
    pub(super) is_seen_over: bool,
    pub(super) execution: Arc<SkillExecution>,
    pub(super) stage: Stage,
}

/// What a task of an execution is given: the object, whether it is to be cancelled, and a status on its way.
pub(super) type Begun = (Arc<SkillExecution>, watch::Receiver<bool>, Option<JoinHandle<()>>);

/// Waits for a status that is being written. A panic in its task was logged by the runtime.
pub(super) async fn written(told: Option<JoinHandle<()>>) {
    if let Some(told) = told {
        told.await.ok();
    }
}

/// An execution that waits longer than this for a place is told so in its status.
const TELL_QUEUED_AFTER: Duration = Duration::from_secs(3);

impl Entry {
    /// Says once, in the status, that the execution waits for a place. Does nothing in any other stage.
    pub(super) fn tell_queued(&mut self, ctx: &Arc<Context>) {
        let Stage::Queued { since, is_told, _hold } = &mut self.stage else { return };
        if *is_told || since.elapsed() < TELL_QUEUED_AFTER {
            return;
        }
        *is_told = true;
        if self.execution.status.as_ref().is_some_and(|status| status.reason.is_some()) {
            return;
        }
        let (ctx, execution) = (ctx.clone(), self.execution.clone());
        self.told = Some(tokio::spawn(async move {
            let status = status::queued("waits for a free place under the concurrency limits of SkillPolicy");
            if let Err(error) = status::apply(&ctx.client, &execution, &status).await {
                debug!(%error, "Queued status could not be written");
            }
        }));
    }
}

//! The engine's record of one execution, its stages, and the messages of its tasks.

use std::{sync::Arc, time::Duration};

use kube::ResourceExt as _;
use skillet_api::SkillExecution;
use skillet_core::{
    admission::Refusal,
    lane::Lane,
    queue::{Arrival, SandboxSize},
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::Instant,
};
use tracing::Span;

use super::{
    admit::Verdict, adopt::ResumePoint, conclude::Conclusion, order::Order,
    queued_status::QueuedStatusWriter, reference::ExecutionRef,
};
use crate::{context::Context, version_pins::Pin};

/// Uid of an execution.
pub(super) type Uid = String;

/// A task's message to the engine, about the execution of that uid.
pub(super) enum Message {
    /// A live read of an execution's skill has ended.
    Refreshed(Uid, Refreshed),
    /// A run has ended and its status is written.
    Ended(Uid),
    /// The scheduler finds no room for the sandbox of a run.
    RoomMissing(Uid),
    /// The scheduler found room for the sandbox of a run.
    RoomFound(Uid),
    /// A run without room has released its sandbox and its place; it resumes from this point.
    Released(Uid, ResumePoint),
}

/// The result of a live read and a check.
pub(super) struct Refreshed {
    pub(super) result: Result<Verdict, Refusal>,
    /// Nothing newer can be read.
    pub(super) is_final: bool,
}

/// Reports to the engine whether the cluster has room for the sandbox of one run.
pub(crate) struct RoomReporter {
    pub(super) uid: Uid,
    pub(super) outbox: mpsc::UnboundedSender<Message>,
}

impl RoomReporter {
    /// The scheduler finds no room.
    pub(crate) fn report_missing(&self) {
        self.outbox.send(Message::RoomMissing(self.uid.clone())).ok();
    }

    /// The scheduler found room.
    pub(crate) fn report_found(&self) {
        self.outbox.send(Message::RoomFound(self.uid.clone())).ok();
    }
}

/// A task that ends with its owner.
#[derive(Debug)]
pub(super) struct OwnedTask(pub(super) JoinHandle<()>);

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Debug)]
pub(super) enum Stage {
    /// Nothing was done for it yet.
    New,
    /// A live read is on its way: watches of different kinds run apart, and the catalog may be behind.
    Refreshing { _task: OwnedTask },
    /// The Skill was changed and is not sealed yet.
    Settling { since: Instant },
    /// Waits for a place.
    Queued { since: Instant, is_reported: bool },
    /// Waits until the cluster may have room, without a place.
    WaitingForRoom { until: Instant },
    /// Has a task of its own until its status is written. `skill` is the skill whose run has a place; `None` for a
    /// refusal.
    Active { order: watch::Sender<Order>, skill: Option<String> },
    /// Its status is written; the watch has not shown it yet.
    Done,
}

pub(super) struct Entry {
    pub(super) reference: Arc<ExecutionRef>,
    pub(super) span: Span,
    /// Its place in the order of arrival, which it keeps when it waits again.
    pub(super) arrival: Arrival,
    pub(super) seen_at: Instant,
    /// Writes that the execution waits. It is finished before the next status.
    pub(super) queued_status: Option<QueuedStatusWriter>,
    /// The watch has shown the end, or that the object is gone.
    pub(super) is_finished: bool,
    /// Without its input.
    pub(super) execution: Arc<SkillExecution>,
    /// The input if it is small. A large one is read again.
    pub(super) input: Option<Arc<str>>,
    /// The last check of content and input.
    pub(super) verdict: Option<Verdict>,
    /// The size that a run of it counts with.
    pub(super) size: SandboxSize,
    /// From where the next run resumes.
    pub(super) point: ResumePoint,
    /// Keeps the version from being collected while the execution waits or runs.
    pub(super) pin: Option<Pin>,
    /// Sandboxes for which the cluster had no room.
    pub(super) rejections: u32,
    pub(super) stage: Stage,
}

/// The input of an execution's task, with a status on its way.
pub(super) struct Task {
    pub(super) reference: Arc<ExecutionRef>,
    pub(super) order: watch::Receiver<Order>,
    pub(super) queued_status: Option<QueuedStatusWriter>,
}

impl Task {
    /// Waits until no earlier status can arrive after one that is written now.
    pub(super) async fn finish_earlier_status(&mut self) {
        if let Some(status) = self.queued_status.take() {
            status.finish().await;
        }
    }
}

/// The status of an execution that waits longer than this for a place says so.
const REPORT_QUEUED_AFTER: Duration = Duration::from_secs(3);

impl Entry {
    pub(super) fn new(reference: ExecutionRef, execution: SkillExecution, input: Option<Arc<str>>) -> Self {
        let created = execution.creation_timestamp().map_or(0, |at| at.0.as_second());
        // Within a second the API server's own counter has the order.
        let sequence = execution.resource_version().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
        let span = reference.span(&execution);
        Self {
            reference: Arc::new(reference),
            span,
            arrival: (created, sequence),
            seen_at: Instant::now(),
            queued_status: None,
            is_finished: false,
            execution: Arc::new(execution),
            input,
            verdict: None,
            size: SandboxSize::default(),
            point: ResumePoint::FIRST,
            pin: None,
            rejections: 0,
            stage: Stage::New,
        }
    }

    /// Keeps a newer state of the execution.
    pub(super) fn renew(&mut self, execution: SkillExecution) {
        self.execution = Arc::new(execution);
    }

    /// The end of an execution that is cancelled while it waits.
    pub(super) fn cancelled(&self) -> Conclusion {
        let (resolved_version, attempts) = (self.point.version.clone(), self.point.attempt - 1);
        Conclusion { resolved_version, attempts, ..Conclusion::cancelled() }
    }

    /// Writes once, to the status, that the execution waits for a place, and the limit that `explain` names. Does nothing in
    /// any other stage.
    pub(super) fn report_queued(&mut self, ctx: &Arc<Context>, explain: impl FnOnce(&Lane, &str) -> String) {
        let Stage::Queued { since, is_reported } = &mut self.stage else { return };
        if *is_reported || since.elapsed() < REPORT_QUEUED_AFTER {
            return;
        }
        *is_reported = true;
        if self.execution.status.as_ref().is_some_and(|status| status.reason.is_some())
            || self.point != ResumePoint::FIRST
            || self.queued_status.is_some()
        {
            return;
        }
        let why = explain(&self.reference.lane, &self.execution.spec.skill);
        self.queued_status = Some(QueuedStatusWriter::start(ctx, &self.reference, &self.span, &why));
    }
}

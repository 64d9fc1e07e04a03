//! Decides which execution starts when: takes every SkillExecution as it is seen, and runs each at most once.
//!
//! One task owns all state, so nothing is locked. It looks at objects, never at the event that brought them: seeing the
//! same execution twice is the same as seeing it once. An execution starts when the concurrency limits allow it, in
//! order of arrival within its lane. While the cluster has no room, fewer start (`core::start_window`); a run
//! without room waits again and keeps its place in the order.

mod places;
mod waiting;

use std::{
    collections::{HashMap, HashSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures::{Stream, StreamExt as _};
use kube::{ResourceExt as _, runtime::watcher};
use skillet_api::SkillExecution;
use skillet_core::{
    admission::{ChosenVersion, Refusal, check_skill_name},
    queue::{FairQueue, RunningCounts},
    start_window::StartWindow,
};
use skillet_kube::{Mirror, RawObject, Unlisted};
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};
use tracing::{debug, warn};

use super::{
    LeftoverRuns, admit,
    adopt::{LeftoverRun, SandboxState},
    conclude::Conclusion,
    entry::{Entry, Message, Stage, Uid},
    order::Order,
    reference::ExecutionRef,
    stored,
    unparsable::Unparsable,
};
use crate::{
    context::Context,
    retention::{Finished, RetentionEvent},
};

const TICK: Duration = Duration::from_millis(500);

/// The engine's state and its ways in.
pub(crate) struct Engine {
    ctx: Arc<Context>,
    entries: HashMap<Uid, Entry>,
    queue: FairQueue<Uid>,
    running: RunningCounts,
    window: StartWindow,
    /// Running executions for whose sandboxes the scheduler finds no room.
    without_room: HashSet<Uid>,
    leftovers: LeftoverRuns,
    /// The first list is on its way: what it shows may have been begun by an earlier operator.
    is_first_list: bool,
    finished: mpsc::UnboundedSender<RetentionEvent>,
    inbox: mpsc::UnboundedReceiver<Message>,
    outbox: mpsc::UnboundedSender<Message>,
    unparsable: Unparsable,
}

impl Mirror for Engine {
    type Object = RawObject<SkillExecution>;
    type Key = Uid;

    fn key(&self, raw: &Self::Object) -> Option<Uid> {
        raw.uid()
    }

    fn keys(&self) -> impl IntoIterator<Item = Uid> {
        self.entries.keys().cloned()
    }

    fn apply(&mut self, raw: Self::Object) {
        match stored::read(&raw) {
            Ok(execution) => self.on_execution(execution, &raw),
            Err(error) => {
                if let Some(finished) = self.unparsable.report(&raw, &error) {
                    self.finished.send(RetentionEvent::Finished(finished)).ok();
                }
            }
        }
    }

    fn remove(&mut self, uid: Uid) {
        self.forget(&uid);
    }

    fn delete(&mut self, raw: Self::Object) {
        let (Some(uid), Some(gone)) = (raw.uid(), Finished::gone(&raw)) else { return };
        self.unparsable.forget(&uid);
        self.finished.send(RetentionEvent::Finished(gone)).ok();
        self.forget(&uid);
    }

    fn start_list(&mut self) {
        self.finished.send(RetentionEvent::ListStarted).ok();
    }

    fn finish_list(&mut self) {
        self.leftovers.clear();
        self.is_first_list = false;
        self.finished.send(RetentionEvent::ListFinished).ok();
    }
}

impl Engine {
    /// `leftovers` are the runs of earlier operators; `finished` gets the executions that have ended.
    pub(crate) fn new(
        ctx: Arc<Context>,
        leftovers: LeftoverRuns,
        finished: mpsc::UnboundedSender<RetentionEvent>,
    ) -> Self {
        let (outbox, inbox) = mpsc::unbounded_channel();
        let (unparsable, reports) = Unparsable::new(ctx.clone());
        tokio::spawn(reports);
        Self {
            ctx,
            entries: HashMap::new(),
            queue: FairQueue::new(),
            running: RunningCounts::default(),
            window: StartWindow::default(),
            without_room: HashSet::new(),
            leftovers,
            is_first_list: true,
            finished,
            inbox,
            outbox,
            unparsable,
        }
    }

    /// Works until `events` ends, which it does only with the process.
    pub(crate) async fn work(
        mut self,
        events: impl Stream<Item = watcher::Event<RawObject<SkillExecution>>>,
    ) {
        let mut events = pin!(events);
        let mut unlisted = Unlisted::default();
        let mut changes = self.ctx.catalog.changes();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => unlisted.handle(event, &mut self),
                    None => return,
                },
                Some(message) = self.inbox.recv() => self.on_message(message),
                Ok(()) = changes.changed() => self.recheck(),
                _ = tick.tick() => {
                    self.recheck();
                    self.report();
                }
            }
            self.start_ready();
        }
    }

    fn on_execution(&mut self, execution: SkillExecution, raw: &RawObject<SkillExecution>) {
        let Some(reference) = ExecutionRef::of(&execution) else {
            // The API server gives each of them to every object.
            return warn!("Execution without namespace, name or uid is ignored");
        };
        if let Some(finished) = Finished::of(&execution) {
            self.finished.send(RetentionEvent::Finished(finished)).ok();
            return self.finish_entry(&reference.uid, Order::Stop);
        }
        let uid = &reference.uid;
        let is_cancelled = execution.spec.cancel;
        match self.entries.get_mut(uid) {
            Some(Entry { stage: Stage::Active { order, .. }, .. }) => {
                if is_cancelled {
                    order.send_replace(Order::Cancel);
                }
            }
            Some(Entry { stage: Stage::Done, .. }) => {}
            Some(entry) => {
                entry.renew(execution);
                if is_cancelled {
                    self.cancel_waiting(uid);
                }
            }
            None => self.on_new(Entry::new(reference, execution, stored::small_input(raw))),
        }
    }

    fn on_new(&mut self, mut entry: Entry) {
        let (uid, is_cancelled) = (entry.reference.uid.clone(), entry.execution.spec.cancel);
        if let Some(LeftoverRun { point, pin, size }) = self.leftovers.take(&entry.execution) {
            (entry.point, entry.pin, entry.size) = (point, pin, size);
        }
        let has_sandbox = entry.point.sandbox != SandboxState::NotCreated;
        let named = check_skill_name(&entry.execution.spec);
        let call = entry.execution.spec.mcp_call.clone();
        if entry.execution.spec.mcp_server.is_some() {
            self.ctx.mcp_sessions.open(&entry.reference, &entry.execution);
        }
        self.entries.insert(uid.clone(), entry);
        if let Err(refusal) = named {
            self.conclude(&uid, Conclusion::refused(&refusal));
        } else if has_sandbox {
            // It does not wait for a place, which it has.
            self.adopt(&uid);
        } else if is_cancelled {
            self.cancel_waiting(&uid);
        } else if let Some(call) = call {
            self.call_server(&uid, call);
        } else {
            // A client that applies a skill and runs it right away gets the applied one.
            self.refresh(&uid, false);
        }
    }

    /// Takes over the run of an earlier operator.
    fn adopt(&mut self, uid: &Uid) {
        let Some(entry) = self.entries.get(uid) else { return };
        let ordinal = entry.point.ordinal;
        entry.span.in_scope(|| debug!(ordinal, "Execution of an earlier operator is adopted"));
        match self.choose(entry) {
            Ok(chosen) => self.activate(uid, chosen),
            Err(refusal) => self.conclude(uid, Conclusion::refused_with(&refusal, uid, ordinal)),
        }
    }

    /// Decides from the catalog, with the version of a run that has one.
    fn choose(&self, entry: &Entry) -> Result<ChosenVersion, Refusal> {
        let version = entry.point.version.as_deref();
        admit::choose(&self.ctx, entry.reference.namespace(), &entry.execution, version)
    }

    fn on_message(&mut self, message: Message) {
        match message {
            Message::Refreshed(uid, refreshed) => {
                if matches!(self.entries.get(&uid), Some(Entry { stage: Stage::Refreshing { .. }, .. })) {
                    self.on_refreshed(&uid, refreshed);
                }
            }
            Message::RoomMissing(uid) => {
                self.without_room.insert(uid);
                self.shrink_window();
            }
            Message::RoomFound(uid) => {
                self.without_room.remove(&uid);
                self.window.grow();
            }
            Message::Released(uid, point) => self.on_released(&uid, point),
            Message::Ended(uid) => {
                self.free_place(&uid);
                self.on_ended(&uid);
            }
        }
    }

    /// The object is gone: a run of it is cancelled, and a waiting execution is dropped.
    fn forget(&mut self, uid: &Uid) {
        self.finish_entry(uid, Order::Cancel);
    }

    /// Forgets an execution, and the session that it was.
    fn remove_entry(&mut self, uid: &Uid) {
        if let Some(entry) = self.entries.remove(uid) {
            self.ctx.mcp_sessions.close(&entry.reference);
        }
    }

    /// The watch has shown that nothing remains to be done. A run's own task gets `last`, and reports when its place is
    /// free.
    fn finish_entry(&mut self, uid: &Uid, last: Order) {
        match self.entries.get_mut(uid) {
            Some(Entry { stage: Stage::Active { order, .. }, is_finished, .. }) => {
                order.send_replace(last);
                *is_finished = true;
            }
            Some(_) => {
                self.queue.remove(uid);
                self.remove_entry(uid);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;

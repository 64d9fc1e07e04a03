//! Places: who gets one, who gives it back, and how many there are while the cluster has no room.

use skillet_api::{Reason, mcp::McpCall};
use skillet_core::{admission::ChosenVersion, queue::ConcurrencyLimits, start_window};
use tokio::{sync::watch, time::Instant};
use tracing::Instrument as _;

use super::{
    super::{
        Assignment, RunEnd,
        admit::{self, Verdict},
        adopt::ResumePoint,
        conclude::Conclusion,
        entry::{Entry, Message, RoomReporter, Stage, Task, Uid},
        finish::finish,
        mcp_call,
        order::Order,
        run,
    },
    Engine,
};
use crate::context::Context;

impl Engine {
    /// Only the runs that have room count.
    pub(super) fn shrink_window(&mut self) {
        let without_room = u32::try_from(self.without_room.len()).unwrap_or(u32::MAX);
        self.window.shrink(self.running.total().saturating_sub(without_room), Instant::now().into_std());
    }

    /// Gives the place of a run back.
    pub(super) fn free_place(&mut self, uid: &Uid) {
        self.without_room.remove(uid);
        let Some(entry) = self.entries.get(uid) else { return };
        if let Stage::Active { skill: Some(skill), .. } = &entry.stage {
            self.running.finish(&entry.reference.lane, skill, entry.size);
        }
    }

    /// A run that found no room waits, unless it was cancelled or deleted meanwhile.
    pub(super) fn on_released(&mut self, uid: &Uid, point: ResumePoint) {
        self.free_place(uid);
        self.shrink_window();
        let Some(entry) = self.entries.get_mut(uid) else { return };
        if entry.is_finished {
            self.remove_entry(uid);
            return;
        }
        let is_cancelled = matches!(&entry.stage, Stage::Active { order, .. } if order.borrow().is_cancel());
        entry.point = point;
        entry.rejections += 1;
        entry.stage = Stage::WaitingForRoom { until: Instant::now() + start_window::pause(entry.rejections) };
        if is_cancelled {
            self.cancel_waiting(uid);
        }
    }

    /// The entry stays until the watch, too, has shown the end: an older state may still be on its way.
    pub(super) fn on_ended(&mut self, uid: &Uid) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        self.ctx.mcp_sessions.close(&entry.reference);
        entry.stage = Stage::Done;
        entry.pin = None;
        if entry.is_finished {
            self.remove_entry(uid);
        }
    }

    pub(super) fn enqueue(&mut self, uid: &Uid, verdict: Verdict) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        let (lane, skill) = (&entry.reference.lane, &entry.execution.spec.skill);
        entry.pin.replace(self.ctx.version_pins.pin(&lane.namespace, skill, &verdict.chosen().number));
        entry.size = verdict.size();
        entry.verdict = Some(verdict);
        entry.stage = Stage::Queued { since: Instant::now(), is_reported: false };
        self.queue.push(lane, skill, entry.arrival, uid.clone());
    }

    pub(super) fn start_ready(&mut self) {
        let policy = self.ctx.catalog.policy();
        let per_skill = skill_limit(&self.ctx);
        loop {
            let places = self.window.limit(policy.concurrency.total, Instant::now().into_std());
            let limits = ConcurrencyLimits::new(&policy.concurrency, places, &per_skill);
            let Some(next) = self.queue.pop(&limits, &self.running) else { break };
            let Some(entry) = self.entries.get(&next.key) else { continue };
            // Mode and switches may have changed while it waited.
            let is_checked = |chosen: &ChosenVersion| {
                entry.verdict.as_ref().is_some_and(|verdict| verdict.holds_for(chosen, &policy))
            };
            match self.choose(entry) {
                Ok(chosen) if is_checked(&chosen) => self.activate(&next.key, chosen),
                Ok(_) => self.refresh(&next.key, false),
                Err(_) => self.refresh(&next.key, true),
            }
        }
        self.ctx.metrics.queued.set(i64::try_from(self.queue.len()).unwrap_or(i64::MAX));
        self.ctx.metrics.running.set(i64::from(self.running.total()));
    }

    /// Starts the run of an execution, which takes a place.
    pub(super) fn activate(&mut self, uid: &Uid, chosen: ChosenVersion) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        let (lane, skill) = (&entry.reference.lane, &entry.execution.spec.skill);
        entry.pin.replace(self.ctx.version_pins.pin(&lane.namespace, skill, &chosen.number));
        self.running.start(lane, skill, entry.size);
        if entry.point == ResumePoint::FIRST {
            self.ctx.metrics.queue_left(entry.seen_at.elapsed());
        }
        let mut task = begin(entry, Some(entry.execution.spec.skill.clone()));
        let span = entry.span.clone();
        let (execution, point) = (entry.execution.clone(), entry.point.clone());
        let (input, has_waited) = (entry.input.clone(), entry.rejections > 0);
        let room = RoomReporter { uid: uid.clone(), outbox: self.outbox.clone() };
        let (ctx, outbox, uid) = (self.ctx.clone(), self.outbox.clone(), uid.clone());
        let work = async move {
            task.finish_earlier_status().await;
            let reference = task.reference;
            let end = match admit::admit(&ctx, &reference, &execution, &chosen, input).await {
                Ok(admitted) => {
                    let order = task.order;
                    run(&ctx, Assignment { reference, execution, admitted, point, order, room, has_waited })
                        .await
                }
                Err(refusal) => {
                    let conclusion = Conclusion::refused_at(&refusal, &reference.uid, &point);
                    finish(&ctx, &ctx.pace.refusals, &reference, execution.metadata.generation, conclusion)
                        .await;
                    RunEnd::Finished
                }
            };
            let ended = match end {
                RunEnd::Finished => Message::Ended(uid),
                RunEnd::NoRoom(point) => Message::Released(uid, point),
            };
            outbox.send(ended).ok();
        };
        tokio::spawn(work.instrument(span));
    }

    /// Passes a call to the MCP server that it names. It takes no place: the server has one.
    pub(super) fn call_server(&mut self, uid: &Uid, call: McpCall) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        let (reference, execution) = (entry.reference.clone(), entry.execution.clone());
        let allowed = admit::check_call(&self.ctx, reference.namespace(), &execution);
        let found = allowed.and_then(|()| self.ctx.mcp_sessions.find(&reference, &execution, &call));
        let calls = match found {
            Ok(calls) => calls,
            // An earlier operator may have passed it on, so nobody may make it again.
            Err(refusal) if self.is_first_list && refusal.reason == Reason::SessionEnded => {
                return self.conclude(uid, mcp_call::ended(&call.session, true));
            }
            Err(refusal) => return self.conclude(uid, Conclusion::refused(&refusal)),
        };
        let Task { reference, order, queued_status: _ } = begin(entry, None);
        let (span, input) = (entry.span.clone(), entry.input.clone());
        let (ctx, outbox, uid) = (self.ctx.clone(), self.outbox.clone(), uid.clone());
        let work = async move {
            let conclusion = mcp_call::run(&ctx, &reference, call, (&execution, input), (calls, order)).await;
            let generation = execution.metadata.generation;
            finish(&ctx, &ctx.pace.ends, &reference, generation, conclusion).await;
            outbox.send(Message::Ended(uid)).ok();
        };
        tokio::spawn(work.instrument(span));
    }

    pub(super) fn cancel_waiting(&mut self, uid: &Uid) {
        if let Some(entry) = self.entries.get(uid) {
            self.conclude(uid, entry.cancelled());
        }
    }

    /// Writes the end of an execution that does not run.
    pub(super) fn conclude(&mut self, uid: &Uid, conclusion: Conclusion) {
        self.queue.remove(uid);
        let Some(entry) = self.entries.get_mut(uid) else { return };
        let mut task = begin(entry, None);
        let span = entry.span.clone();
        // A refusal is written without the input.
        let generation = entry.execution.metadata.generation;
        let (ctx, outbox, uid) = (self.ctx.clone(), self.outbox.clone(), uid.clone());
        let work = async move {
            task.finish_earlier_status().await;
            finish(&ctx, &ctx.pace.refusals, &task.reference, generation, conclusion).await;
            outbox.send(Message::Ended(uid)).ok();
        };
        tokio::spawn(work.instrument(span));
    }
}

/// Returns a look-up of the limit that a skill sets for its own runs.
pub(super) fn skill_limit(ctx: &Context) -> impl Fn(&str, &str) -> Option<u32> + use<> {
    let catalog = ctx.catalog.clone();
    move |namespace: &str, skill: &str| catalog.concurrency(namespace, skill)
}

/// Makes an entry active, and returns the input of its task.
fn begin(entry: &mut Entry, skill: Option<String>) -> Task {
    let (sender, order) = watch::channel(Order::of(entry.execution.spec.cancel));
    entry.stage = Stage::Active { order: sender, skill };
    Task { reference: entry.reference.clone(), order, queued_status: entry.queued_status.take() }
}

//! Who may start when: takes every SkillExecution as it is seen, and runs each at most once.
//!
//! One task owns all state, so nothing is locked. It looks at objects, never at why it was told of them: seeing the
//! same execution twice is the same as seeing it once.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use kube::{ResourceExt, runtime::watcher};
use skillet_api::{Reason, SkillExecution};
use skillet_core::{
    admission::Admitted,
    cache::ContentCache,
    queue::{FairQueue, Limits, Running},
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, interval},
};
use tracing::debug;

use super::{
    Conclusion, admit,
    adopt::{LeftoverRuns, ResumePoint},
    entry::{Begun, Entry, Message, Refreshed, Stage, Uid, written},
    finish, gather, run,
};
use crate::{context::Context, retention::Finished};

/// How long an execution may wait for a Skill that was just changed to be sealed.
const SETTLING: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(500);

/// The engine's state and its ways in.
pub struct Engine {
    ctx: Arc<Context>,
    contents: Arc<ContentCache>,
    entries: HashMap<Uid, Entry>,
    queue: FairQueue<Uid>,
    running: Running,
    left: LeftoverRuns,
    finished: mpsc::UnboundedSender<Finished>,
    inbox: mpsc::UnboundedReceiver<Message>,
    outbox: mpsc::UnboundedSender<Message>,
    listed: HashSet<Uid>,
}

impl Engine {
    /// `left` is what was found at start; `finished` hears of executions that have ended.
    pub fn new(ctx: Arc<Context>, left: LeftoverRuns, finished: mpsc::UnboundedSender<Finished>) -> Self {
        let (outbox, inbox) = mpsc::unbounded_channel();
        Self {
            ctx,
            contents: Arc::new(ContentCache::new()),
            entries: HashMap::new(),
            queue: FairQueue::new(),
            running: Running::default(),
            left,
            finished,
            inbox,
            outbox,
            listed: HashSet::new(),
        }
    }

    /// Works until `events` closes, which it does only with the process.
    pub async fn work(mut self, mut events: mpsc::UnboundedReceiver<watcher::Event<SkillExecution>>) {
        let mut changes = self.ctx.catalog.changes();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.on_watch_event(event),
                    None => return,
                },
                Some(message) = self.inbox.recv() => self.on_message(message),
                Ok(()) = changes.changed() => self.recheck(),
                _ = tick.tick() => self.recheck(),
            }
            self.start_ready();
        }
    }

    fn on_watch_event(&mut self, event: watcher::Event<SkillExecution>) {
        match event {
            watcher::Event::Init => self.listed.clear(),
            watcher::Event::InitApply(execution) => {
                self.listed.insert(execution.uid().unwrap_or_default());
                self.on_execution(execution);
            }
            watcher::Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let missing: Vec<Uid> =
                    self.entries.keys().filter(|uid| !listed.contains(*uid)).cloned().collect();
                missing.iter().for_each(|uid| self.forget(uid));
                self.left.clear();
            }
            watcher::Event::Apply(execution) => self.on_execution(execution),
            watcher::Event::Delete(execution) => {
                let uid = execution.uid().unwrap_or_default();
                self.finished.send(Finished::gone(&execution)).ok();
                self.forget(&uid);
            }
        }
    }

    fn on_execution(&mut self, execution: SkillExecution) {
        let uid = execution.uid().unwrap_or_default();
        if let Some(finished) = Finished::of(&execution) {
            self.finished.send(finished).ok();
            return self.on_finished(&uid);
        }
        let is_cancelled = execution.spec.cancel;
        match self.entries.get_mut(&uid) {
            Some(Entry { stage: Stage::Active { cancel, .. }, .. }) => {
                if is_cancelled {
                    cancel.send_replace(true);
                }
            }
            Some(Entry { stage: Stage::Done, .. }) => {}
            Some(entry) => {
                entry.renew(execution);
                if is_cancelled {
                    self.conclude(&uid, Conclusion::cancelled());
                }
            }
            None => self.on_new(&uid, execution),
        }
    }

    fn on_new(&mut self, uid: &Uid, execution: SkillExecution) {
        let is_cancelled = execution.spec.cancel;
        self.entries.insert(uid.clone(), Entry::new(execution));
        // A run that was begun does not wait for a place: it has one.
        if let Some((existing, _held)) = self.left.take(&self.entries[uid].execution) {
            return self.adopt(uid, existing);
        }
        if is_cancelled {
            return self.conclude(uid, Conclusion::cancelled());
        }
        // Who applies a skill and runs it right away gets what was applied.
        self.refresh(uid, false);
    }

    fn adopt(&mut self, uid: &Uid, existing: ResumePoint) {
        let execution = self.entries[uid].with_input();
        debug!(uid, ordinal = existing.ordinal, "Execution of an earlier operator is taken over");
        // What was chosen then, not what would be chosen now.
        match admit(&self.ctx, &self.contents, &execution, existing.version.as_deref()) {
            Ok(admitted) => self.activate(uid, admitted, existing),
            Err(refusal) => self.conclude(uid, Conclusion::refused_with(&refusal, uid, existing.ordinal)),
        }
    }

    fn refresh(&mut self, uid: &Uid, with_versions: bool) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        entry.stage = Stage::Refreshing;
        let (ctx, outbox) = (self.ctx.clone(), self.outbox.clone());
        let (execution, uid) = (entry.execution.clone(), uid.clone());
        tokio::spawn(async move {
            let read = || gather::refresh(&ctx, &execution, with_versions);
            let unreadable = gather::until_read("Skill", read).await;
            outbox.send(Message::Refreshed(uid, Refreshed { unreadable, with_versions })).ok();
        });
    }

    fn on_message(&mut self, message: Message) {
        match message {
            Message::Refreshed(uid, refreshed) => {
                if matches!(self.entries.get(&uid), Some(Entry { stage: Stage::Refreshing, .. })) {
                    self.on_refreshed(&uid, refreshed);
                }
            }
            Message::Ended(uid) => self.on_ended(&uid),
        }
    }

    /// The entry stays until the watch, too, has shown the end: an older state may still be on its way.
    fn on_ended(&mut self, uid: &Uid) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        if let Stage::Active { place: Some(skill), .. } = &entry.stage {
            self.running.finish(&entry.execution.namespace().unwrap_or_default(), skill);
        }
        entry.stage = Stage::Done;
        if entry.is_finished {
            self.entries.remove(uid);
        }
    }

    fn on_refreshed(&mut self, uid: &Uid, Refreshed { unreadable, with_versions }: Refreshed) {
        match admit(&self.ctx, &self.contents, &self.entries[uid].with_input(), None) {
            // A skill that no longer parses goes on with what was read of it and sealed before.
            Ok(admitted) => self.enqueue(uid, &admitted),
            Err(_) if unreadable.is_some() => {
                let message = unreadable.map(|error| error.to_string()).unwrap_or_default();
                self.conclude(uid, Conclusion::failed(Reason::SkillNotReady, message));
            }
            // A refusal is believed only when nothing newer can be read.
            Err(refusal) if !with_versions => {
                debug!(uid, reason = %refusal.reason, "Refusal is checked against the API server");
                self.refresh(uid, true);
            }
            Err(_) => self.decide(uid, Instant::now()),
        }
    }

    /// Decides about an execution whose facts are as fresh as can be.
    fn decide(&mut self, uid: &Uid, since: Instant) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        match admit(&self.ctx, &self.contents, &entry.with_input(), None) {
            Ok(admitted) => self.enqueue(uid, &admitted),
            Err(refusal) if refusal.may_pass_soon && since.elapsed() < SETTLING => {
                entry.stage = Stage::Settling { since };
            }
            Err(refusal) => self.conclude(uid, Conclusion::refused(&refusal)),
        }
    }

    fn recheck(&mut self) {
        let settling = self.entries.iter().filter_map(|(uid, entry)| match entry.stage {
            Stage::Settling { since } => Some((uid.clone(), since)),
            Stage::Refreshing | Stage::Queued { .. } | Stage::Active { .. } | Stage::Done => None,
        });
        for (uid, since) in settling.collect::<Vec<(Uid, Instant)>>() {
            self.decide(&uid, since);
        }
        self.entries.values_mut().for_each(|entry| entry.report_queued(&self.ctx));
    }

    fn enqueue(&mut self, uid: &Uid, admitted: &Admitted) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        let execution = entry.execution.clone();
        let created = execution.creation_timestamp().map_or(0, |at| at.0.as_second());
        // Within a second the API server's own counter tells who was first.
        let sequence = execution.resource_version().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
        let namespace = execution.namespace().unwrap_or_default();
        let hold = self.ctx.in_use.hold(&namespace, &admitted.skill, &admitted.version);
        entry.stage = Stage::Queued { since: Instant::now(), is_reported: false, _hold: hold };
        self.queue.push(&namespace, &admitted.skill, (created, sequence), uid.clone());
    }

    fn start_ready(&mut self) {
        let policy = self.ctx.catalog.policy();
        let catalog = self.ctx.catalog.clone();
        let per_skill =
            |namespace: &str, skill: &str| catalog.skill(namespace, skill)?.spec.limits.as_ref()?.concurrency;
        loop {
            let limits = Limits {
                total: policy.concurrency.total,
                per_namespace: policy.concurrency.per_namespace,
                per_skill: &per_skill,
            };
            let Some(next) = self.queue.pop(&limits, &self.running) else { break };
            let Some(entry) = self.entries.get(&next.key) else { continue };
            // Mode and switches may have changed while it waited.
            match admit(&self.ctx, &self.contents, &entry.with_input(), None) {
                Ok(admitted) => self.activate(&next.key, admitted, ResumePoint::FIRST),
                Err(_) => self.refresh(&next.key, true),
            }
        }
        self.ctx.metrics.queued.set(i64::try_from(self.queue.len()).unwrap_or(i64::MAX));
        self.ctx.metrics.running.set(i64::from(self.running.total()));
    }

    fn activate(&mut self, uid: &Uid, admitted: Admitted, existing: ResumePoint) {
        let (ctx, outbox, ended) = (self.ctx.clone(), self.outbox.clone(), uid.clone());
        let Some((execution, cancelled, told)) = self.begin(uid, Some(&admitted.skill)) else { return };
        let namespace = execution.namespace().unwrap_or_default();
        let hold = self.ctx.in_use.hold(&namespace, &admitted.skill, &admitted.version);
        tokio::spawn(async move {
            let _hold = hold;
            written(told).await;
            run(ctx, execution, admitted, existing, cancelled).await;
            outbox.send(Message::Ended(ended)).ok();
        });
    }

    fn conclude(&mut self, uid: &Uid, conclusion: Conclusion) {
        self.queue.remove(uid);
        let (ctx, outbox, ended) = (self.ctx.clone(), self.outbox.clone(), uid.clone());
        let Some((execution, _, told)) = self.begin(uid, None) else { return };
        tokio::spawn(async move {
            written(told).await;
            finish(&ctx, &execution, conclusion).await;
            outbox.send(Message::Ended(ended)).ok();
        });
    }

    fn begin(&mut self, uid: &Uid, skill: Option<&str>) -> Option<Begun> {
        let entry = self.entries.get_mut(uid)?;
        let (cancel, cancelled) = watch::channel(entry.execution.spec.cancel);
        let execution = match skill {
            Some(skill) => {
                self.running.start(&entry.execution.namespace().unwrap_or_default(), skill);
                entry.with_input()
            }
            // A refusal is written without the input.
            None => entry.execution.clone(),
        };
        entry.stage = Stage::Active { cancel, place: skill.map(ToOwned::to_owned) };
        Some((execution, cancelled, entry.told.take()))
    }

    /// The object is gone: a run of it is cancelled, and what waits no longer does.
    fn forget(&mut self, uid: &Uid) {
        if let Some(Entry { stage: Stage::Active { cancel, .. }, .. }) = self.entries.get(uid) {
            cancel.send_replace(true);
        }
        self.on_finished(uid);
    }

    /// The watch has shown that nothing more is to be done. A run's own task says when its place is free.
    fn on_finished(&mut self, uid: &Uid) {
        match self.entries.get_mut(uid) {
            Some(entry) if matches!(entry.stage, Stage::Active { .. }) => entry.is_finished = true,
            Some(_) => {
                self.queue.remove(uid);
                self.entries.remove(uid);
            }
            None => {}
        }
    }
}

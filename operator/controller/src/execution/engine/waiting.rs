//! Executions that wait for something else than a place: a live read of their skill, its seal, or room in the cluster.

use std::{collections::BTreeMap, time::Duration};

use skillet_core::{
    busiest::{self, Load},
    queue::ConcurrencyLimits,
    skill::RunPart,
};
use tokio::time::Instant;
use tracing::{Instrument as _, debug};

use super::{
    super::{
        admit,
        conclude::Conclusion,
        entry::{Entry, Message, OwnedTask, Refreshed, Stage, Uid},
        gather,
    },
    Engine,
    places::skill_limit,
};

/// An execution waits at most this long until a changed Skill is sealed.
const SETTLING: Duration = Duration::from_secs(10);
/// Namespaces and skills that the metrics show.
const MOST_SHOWN: usize = 10;

impl Engine {
    /// Reads the skill, and checks content and input.
    pub(super) fn refresh(&mut self, uid: &Uid, with_versions: bool) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        let (ctx, outbox) = (self.ctx.clone(), self.outbox.clone());
        let (reference, execution) = (entry.reference.clone(), entry.execution.clone());
        let (input, version) = (entry.input.clone(), entry.point.version.clone());
        let known = entry.verdict.clone();
        let refresh = async move {
            let (namespace, skill) = (reference.namespace(), &execution.spec.skill);
            let turn = ctx.checks.turn(&reference.lane).await;
            let read = gather::refresh(&ctx, namespace, skill, with_versions).await;
            // A skill that no longer parses runs what was read of it and sealed before.
            let is_final = with_versions || read.is_err();
            let result = match admit::choose(&ctx, namespace, &execution, version.as_deref()) {
                Ok(chosen) => {
                    let part = RunPart::of(&execution.spec);
                    let given = (&part, input);
                    admit::check(&ctx, &reference, chosen, given, known.as_ref(), &turn).await
                }
                Err(refusal) => Err(refusal),
            };
            let result = result.map_err(|refusal| read.err().unwrap_or(refusal));
            let refreshed = Refreshed { result, is_final };
            outbox.send(Message::Refreshed(reference.uid.clone(), refreshed)).ok();
        };
        let task = tokio::spawn(refresh.instrument(entry.span.clone()));
        entry.stage = Stage::Refreshing { _task: OwnedTask(task) };
    }

    pub(super) fn on_refreshed(&mut self, uid: &Uid, Refreshed { result, is_final }: Refreshed) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        match result {
            Ok(verdict) => self.enqueue(uid, verdict),
            // A refusal is believed only when nothing newer can be read.
            Err(refusal) if !is_final => {
                entry.span.in_scope(|| {
                    debug!(reason = %refusal.reason, "Refusal is checked against the API server");
                });
                self.refresh(uid, true);
            }
            Err(refusal) if refusal.is_transient => entry.stage = Stage::Settling { since: Instant::now() },
            Err(refusal) => self.conclude(uid, Conclusion::refused(&refusal)),
        }
    }

    /// Looks again at an execution whose Skill is not sealed yet.
    fn recheck_settling(&mut self, uid: &Uid, since: Instant) {
        let Some(entry) = self.entries.get(uid) else { return };
        match self.choose(entry) {
            Ok(_) => self.refresh(uid, false),
            Err(refusal) if refusal.is_transient && since.elapsed() < SETTLING => {}
            Err(refusal) => self.conclude(uid, Conclusion::refused(&refusal)),
        }
    }

    /// Looks again at executions that wait for something else than a place.
    pub(super) fn recheck(&mut self) {
        let now = Instant::now();
        let (mut settling, mut waiting) = (Vec::new(), Vec::new());
        for (uid, entry) in &self.entries {
            match entry.stage {
                Stage::Settling { since } => settling.push((uid.clone(), since)),
                Stage::WaitingForRoom { until } if until <= now => waiting.push(uid.clone()),
                Stage::WaitingForRoom { .. }
                | Stage::New
                | Stage::Refreshing { .. }
                | Stage::Queued { .. }
                | Stage::Active { .. }
                | Stage::Done => {}
            }
        }
        for (uid, since) in settling {
            self.recheck_settling(&uid, since);
        }
        for uid in waiting {
            self.refresh(&uid, false);
        }
        self.report_queued();
    }

    fn report_queued(&mut self) {
        let policy = self.ctx.catalog.policy();
        let per_skill = skill_limit(&self.ctx);
        let places = self.window.limit(policy.concurrency.total, Instant::now().into_std());
        let limits = ConcurrencyLimits::new(&policy.concurrency, places, &per_skill);
        let running = &self.running;
        for entry in self.entries.values_mut() {
            entry.report_queued(&self.ctx, |lane, skill| limits.explain(lane, skill, running));
        }
    }

    /// Shows in the metrics that the engine works, and for whom.
    pub(super) fn report(&self) {
        self.ctx.health.tick();
        let mut namespaces: BTreeMap<&str, Load> = BTreeMap::new();
        let mut skills: BTreeMap<(&str, &str), Load> = BTreeMap::new();
        let mut oldest = Duration::ZERO;
        for Entry { reference, execution, stage, seen_at, .. } in self.entries.values() {
            let (waiting, running) = match stage {
                Stage::Active { skill: Some(_), .. } => (0, 1),
                Stage::Active { skill: None, .. } | Stage::Done => continue,
                Stage::New
                | Stage::Refreshing { .. }
                | Stage::Settling { .. }
                | Stage::Queued { .. }
                | Stage::WaitingForRoom { .. } => {
                    oldest = oldest.max(seen_at.elapsed());
                    (1, 0)
                }
            };
            let of_namespace = namespaces.entry(&reference.lane.caller_namespace).or_default();
            let of_skill = skills.entry((reference.namespace(), &execution.spec.skill)).or_default();
            for load in [of_namespace, of_skill] {
                (load.waiting, load.running) = (load.waiting + waiting, load.running + running);
            }
        }
        self.ctx.metrics.show_oldest_queued(oldest);
        self.ctx.metrics.show_namespaces(&busiest::busiest(&namespaces, MOST_SHOWN));
        self.ctx.metrics.show_skills(&busiest::busiest(&skills, MOST_SHOWN));
        let concurrency = &self.ctx.catalog.policy().concurrency;
        self.ctx.metrics.show_limits(concurrency.total, concurrency.per_namespace);
    }
}

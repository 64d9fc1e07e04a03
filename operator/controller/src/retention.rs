//! Deletes finished executions by age and number, and sandboxes whose execution has ended.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api, Resource, ResourceExt as _,
    api::{DeleteParams, ListParams, Preconditions},
    core::PartialObjectMeta,
};
use skillet_api::{SkillExecution, SkillPolicySpec, names};
use skillet_core::{lane::Lane, retention};
use skillet_kube::{is_gone, list_metadata_pages};
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, sleep},
};
use tracing::{info, warn};

use crate::{context::Context, execution::reference::ExecutionRef};

const PERIOD: Duration = Duration::from_secs(20);
/// The pause between two deletions, so that a clean-up never crowds out runs.
const PACE: Duration = Duration::from_millis(20);
/// Selects executions that have not ended, also those without a status.
pub(crate) const UNFINISHED: &str =
    "status.phase!=Succeeded,status.phase!=Failed,status.phase!=TimedOut,status.phase!=Cancelled";

/// An execution that has ended, or is gone altogether.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) execution: ExecutionRef,
    /// Seconds since 1970, or `None` if the object is gone.
    pub(crate) at: Option<i64>,
    /// True for a command of instructions.
    pub(crate) is_command: bool,
}

impl Finished {
    /// Returns the execution if it has ended.
    pub(crate) fn of(execution: &SkillExecution) -> Option<Self> {
        let status = execution.status.as_ref().filter(|status| status.phase.is_terminal())?;
        let at = status.finished_at.as_ref().map_or_else(Timestamp::now, |at| at.0);
        let is_command = execution.spec.command.is_some();
        Some(Self { at: Some(at.as_second()), is_command, ..Self::gone(execution)? })
    }

    /// Returns the execution as an object that no longer exists.
    pub(crate) fn gone(execution: &impl Resource) -> Option<Self> {
        Some(Self { execution: ExecutionRef::of(execution)?, at: None, is_command: false })
    }
}

/// A change of what there is to delete.
#[derive(Debug)]
pub(crate) enum RetentionEvent {
    Finished(Finished),
    /// All executions are listed again. Those that the list does not show were deleted meanwhile.
    ListStarted,
    ListFinished,
}

/// A finished execution, and whether the running list has shown it.
struct Kept {
    at: i64,
    is_listed: bool,
    is_command: bool,
}

/// Ages and number at which finished executions are deleted.
#[derive(Clone, Copy, Debug)]
struct RetentionLimits {
    ttl: Duration,
    /// The age of commands: no request asks for an output after the window in which it was made.
    command_ttl: Duration,
    /// Executions of one lane, and commands of one lane.
    per_lane: usize,
}

impl RetentionLimits {
    fn of(policy: &SkillPolicySpec) -> Self {
        let ttl = policy.retention.ttl.0;
        Self {
            ttl,
            command_ttl: policy.dynamic_content.cache_ttl.0.min(ttl),
            per_lane: usize::try_from(policy.retention.per_namespace).unwrap_or(usize::MAX),
        }
    }
}

/// Finished executions by lane, then by name and uid.
#[derive(Default)]
struct Retained(BTreeMap<Lane, HashMap<(String, String), Kept>>);

impl Retained {
    fn handle(&mut self, event: RetentionEvent) {
        match event {
            RetentionEvent::Finished(finished) => self.update(finished),
            RetentionEvent::ListStarted => {
                self.0.values_mut().flat_map(HashMap::values_mut).for_each(|kept| kept.is_listed = false);
            }
            RetentionEvent::ListFinished => {
                self.0.values_mut().for_each(|of| of.retain(|_, kept| kept.is_listed));
                self.0.retain(|_, of| !of.is_empty());
            }
        }
    }

    fn update(&mut self, finished: Finished) {
        let Finished { execution: ExecutionRef { lane, name, uid }, at, is_command } = finished;
        let of = self.0.entry(lane.clone()).or_default();
        match at {
            Some(at) => of.insert((name, uid), Kept { at, is_listed: true, is_command }),
            None => of.remove(&(name, uid)),
        };
        if of.is_empty() {
            self.0.remove(&lane);
        }
    }

    /// Returns every execution past the age or the number of its lane. Commands are counted apart, so that texts of models
    /// evict no result of a call.
    fn expired(&self, limits: RetentionLimits, now: i64) -> Vec<ExecutionRef> {
        let RetentionLimits { ttl, command_ttl, per_lane } = limits;
        let mut expired = Vec::new();
        for (lane, of) in &self.0 {
            for (is_command, ttl) in [(false, ttl), (true, command_ttl)] {
                let of_kind = of.iter().filter(|(_, kept)| kept.is_command == is_command);
                let finished: Vec<((String, String), i64)> =
                    of_kind.map(|(id, kept)| (id.clone(), kept.at)).collect();
                let gone = retention::expired_executions(&finished, ttl, per_lane, now).into_iter();
                expired.extend(gone.map(|(name, uid)| ExecutionRef { lane: lane.clone(), name, uid }));
            }
        }
        expired
    }
}

/// Receives finished executions and deletes them in time, until `events` closes.
pub(crate) async fn executions(ctx: Arc<Context>, mut events: mpsc::UnboundedReceiver<RetentionEvent>) {
    let mut kept = Retained::default();
    let mut period = interval(PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => kept.handle(event),
                None => return,
            },
            _ = period.tick() => {
                let limits = RetentionLimits::of(&ctx.catalog.policy());
                for execution in kept.expired(limits, Timestamp::now().as_second()) {
                    // What could not be deleted is due again in the next period.
                    if delete(&ctx, &execution).await {
                        kept.update(Finished { execution, at: None, is_command: false });
                    }
                    sleep(PACE).await;
                }
            }
        }
    }
}

/// Returns true if the execution is gone.
async fn delete(ctx: &Context, execution: &ExecutionRef) -> bool {
    let (namespace, ExecutionRef { name, uid, .. }) = (execution.namespace(), execution);
    let api: Api<SkillExecution> = Api::namespaced(ctx.client.clone(), namespace);
    // The uid spares an execution that was created again under the same name.
    let only_this = Preconditions { uid: Some(uid.clone()), ..Preconditions::default() };
    let params = DeleteParams::default().preconditions(only_this);
    match api.delete(name, &params).await {
        Ok(_) => {
            info!(namespace, name, "Finished execution deleted");
            true
        }
        Err(kube::Error::Api(status)) if is_gone(&status) => true,
        Err(error) => {
            warn!(namespace, name, %error, "Finished execution could not be deleted");
            false
        }
    }
}

/// Removes sandboxes whose execution has ended or is gone, left by a stopped operator or a failed removal.
pub(crate) async fn sandboxes(ctx: Arc<Context>) {
    let mut period = interval(PERIOD * 3);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        period.tick().await;
        match orphans(&ctx).await {
            Ok(orphans) => orphans.into_iter().for_each(|job| ctx.remover.later(job)),
            Err(error) => warn!(%error, "Orphaned sandboxes could not be listed"),
        }
    }
}

async fn orphans(ctx: &Context) -> Result<Vec<String>, kube::Error> {
    // Jobs first: an execution listed after its Job was made is never missed.
    let runs = ListParams::default().labels(&format!("{}={}", names::LABEL_PURPOSE, names::PURPOSE_RUN));
    let name_and_execution = |job: PartialObjectMeta<Job>| {
        Some((job.name_any(), job.labels().get(names::LABEL_EXECUTION_UID).cloned()))
    };
    let jobs = list_metadata_pages(&ctx.sandbox_jobs(), &runs, name_and_execution).await?;
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let executions: Api<SkillExecution> = Api::all(ctx.client.clone());
    // Without content: the executions of a whole cluster would not fit into memory.
    let unfinished = ListParams::default().fields(UNFINISHED);
    let live = list_metadata_pages(&executions, &unfinished, |execution| execution.metadata.uid).await?;
    let live: HashSet<String> = live.into_iter().collect();
    let is_orphan = |uid: &Option<String>| uid.as_ref().is_none_or(|uid| !live.contains(uid));
    Ok(jobs.into_iter().filter(|(_, uid)| is_orphan(uid)).map(|(name, _)| name).collect())
}

#[cfg(test)]
mod tests {
    use skillet_api::dynamic::BodyCommand;

    use super::*;

    fn finished(name: &str, at: Option<i64>) -> Finished {
        finished_for("ns", name, at)
    }

    fn finished_for(caller: &str, name: &str, at: Option<i64>) -> Finished {
        let lane = Lane::new("ns", Some(caller));
        let execution = ExecutionRef { lane, name: name.into(), uid: format!("{name}-uid") };
        Finished { execution, at, is_command: name.starts_with("command") }
    }

    fn names(kept: &Retained, ttl: u64, per_lane: usize, now: i64) -> Vec<String> {
        let ttl = Duration::from_secs(ttl);
        let expired = kept.expired(RetentionLimits { ttl, command_ttl: ttl / 2, per_lane }, now);
        expired.into_iter().map(|execution| execution.name).collect()
    }

    #[test]
    fn executions_past_their_age_or_number_expire_oldest_first() {
        let mut kept = Retained::default();
        for (name, at) in [("c", 30), ("a", 10), ("b", 20)] {
            kept.update(finished(name, Some(at)));
        }
        assert_eq!(names(&kept, 100, 10, 50), Vec::<String>::new());
        assert_eq!(names(&kept, 30, 10, 50), ["a", "b"]);
        assert_eq!(names(&kept, 100, 1, 50), ["a", "b"]);
    }

    #[test]
    fn executions_of_one_caller_evict_none_of_another() {
        let mut kept = Retained::default();
        for (caller, name, at) in [("quiet", "mine", 1), ("ns", "own", 2), ("loud", "a", 3), ("loud", "b", 4)]
        {
            kept.update(finished_for(caller, name, Some(at)));
        }
        assert_eq!(names(&kept, 100, 1, 50), ["a"]);
    }

    #[test]
    fn commands_are_kept_apart_and_for_the_time_of_their_cache() {
        let mut kept = Retained::default();
        for (name, at) in [("call", 10), ("command-a", 10), ("command-b", 30), ("command-c", 40)] {
            kept.update(finished(name, Some(at)));
        }
        assert_eq!(names(&kept, 80, 10, 49), Vec::<String>::new());
        assert_eq!(names(&kept, 80, 10, 50), ["command-a"]);
        assert_eq!(
            names(&kept, 80, 1, 49),
            ["command-a", "command-b"],
            "none of them takes the call's place"
        );
        assert_eq!(names(&kept, 80, 10, 90).len(), 4);
        let mut policy = SkillPolicySpec::default();
        let limits = RetentionLimits::of(&policy);
        assert_eq!(
            (limits.ttl.as_secs(), limits.command_ttl.as_secs(), limits.per_lane),
            (86_400, 600, 1000)
        );
        policy.retention.ttl.0 = Duration::from_secs(60);
        assert_eq!(RetentionLimits::of(&policy).command_ttl.as_secs(), 60);
    }

    #[test]
    fn a_deleted_execution_is_forgotten() {
        let mut kept = Retained::default();
        kept.update(finished("a", Some(1)));
        kept.update(finished("a", None));
        assert!(kept.0.is_empty());
    }

    #[test]
    fn an_execution_that_a_list_does_not_show_is_forgotten() {
        let mut kept = Retained::default();
        kept.update(finished("deleted", Some(1)));
        kept.update(finished("there", Some(1)));
        kept.handle(RetentionEvent::ListStarted);
        kept.handle(RetentionEvent::Finished(finished("there", Some(1))));
        assert_eq!(names(&kept, 0, 0, 9).len(), 2, "the list is not complete");
        kept.handle(RetentionEvent::ListFinished);
        assert_eq!(names(&kept, 0, 0, 9), ["there"]);
    }

    #[test]
    fn only_an_execution_that_has_ended_is_finished() {
        let parse = |phase: &str| -> SkillExecution {
            serde_saphyr::from_str(&format!(
                "apiVersion: skillet.dev/v1alpha1\nkind: SkillExecution\nmetadata: {{name: a, namespace: ns, uid: u}}\nspec: {{skill: s}}\nstatus: {{phase: {phase}, finishedAt: '1970-01-01T00:00:07.000000Z'}}"
            ))
            .unwrap()
        };
        assert_eq!(Finished::of(&parse("Running")), None);
        let failed = Finished::of(&parse("Failed")).unwrap();
        assert_eq!((failed.at, failed.is_command), (Some(7), false));
        let mut command = parse("Failed");
        command.spec.command = Some(BodyCommand::default());
        assert!(Finished::of(&command).unwrap().is_command);
    }
}

//! What an earlier operator left of each execution: its sandbox, found once at start, else what its status says.

use std::{collections::HashMap, sync::Arc};

use k8s_openapi::api::batch::v1::Job;
use kube::{Api, ResourceExt, api::ListParams};
use skillet_api::{Phase, SkillExecution, SkillExecutionStatus, names};
use skillet_core::version::SkillSemver;

use super::build::sandbox::{LABEL_ATTEMPT, LABEL_VERSION};
use crate::in_use::{Hold, InUse};

/// The newest sandbox of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumePoint {
    pub ordinal: u32,
    pub attempt: u32,
    /// The version that was chosen for it.
    pub version: Option<String>,
    pub sandbox: SandboxState,
}

/// What is known of a sandbox that an attempt is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxState {
    /// Its Job has not been asked for.
    NotMade,
    /// Its Job exists.
    There,
    /// A program was running in it, and its Job is gone.
    Gone,
}

impl ResumePoint {
    /// Where an execution starts that has no sandbox yet.
    pub const FIRST: Self = Self { ordinal: 1, attempt: 1, version: None, sandbox: SandboxState::NotMade };

    /// Where an execution goes on that has no Job: from what its status tells. None where nothing was begun.
    pub fn from_status(status: Option<&SkillExecutionStatus>) -> Option<Self> {
        let status = status.filter(|status| status.attempts > 0)?;
        let used = status.job.as_deref().and_then(|job| job.rsplit_once('-')?.1.parse().ok()).unwrap_or(0);
        let version = status.resolved_version.clone();
        match status.phase {
            // Between two attempts: the one that ended was written down before its Job was removed.
            Phase::Pending => Some(Self {
                ordinal: used + 1,
                attempt: status.attempts + 1,
                version,
                sandbox: SandboxState::NotMade,
            }),
            Phase::Running => {
                Some(Self { ordinal: used, attempt: status.attempts, version, sandbox: SandboxState::Gone })
            }
            Phase::Succeeded | Phase::Failed | Phase::TimedOut | Phase::Cancelled => None,
        }
    }
}

/// What an earlier operator left, by the uid of the execution.
#[derive(Default)]
pub struct LeftoverRuns {
    sandboxes: HashMap<String, ResumePoint>,
    /// The versions of their runs, until each run holds its own.
    holds: HashMap<String, Hold>,
}

impl LeftoverRuns {
    /// A consistent read: what was made before is in it.
    pub async fn list(jobs: &Api<Job>, in_use: &Arc<InUse>) -> Result<Self, kube::Error> {
        let runs = ListParams::default().labels(&format!("{}={}", names::LABEL_PURPOSE, names::PURPOSE_RUN));
        let jobs = jobs.list(&runs).await?.items;
        let holds = jobs.iter().filter_map(|job| hold(job, in_use)).collect();
        Ok(Self { sandboxes: newest(&jobs), holds })
    }

    /// How many sandboxes there are.
    pub fn sandboxes(&self) -> usize {
        self.sandboxes.len()
    }

    /// How far an earlier operator came with an execution: told once. Its version stays held while the second part
    /// of the answer lives.
    pub fn take(&mut self, execution: &SkillExecution) -> Option<(ResumePoint, Option<Hold>)> {
        let uid = execution.uid()?;
        let hold = self.holds.remove(&uid);
        let left = self.sandboxes.remove(&uid);
        Some((left.or_else(|| ResumePoint::from_status(execution.status.as_ref()))?, hold))
    }

    /// Every execution has been seen: what is left belongs to none.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The newest sandbox of one execution, by a consistent read.
pub async fn newest_of(jobs: &Api<Job>, execution_uid: &str) -> Result<Option<ResumePoint>, kube::Error> {
    let of_execution =
        ListParams::default().labels(&format!("{}={execution_uid}", names::LABEL_EXECUTION_UID));
    Ok(newest(&jobs.list(&of_execution).await?.items).remove(execution_uid))
}

fn hold(job: &Job, in_use: &Arc<InUse>) -> Option<(String, Hold)> {
    let label = |name: &str| job.labels().get(name);
    let version: SkillSemver = label(LABEL_VERSION)?.parse().ok()?;
    let held = in_use.hold(label(names::LABEL_EXECUTION_NAMESPACE)?, label(names::LABEL_SKILL)?, &version);
    Some((label(names::LABEL_EXECUTION_UID)?.clone(), held))
}

fn newest(jobs: &[Job]) -> HashMap<String, ResumePoint> {
    let mut found: HashMap<String, ResumePoint> = HashMap::new();
    for job in jobs {
        let labels = job.labels();
        let number = |label: &str| labels.get(label).and_then(|text| text.parse().ok());
        let (Some(uid), Some(ordinal), Some(attempt)) =
            (labels.get(names::LABEL_EXECUTION_UID), number(names::LABEL_SANDBOX), number(LABEL_ATTEMPT))
        else {
            continue;
        };
        let existing = ResumePoint {
            ordinal,
            attempt,
            version: labels.get(LABEL_VERSION).cloned(),
            sandbox: SandboxState::There,
        };
        let entry = found.entry(uid.clone()).or_insert_with(|| existing.clone());
        if entry.ordinal < ordinal {
            *entry = existing;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use skillet_api::SkillExecutionSpec;

    use super::*;

    fn job(uid: &str, ordinal: &str, attempt: &str) -> Job {
        serde_saphyr::from_str(&format!(
            "metadata: {{labels: {{skillet.dev/execution-uid: {uid}, skillet.dev/sandbox: '{ordinal}', skillet.dev/attempt: '{attempt}'}}}}"
        ))
        .unwrap()
    }

    #[test]
    fn the_newest_sandbox_of_each_execution_counts() {
        let jobs = [job("a", "1", "1"), job("a", "3", "2"), job("a", "2", "1"), job("b", "1", "1")];
        let found = newest(&jobs);
        let there =
            |ordinal, attempt| ResumePoint { ordinal, attempt, version: None, sandbox: SandboxState::There };
        assert_eq!(found["a"], there(3, 2));
        assert_eq!(found["b"], there(1, 1));
    }

    fn told(yaml: &str) -> Option<(u32, u32, SandboxState)> {
        let status: SkillExecutionStatus = serde_saphyr::from_str(yaml).unwrap();
        ResumePoint::from_status(Some(&status)).map(|found| (found.ordinal, found.attempt, found.sandbox))
    }

    #[test]
    fn a_status_tells_where_an_execution_without_a_job_goes_on() {
        assert_eq!(ResumePoint::from_status(None), None);
        assert_eq!(told("{phase: Pending, reason: Queued}"), None);
        let lost = "{phase: Running, attempts: 2, job: run-6f1c-2b-3}";
        assert_eq!(told(lost), Some((3, 2, SandboxState::Gone)));
        let between = "{phase: Pending, reason: SandboxLost, attempts: 1, job: run-6f1c-2b-1}";
        assert_eq!(told(between), Some((2, 2, SandboxState::NotMade)));
        assert_eq!(told("{phase: Failed, attempts: 1, job: run-6f1c-2b-1}"), None);
    }

    #[test]
    fn the_version_of_a_run_that_was_left_is_held_until_the_run_holds_it() {
        let in_use = Arc::new(InUse::default());
        let left: Job = serde_saphyr::from_str(
            "metadata: {labels: {skillet.dev/execution-uid: u, skillet.dev/execution-namespace: ns, skillet.dev/skill: s, skillet.dev/version: 1.0.0, skillet.dev/sandbox: '1', skillet.dev/attempt: '1'}}",
        )
        .unwrap();
        let holds = hold(&left, &in_use).into_iter().collect();
        let mut left = LeftoverRuns { sandboxes: newest(&[left]), holds };
        assert_eq!(in_use.of("ns", "s").len(), 1);
        let mut execution = SkillExecution::new("e", SkillExecutionSpec::default());
        execution.metadata.uid = Some("u".into());
        let (existing, held) = left.take(&execution).unwrap();
        assert_eq!((existing.sandbox, existing.version.as_deref()), (SandboxState::There, Some("1.0.0")));
        assert_eq!(in_use.of("ns", "s").len(), 1);
        drop(held);
        assert!(in_use.of("ns", "s").is_empty());
        assert!(left.take(&execution).is_none(), "told once");
    }

    #[test]
    fn a_job_without_numbers_is_not_ours() {
        assert!(newest(&[job("a", "x", "1"), Job::default()]).is_empty());
    }
}

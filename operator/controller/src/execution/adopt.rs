//! Runs of earlier operators: each resumes from its newest sandbox, found once at start, else from its status.
//!
//! A Job decides over a status: it is removed only after the status says how its sandbox was used.

use std::{collections::HashMap, sync::Arc, time::Duration};

use k8s_openapi::api::{batch::v1::Job, core::v1::Container};
use kube::{Api, ResourceExt, api::ListParams};
use skillet_api::{Phase, SkillExecution, SkillExecutionStatus, names};
use skillet_core::{
    quantity::{cpu_millis, memory_bytes},
    queue::SandboxSize,
    version::SkillSemver,
};

use super::gather::{ReadError, until_read};
use crate::version_pins::{Pin, VersionPins};

/// The newest sandbox of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResumePoint {
    pub(crate) ordinal: u32,
    pub(crate) attempt: u32,
    /// The version that was chosen for the run.
    pub(crate) version: Option<String>,
    pub(crate) sandbox: SandboxState,
}

/// The state of the sandbox that an attempt is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SandboxState {
    /// Its Job has not been requested.
    NotCreated,
    /// Its Job exists.
    Exists,
    /// A program was running in it, and its Job is gone.
    Gone,
}

impl ResumePoint {
    /// An execution that has no sandbox yet.
    pub(crate) const FIRST: Self =
        Self { ordinal: 1, attempt: 1, version: None, sandbox: SandboxState::NotCreated };

    /// From the status of an execution that has no Job. `None` if no sandbox was created for it.
    pub(crate) fn from_status(status: Option<&SkillExecutionStatus>) -> Option<Self> {
        let status = status?;
        let used = status.job.as_deref().and_then(|job| job.rsplit_once('-')?.1.parse::<u32>().ok());
        let version = status.resolved_version.clone();
        match status.phase {
            // The last sandbox was written down before its Job was removed: its attempt ended, or nothing ran in it.
            Phase::Pending if status.attempts > 0 || used.is_some() => Some(Self {
                ordinal: used.unwrap_or(0) + 1,
                attempt: status.attempts + 1,
                version,
                sandbox: SandboxState::NotCreated,
            }),
            Phase::Running if status.attempts > 0 => Some(Self {
                ordinal: used.unwrap_or(0),
                attempt: status.attempts,
                version,
                sandbox: SandboxState::Gone,
            }),
            Phase::Pending
            | Phase::Running
            | Phase::Succeeded
            | Phase::Failed
            | Phase::TimedOut
            | Phase::Cancelled => None,
        }
    }

    /// The start of the next sandbox, of the same attempt.
    pub(crate) fn next_sandbox(&self) -> Self {
        Self { ordinal: self.ordinal + 1, sandbox: SandboxState::NotCreated, ..self.clone() }
    }
}

/// The run of an earlier operator.
pub(crate) struct LeftoverRun {
    pub(crate) point: ResumePoint,
    /// The pin of its version, if it has a sandbox.
    pub(crate) pin: Option<Pin>,
    /// The size of its sandbox, if it has one.
    pub(crate) size: SandboxSize,
}

/// The runs of earlier operators, by the uid of the execution.
#[derive(Default)]
pub(crate) struct LeftoverRuns {
    sandboxes: HashMap<String, ResumePoint>,
    sizes: HashMap<String, SandboxSize>,
    /// Pins of their versions, until each run has its own.
    pins: HashMap<String, Pin>,
}

impl LeftoverRuns {
    /// Lists the Jobs by a consistent read: one created before is in it. Waits for an API server that does not answer.
    pub(crate) async fn list(jobs: &Api<Job>, version_pins: &Arc<VersionPins>) -> Result<Self, ReadError> {
        let runs = ListParams::default().labels(&format!("{}={}", names::LABEL_PURPOSE, names::PURPOSE_RUN));
        let jobs = until_read("Job", Duration::MAX, || jobs.list(&runs)).await?.items;
        let pins = jobs.iter().filter_map(|job| pin(job, version_pins)).collect();
        let size = |job: &Job| Some((job.labels().get(names::LABEL_EXECUTION_UID)?.clone(), size(job)));
        Ok(Self { sandboxes: newest(&jobs), sizes: jobs.iter().filter_map(size).collect(), pins })
    }

    /// The number of sandboxes.
    pub(crate) fn sandboxes(&self) -> usize {
        self.sandboxes.len()
    }

    /// Takes out the run of an execution that an earlier operator started.
    pub(crate) fn take(&mut self, execution: &SkillExecution) -> Option<LeftoverRun> {
        let uid = execution.uid()?;
        let pin = self.pins.remove(&uid);
        let size = self.sizes.remove(&uid).unwrap_or_default();
        let left = self.sandboxes.remove(&uid);
        let point = left.or_else(|| ResumePoint::from_status(execution.status.as_ref()))?;
        Some(LeftoverRun { point, pin, size })
    }

    /// Forgets the rest, which belongs to no execution: every one has been seen.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The newest sandbox of one execution, by a consistent read.
pub(crate) async fn newest_of(
    jobs: &Api<Job>,
    execution_uid: &str,
) -> Result<Option<ResumePoint>, kube::Error> {
    let of_execution =
        ListParams::default().labels(&format!("{}={execution_uid}", names::LABEL_EXECUTION_UID));
    Ok(newest(&jobs.list(&of_execution).await?.items).remove(execution_uid))
}

fn pin(job: &Job, version_pins: &Arc<VersionPins>) -> Option<(String, Pin)> {
    let label = |name: &str| job.labels().get(name);
    let version: SkillSemver = label(names::LABEL_VERSION)?.parse().ok()?;
    let pin =
        version_pins.pin(label(names::LABEL_EXECUTION_NAMESPACE)?, label(names::LABEL_SKILL)?, &version);
    Some((label(names::LABEL_EXECUTION_UID)?.clone(), pin))
}

/// The limits of a sandbox's containers. An amount that cannot be read is not counted.
fn size(job: &Job) -> SandboxSize {
    let pod = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let limits = |name: &str, read: fn(&str) -> Option<u64>| {
        let containers = pod.iter().flat_map(|pod| &pod.containers);
        let limit =
            |container: &Container| read(&container.resources.as_ref()?.limits.as_ref()?.get(name)?.0);
        containers.filter_map(limit).sum()
    };
    SandboxSize { cpu_millis: limits("cpu", cpu_millis), memory_bytes: limits("memory", memory_bytes) }
}

fn newest(jobs: &[Job]) -> HashMap<String, ResumePoint> {
    let mut found: HashMap<String, ResumePoint> = HashMap::new();
    for job in jobs {
        let labels = job.labels();
        let number = |label: &str| labels.get(label).and_then(|text| text.parse().ok());
        let (Some(uid), Some(ordinal), Some(attempt)) = (
            labels.get(names::LABEL_EXECUTION_UID),
            number(names::LABEL_SANDBOX),
            number(names::LABEL_ATTEMPT),
        ) else {
            continue;
        };
        let existing = ResumePoint {
            ordinal,
            attempt,
            version: labels.get(names::LABEL_VERSION).cloned(),
            sandbox: SandboxState::Exists,
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
            |ordinal, attempt| ResumePoint { ordinal, attempt, version: None, sandbox: SandboxState::Exists };
        assert_eq!(found["a"], there(3, 2));
        assert_eq!(found["b"], there(1, 1));
    }

    fn resumed(yaml: &str) -> Option<(u32, u32, SandboxState)> {
        let status: SkillExecutionStatus = serde_saphyr::from_str(yaml).unwrap();
        ResumePoint::from_status(Some(&status)).map(|found| (found.ordinal, found.attempt, found.sandbox))
    }

    #[test]
    fn an_execution_without_a_job_resumes_from_its_status() {
        assert_eq!(ResumePoint::from_status(None), None);
        assert_eq!(resumed("{phase: Pending, reason: Queued}"), None);
        let lost = "{phase: Running, attempts: 2, job: run-6f1c-2b-3}";
        assert_eq!(resumed(lost), Some((3, 2, SandboxState::Gone)));
        let between = "{phase: Pending, reason: SandboxLost, attempts: 1, job: run-6f1c-2b-1}";
        assert_eq!(resumed(between), Some((2, 2, SandboxState::NotCreated)));
        let released = "{phase: Pending, reason: Queued, attempts: 0, job: run-6f1c-2b-4}";
        assert_eq!(resumed(released), Some((5, 1, SandboxState::NotCreated)));
        assert_eq!(resumed("{phase: Failed, attempts: 1, job: run-6f1c-2b-1}"), None);
    }

    #[test]
    fn the_version_of_a_leftover_run_is_pinned_until_the_run_pins_it() {
        let version_pins = Arc::new(VersionPins::default());
        let left: Job = serde_saphyr::from_str(
            "metadata: {labels: {skillet.dev/execution-uid: u, skillet.dev/execution-namespace: ns, skillet.dev/skill: s, skillet.dev/version: 1.0.0, skillet.dev/sandbox: '1', skillet.dev/attempt: '1'}}",
        )
        .unwrap();
        let pins = pin(&left, &version_pins).into_iter().collect();
        let mut left = LeftoverRuns { sandboxes: newest(&[left]), pins, ..LeftoverRuns::default() };
        assert_eq!(version_pins.of("ns", "s").len(), 1);
        let mut execution = SkillExecution::new("e", SkillExecutionSpec::default());
        execution.metadata.uid = Some("u".into());
        let LeftoverRun { point: existing, pin: held, .. } = left.take(&execution).unwrap();
        assert_eq!((existing.sandbox, existing.version.as_deref()), (SandboxState::Exists, Some("1.0.0")));
        assert_eq!(version_pins.of("ns", "s").len(), 1);
        drop(held);
        assert!(version_pins.of("ns", "s").is_empty());
        assert!(left.take(&execution).is_none(), "taken once");
    }

    #[test]
    fn a_job_without_numbers_is_not_ours() {
        assert!(newest(&[job("a", "x", "1"), Job::default()]).is_empty());
    }
}

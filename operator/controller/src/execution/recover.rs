//! Sandboxes that an earlier operator left: which execution each serves, found once at start.

use std::collections::HashMap;

use k8s_openapi::api::batch::v1::Job;
use kube::{Api, ResourceExt, api::ListParams};
use skillet_api::names;

use super::build::sandbox::{LABEL_ATTEMPT, LABEL_VERSION};

/// The newest sandbox of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Existing {
    pub ordinal: u32,
    pub attempt: u32,
    /// The version that was chosen for it.
    pub version: Option<String>,
}

impl Existing {
    /// Where an execution starts that has no sandbox yet.
    pub const FIRST: Self = Self { ordinal: 1, attempt: 1, version: None };
}

/// The newest sandbox of each execution, by the execution's uid. A consistent read: what was made before is in it.
pub async fn list(jobs: &Api<Job>) -> Result<HashMap<String, Existing>, kube::Error> {
    let runs = ListParams::default().labels(&format!("{}={}", names::LABEL_PURPOSE, names::PURPOSE_RUN));
    Ok(newest(&jobs.list(&runs).await?.items))
}

fn newest(jobs: &[Job]) -> HashMap<String, Existing> {
    let mut found: HashMap<String, Existing> = HashMap::new();
    for job in jobs {
        let labels = job.labels();
        let number = |label: &str| labels.get(label).and_then(|text| text.parse().ok());
        let (Some(uid), Some(ordinal), Some(attempt)) =
            (labels.get(names::LABEL_EXECUTION_UID), number(names::LABEL_SANDBOX), number(LABEL_ATTEMPT))
        else {
            continue;
        };
        let existing = Existing { ordinal, attempt, version: labels.get(LABEL_VERSION).cloned() };
        let entry = found.entry(uid.clone()).or_insert_with(|| existing.clone());
        if entry.ordinal < ordinal {
            *entry = existing;
        }
    }
    found
}

#[cfg(test)]
mod tests {
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
        assert_eq!(found["a"], Existing { ordinal: 3, attempt: 2, version: None });
        assert_eq!(found["b"], Existing::FIRST);
    }

    #[test]
    fn a_job_without_numbers_is_not_ours() {
        assert!(newest(&[job("a", "x", "1"), Job::default()]).is_empty());
    }
}

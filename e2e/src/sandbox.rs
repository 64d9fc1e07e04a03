//! Sandboxes as the API server shows them: jobs and pods of an execution, and that nothing of them is left.

use std::{env, fs, time::Duration};

use anyhow::{Context as _, Result};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{Api, Client, ResourceExt, api::ListParams};
use skillet_api::names;

use crate::{execute::Ended, journey::Journey, wait::eventually};

/// A used sandbox is removed off the hot path, paced.
const REMOVED_WITHIN: Duration = Duration::from_secs(60);

/// Namespace of all sandboxes.
pub fn namespace() -> String {
    env::var("SKILLET_SANDBOX_NAMESPACE").unwrap_or_else(|_| "skillet-sandboxes".to_owned())
}

/// Jobs of sandboxes.
pub fn jobs(client: &Client) -> Api<Job> {
    Api::namespaced(client.clone(), &namespace())
}

/// Pods of sandboxes.
pub fn pods(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), &namespace())
}

/// The label that all sandboxes of an execution have.
pub fn of_execution(uid: &str) -> ListParams {
    ListParams::default().labels(&format!("{}={uid}", names::LABEL_EXECUTION_UID))
}

impl Journey {
    /// Names of all jobs and pods of an execution.
    pub async fn sandboxes(&self, uid: &str) -> Result<Vec<String>> {
        let of = of_execution(uid);
        let jobs = jobs(&self.client).list(&of).await.context("could not list jobs")?;
        let pods = pods(&self.client).list(&of).await.context("could not list pods")?;
        let names = jobs.items.iter().map(|job| format!("job {}", job.name_any()));
        Ok(names.chain(pods.items.iter().map(|pod| format!("pod {}", pod.name_any()))).collect())
    }

    /// Waits until nothing of an execution's sandboxes is left: a pod goes only when its containers have ended.
    pub async fn nothing_left(&self, ended: &Ended) -> Result<()> {
        let what = format!("the sandboxes of {} are gone", ended.name);
        eventually(&what, REMOVED_WITHIN, async || {
            Ok(self.sandboxes(&ended.uid).await?.is_empty().then_some(()))
        })
        .await
    }

    /// The log of a sandbox's pod: the runner's frames, which are not all text.
    pub async fn sandbox_log(&self, pod: &str) -> Result<String> {
        self.kubectl(&["logs", pod, "--namespace", &namespace()], "").await
    }
}

/// Processes of this machine with `word` in their command line: those of the node too, where it is on this machine.
pub fn processes_with(word: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let command_lines = entries.flatten().filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let texts = command_lines.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
    texts.filter(|text| text.contains(word)).collect()
}

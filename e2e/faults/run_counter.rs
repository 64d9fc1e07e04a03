//! Counts from outside how often each execution's program was run, by the receipts that runners leave in their pods,
//! and tells in which order sandboxes were made.
//!
//! Nothing of the operator's is believed. A receipt comes from the runner's own termination message, and a watch on
//! pods sees it before the pod goes.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
};

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client, ResourceExt as _,
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::Value;
use skillet_api::names::{LABEL_EXECUTION_NAMESPACE, LABEL_EXECUTION_UID};
use skillet_e2e::sandbox;
use tokio::task::JoinHandle;

/// Everything seen of all sandboxes.
#[derive(Default)]
struct Seen {
    /// Receipts by execution uid, then by pod.
    receipts: HashMap<String, BTreeMap<String, Value>>,
    /// Uids of executions in the order in which their first Jobs were made.
    order: Vec<String>,
    made: HashSet<String>,
    /// The watch was interrupted: a pod may have come and gone meanwhile.
    has_gap: bool,
}

/// A watch over the sandboxes of one namespace's executions.
pub(crate) struct RunCounter {
    seen: Arc<Mutex<Seen>>,
    watches: [JoinHandle<()>; 2],
}

impl RunCounter {
    /// Begins to count.
    pub(crate) fn open(client: &Client, namespace: &str) -> Self {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let (pods, found) = (sandbox::pods(client), seen.clone());
        let config = watcher::Config::default().labels(&format!("{LABEL_EXECUTION_NAMESPACE}={namespace}"));
        let watch = tokio::spawn(async move {
            let mut events = pin!(watcher(pods, config).default_backoff().touched_objects());
            loop {
                match events.try_next().await {
                    Ok(Some(pod)) => note(&found, &pod),
                    Ok(None) => return,
                    Err(error) => {
                        eprintln!("counter: the watch was interrupted: {error}");
                        found.lock().unwrap_or_else(PoisonError::into_inner).has_gap = true;
                    }
                }
            }
        });
        let jobs = sandbox::jobs(client);
        let ordered = seen.clone();
        let config = watcher::Config::default().labels(&format!("{LABEL_EXECUTION_NAMESPACE}={namespace}"));
        let order = tokio::spawn(async move {
            let mut events = pin!(watcher(jobs, config).default_backoff().touched_objects());
            while let Ok(Some(job)) = events.try_next().await {
                let Some(uid) = job.labels().get(LABEL_EXECUTION_UID) else { continue };
                let mut seen = ordered.lock().unwrap_or_else(PoisonError::into_inner);
                if seen.made.insert(uid.clone()) {
                    seen.order.push(uid.clone());
                }
            }
        });
        Self { seen, watches: [watch, order] }
    }

    /// The number of programs run for an execution, by the receipts seen so far.
    pub(crate) fn runs(&self, uid: &str) -> usize {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.receipts.get(uid).map_or(0, |of| of.values().filter(|receipt| is_run(receipt)).count())
    }

    /// True if every pod must have been seen.
    pub(crate) fn is_whole(&self) -> bool {
        !self.seen.lock().unwrap_or_else(PoisonError::into_inner).has_gap
    }

    /// Uids of executions in the order in which their first sandboxes were made.
    pub(crate) fn order(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).order.clone()
    }
}

impl Drop for RunCounter {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}

fn is_run(receipt: &Value) -> bool {
    receipt["outcome"]["type"] != "unused"
}

fn note(seen: &Mutex<Seen>, pod: &Pod) {
    let Some(uid) = pod.labels().get(LABEL_EXECUTION_UID) else { return };
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    for status in statuses {
        let terminated = status.state.as_ref().and_then(|state| state.terminated.as_ref());
        let Some(message) = terminated.and_then(|terminated| terminated.message.as_deref()) else { continue };
        let Ok(receipt) = serde_json::from_str::<Value>(message) else { continue };
        seen.receipts.entry(uid.clone()).or_default().insert(pod.name_any(), receipt);
    }
}

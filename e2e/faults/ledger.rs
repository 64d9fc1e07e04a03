//! Counts from outside how often each execution's program was run: by the receipts that runners leave in their pods.
//!
//! Nothing of the operator's is believed. A receipt comes from the runner's own termination message, and a watch on
//! pods is told of it before the pod goes.

use std::{
    collections::{BTreeMap, HashMap},
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

/// Receipts by execution uid, then by pod.
type Receipts = HashMap<String, BTreeMap<String, Value>>;

/// A watch over the sandboxes of one namespace's executions.
pub(crate) struct Ledger {
    receipts: Arc<Mutex<Receipts>>,
    watch: JoinHandle<()>,
}

impl Ledger {
    /// Begins to count.
    pub(crate) fn open(client: &Client, namespace: &str) -> Self {
        let receipts: Arc<Mutex<Receipts>> = Arc::default();
        let (pods, found) = (sandbox::pods(client), receipts.clone());
        let config = watcher::Config::default().labels(&format!("{LABEL_EXECUTION_NAMESPACE}={namespace}"));
        let watch = tokio::spawn(async move {
            let mut events = pin!(watcher(pods, config).default_backoff().touched_objects());
            loop {
                match events.try_next().await {
                    Ok(Some(pod)) => note(&found, &pod),
                    Ok(None) => return,
                    Err(error) => eprintln!("ledger: the watch was interrupted: {error}"),
                }
            }
        });
        Self { receipts, watch }
    }

    /// How many programs were run for an execution, by the receipts seen so far.
    pub(crate) fn runs(&self, uid: &str) -> usize {
        let receipts = self.receipts.lock().unwrap_or_else(PoisonError::into_inner);
        receipts.get(uid).map_or(0, |of| of.values().filter(|receipt| is_run(receipt)).count())
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

fn is_run(receipt: &Value) -> bool {
    receipt["outcome"]["type"] != "unused"
}

fn note(receipts: &Mutex<Receipts>, pod: &Pod) {
    let Some(uid) = pod.labels().get(LABEL_EXECUTION_UID) else { return };
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    for status in statuses {
        let terminated = status.state.as_ref().and_then(|state| state.terminated.as_ref());
        let Some(message) = terminated.and_then(|terminated| terminated.message.as_deref()) else { continue };
        let Ok(receipt) = serde_json::from_str::<Value>(message) else { continue };
        let mut receipts = receipts.lock().unwrap_or_else(PoisonError::into_inner);
        receipts.entry(uid.clone()).or_default().insert(pod.name_any(), receipt);
    }
}

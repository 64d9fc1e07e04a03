//! Runs objects of one kind, one after the other, and takes their times.

use std::time::{Duration, Instant};

use anyhow::bail;
use futures::TryStreamExt as _;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, PostParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use skillet_api::{Phase, SkillExecution};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

/// Label of all objects that are run.
pub(crate) const LABEL: &str = "skillet.dev/bench";
const LIMIT: Duration = Duration::from_secs(60);

/// Returns whether an execution that has ended succeeded.
pub(crate) fn execution_end(execution: &SkillExecution) -> Option<bool> {
    let phase = execution.status.as_ref()?.phase;
    phase.is_terminal().then_some(phase == Phase::Succeeded)
}

/// Makes objects of one kind and sees, by a watch that is open all the while, when each has ended.
pub(crate) struct Racer<K> {
    api: Api<K>,
    ends: mpsc::UnboundedReceiver<(String, bool, Instant)>,
    watch: JoinHandle<()>,
}

impl<K> Racer<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize
        + Send
        + 'static,
{
    pub(crate) fn new(client: &Client, namespace: &str, end: fn(&K) -> Option<bool>) -> Self {
        let api: Api<K> = Api::namespaced(client.clone(), namespace);
        let (seen, ends) = mpsc::unbounded_channel();
        let events = watcher(api.clone(), watcher::Config::default().labels(LABEL)).default_backoff();
        let watch = tokio::spawn(async move {
            let watched = events.applied_objects().try_for_each(|object| {
                if let Some(is_success) = end(&object) {
                    // The receiver goes with the last run.
                    seen.send((object.name_any(), is_success, Instant::now())).ok();
                }
                futures::future::ok(())
            });
            if let Err(error) = watched.await {
                println!("the watch was lost: {error}");
            }
        });
        Self { api, ends, watch }
    }

    /// Makes one object and waits for its end: the time from before the request to the moment the watch showed it.
    pub(crate) async fn run(&mut self, name: &str, spec: Value) -> anyhow::Result<Duration> {
        let object = json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": { "name": name, "labels": { LABEL: "race" } },
            "spec": spec,
        });
        let object: K = serde_json::from_value(object)?;
        let started = Instant::now();
        self.api.create(&PostParams::default(), &object).await?;
        let kind = K::kind(&());
        loop {
            match timeout(LIMIT, self.ends.recv()).await {
                Ok(Some((ended, true, at))) if ended == name => return Ok(at - started),
                Ok(Some((ended, false, _))) if ended == name => {
                    bail!("{kind} {name} failed: kubectl describes it")
                }
                Ok(Some(_)) => {}
                Ok(None) => bail!("the watch of {kind} was lost"),
                Err(_) => bail!("{kind} {name} has not ended within {LIMIT:?}"),
            }
        }
    }

    pub(crate) async fn remove(&self, name: &str) -> anyhow::Result<()> {
        self.api.delete(name, &DeleteParams::background()).await?;
        Ok(())
    }
}

impl<K> Drop for Racer<K> {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

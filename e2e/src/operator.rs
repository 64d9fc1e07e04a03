//! The pod of the operator that leads: the end of its log, stopping it and starting it again.

use std::{env, fs, time::Duration};

use anyhow::{Context as _, Result};
use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease, core::v1::Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, LogParams, Patch, PatchParams},
};
use serde_json::json;

use crate::{process, wait::eventually};

/// The Lease of the release `skillet`.
const LEASE: &str = "skillet-operator";
const LABELS: &str = "app.kubernetes.io/name=skillet,app.kubernetes.io/component=operator";

const SCALED_WITHIN: Duration = Duration::from_secs(60);

/// The pod of the operator that holds the Lease.
pub async fn pod(client: &Client) -> Result<Pod> {
    let of_operator = ListParams::default().labels(LABELS);
    let pods = Api::<Pod>::all(client.clone()).list(&of_operator).await.context("could not list pods")?;
    let named = ListParams::default().fields(&format!("metadata.name={LEASE}"));
    let leases = Api::<Lease>::all(client.clone()).list(&named).await.context("could not list leases")?;
    let holders: Vec<String> =
        leases.items.into_iter().filter_map(|lease| lease.spec?.holder_identity).collect();
    let leads = |pod: &Pod| {
        let is_running = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        is_running && holders.contains(&pod.name_any())
    };
    pods.items.into_iter().find(leads).context("no operator leads in the cluster; run `make deploy`")
}

/// Labels of the broker's pods.
pub const BROKER: &str = "app.kubernetes.io/name=skillet,app.kubernetes.io/component=broker";

/// The pod of an operator and its process on this machine.
#[derive(Debug, PartialEq)]
pub struct Leader {
    pub pod: String,
    pub pid: u32,
}

/// Finds the operator that leads, once one does.
pub async fn leader(client: &Client) -> Result<Leader> {
    let found = eventually("an operator leads", SCALED_WITHIN, async || Ok(pod(client).await.ok())).await?;
    let pod = found.name_any();
    let pid = process::of_operator(&pod)?;
    Ok(Leader { pod, pid })
}

/// Deletes the pod of the operator that leads, once one does, and waits until another leads. Returns the pod's name.
pub async fn delete(client: &Client, params: &DeleteParams) -> Result<String> {
    let found = eventually("an operator leads", SCALED_WITHIN, async || Ok(pod(client).await.ok())).await?;
    let api: Api<Pod> = Api::namespaced(client.clone(), &found.namespace().unwrap_or_default());
    let name = found.name_any();
    api.delete(&name, params).await?;
    // Its process lives on for some seconds, and may lead until then.
    eventually("another operator leads", SCALED_WITHIN, async || {
        Ok(pod(client).await.ok().filter(|pod| pod.name_any() != name).map(drop))
    })
    .await?;
    Ok(name)
}

/// Sends the operators away, does `body`, and calls as many back whatever came of it.
pub async fn away<T>(client: &Client, body: impl AsyncFnOnce() -> Result<T>) -> Result<T> {
    let replicas = scale(client, 0).await?;
    let result = body().await;
    scale(client, replicas).await?;
    result
}

/// Scales the operator, and returns how many there were.
async fn scale(client: &Client, replicas: i32) -> Result<i32> {
    let all: Api<Deployment> = Api::all(client.clone());
    let found =
        all.list(&ListParams::default().labels(LABELS)).await.context("could not list deployments")?;
    let deployment = found.items.into_iter().next().context("the operator has no deployment")?;
    let namespace = deployment.namespace().unwrap_or_default();
    let before = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let api: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let patch = json!({ "spec": { "replicas": replicas } });
    api.patch(&deployment.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await
        .context("could not scale the operator")?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    eventually(&format!("{replicas} operators are there"), SCALED_WITHIN, async || {
        let there = pods.list(&ListParams::default().labels(LABELS)).await?.items;
        let is_right = usize::try_from(replicas)? == there.len() && there.iter().all(is_ready);
        Ok(is_right.then_some(before))
    })
    .await
}

/// Returns true if there are two operators or more and all are ready.
pub async fn are_ready(client: &Client) -> Result<bool> {
    let pods = Api::<Pod>::all(client.clone()).list(&ListParams::default().labels(LABELS)).await?.items;
    Ok(pods.len() >= 2 && pods.iter().all(is_ready))
}

/// Ends all pods with these labels, without a farewell, and returns their number.
pub async fn kill_pods(client: &Client, labels: &str) -> Result<usize> {
    let pods = Api::<Pod>::all(client.clone()).list(&ListParams::default().labels(labels)).await?.items;
    for pod in &pods {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
        api.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await?;
    }
    Ok(pods.len())
}

/// Returns true if the pod's condition Ready is true.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The last lines of the operator's log.
pub async fn log_tail(client: &Client, lines: i64) -> Result<String> {
    if let Ok(path) = env::var("SKILLET_OPERATOR_LOG") {
        let text = fs::read_to_string(&path).with_context(|| format!("could not read {path}"))?;
        let all: Vec<&str> = text.lines().collect();
        let from = all.len().saturating_sub(usize::try_from(lines)?);
        return Ok(all[from..].join("\n"));
    }
    let pod = pod(client).await?;
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    // The gateway runs beside it, in a container of its own.
    let params =
        LogParams { container: Some("operator".to_owned()), tail_lines: Some(lines), ..LogParams::default() };
    api.logs(&pod.name_any(), &params).await.context("could not read the operator's log")
}

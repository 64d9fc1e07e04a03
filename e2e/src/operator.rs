//! Where the operator is: its pod, and the end of its log.

use std::{env, fs};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, LogParams},
};

const LABELS: &str = "app.kubernetes.io/name=skillet,app.kubernetes.io/component=operator";

/// The operator's pod that runs.
pub async fn pod(client: &Client) -> Result<Pod> {
    let of_operator = ListParams::default().labels(LABELS);
    let pods = Api::<Pod>::all(client.clone()).list(&of_operator).await.context("could not list pods")?;
    let is_running =
        |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    pods.items.into_iter().find(is_running).context("no operator runs in the cluster; run `make deploy`")
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
    let params = LogParams { tail_lines: Some(lines), ..LogParams::default() };
    api.logs(&pod.name_any(), &params).await.context("could not read the operator's log")
}

//! The gateway's pods.

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams},
};

use crate::agent::gateway_client::NAMESPACE;

const LABELS: &str = "app.kubernetes.io/name=skillet,app.kubernetes.io/component=gateway";

/// Names of the pods.
pub async fn pods(client: &Client) -> Result<Vec<String>> {
    let found = api(client).list(&ListParams::default().labels(LABELS)).await;
    Ok(found.context("could not list the gateway's pods")?.items.iter().map(ResourceExt::name_any).collect())
}

/// Deletes all pods at once, whichever serves a client.
pub async fn delete_all(client: &Client, params: &DeleteParams) -> Result<()> {
    let api = api(client);
    let names = pods(client).await?;
    try_join_all(names.iter().map(|name| api.delete(name, params)))
        .await
        .context("could not delete a pod")?;
    Ok(())
}

fn api(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), NAMESPACE)
}

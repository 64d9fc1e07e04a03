//! The way into the cluster, and whether the lane is wanted at all.

use std::{env, time::Duration};

use anyhow::{Context as _, Result};
use kube::{Client, Config};
use tokio::time::timeout;

const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// True if the end-to-end lane is to run.
pub fn is_wanted() -> bool {
    is_set("SKILLET_E2E")
}

/// True if an environment variable is a switch that is on.
pub fn is_set(variable: &str) -> bool {
    env::var(variable).is_ok_and(|value| !value.is_empty() && value != "0")
}

/// A client of the cluster that `KUBECONFIG` names; an error where it does not answer.
pub async fn connect() -> Result<Client> {
    let config = Config::infer().await.context("no cluster is configured; run `make cluster`")?;
    let url = config.cluster_url.to_string();
    let client = Client::try_from(config).context("the cluster's configuration cannot be used")?;
    let answer = timeout(ANSWERS_WITHIN, client.apiserver_version()).await;
    answer
        .map_err(anyhow::Error::from)
        .and_then(|version| Ok(version?))
        .with_context(|| format!("the cluster at {url} does not answer; run `make cluster`"))?;
    Ok(client)
}

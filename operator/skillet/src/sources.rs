//! `skillet sources`: starts the controller of SkillSources from its flags.

use std::sync::Arc;

use anyhow::Context as _;
use kube::Config;
use prometheus_client::registry::Registry;
use skillet_gateway::{admin, process_metrics};
use skillet_kube::ApiMetrics;
use skillet_sources::{Metrics, Settings};
use tokio::net::TcpListener;
use tracing::info;

use crate::{config::SourcesConfig, shutdown};

/// Runs until SIGTERM or SIGINT. A look that is broken off is repeated by the next process.
pub(crate) async fn run(config: SourcesConfig) -> anyhow::Result<()> {
    let SourcesConfig { work_folder, http_address } = config;
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    process_metrics::register(&mut registry, "skillet");
    let api = ApiMetrics::default();
    api.register(registry.sub_registry_with_prefix("skillet"));
    let cluster = Config::infer().await.context("could not find a cluster")?;
    let client =
        skillet_kube::connect(cluster, &api).context("the cluster's configuration cannot be used")?;
    let listener = TcpListener::bind(http_address)
        .await
        .with_context(|| format!("could not listen on {http_address}"))?;
    let admin = admin::serve(listener, admin::routes(|| Ok(()), || Ok(()), Arc::new(registry)));
    let signal = shutdown::signal()?;
    info!("Sources started");
    tokio::select! {
        () = skillet_sources::run(client, Settings { work: work_folder }, metrics) => {
            anyhow::bail!("the controller of SkillSources has ended")
        }
        () = admin => anyhow::bail!("the server of metrics has ended"),
        () = signal => Ok(()),
    }
}

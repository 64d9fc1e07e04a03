//! `skillet operator`: starts the operator from its flags.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use kube::{Client, Config};
use prometheus_client::registry::Registry;
use skillet_controller::{
    egress::Egress,
    health::Health,
    metrics::Metrics,
    run,
    settings::{RunnerDelivery, SandboxSettings},
};
use skillet_egress::{BrokerClient, BrokerSettings};
use skillet_gateway::{admin, process_metrics};
use skillet_kube::{ApiMetrics, LeaseRef};
use tokio::net::TcpListener;
use tracing::info;

use crate::{
    config::{Delivery, OperatorConfig},
    shutdown,
};

/// Image volumes are on by default from this minor version of Kubernetes 1.
const IMAGE_VOLUMES_SINCE: u32 = 35;

/// Runs until SIGTERM or SIGINT, and after that until the gateway in the same pod has ended.
pub(crate) async fn run(config: OperatorConfig) -> anyhow::Result<()> {
    let OperatorConfig {
        namespace,
        lease_name,
        pod_name,
        sandbox_namespace,
        shell_image,
        python_image,
        node_image,
        browser_image,
        runner_image,
        runner_delivery,
        image_pull_policy,
        runtime_class,
        sandbox_pod,
        policy,
        http_address,
        shutdown_after,
        broker_address,
        broker_tls_folder,
        workspaces,
    } = config;
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    process_metrics::register(&mut registry, "skillet");
    let api = ApiMetrics::default();
    api.register(registry.sub_registry_with_prefix("skillet"));
    let client = connect(&api).await?;
    let settings = SandboxSettings {
        namespace: sandbox_namespace,
        shell_image,
        python_image,
        node_image,
        browser_image,
        runner_image,
        runner_delivery: delivery(runner_delivery, &client).await?,
        image_pull_policy: image_pull_policy.filter(|policy| !policy.is_empty()),
        runtime_class: runtime_class.filter(|class| !class.is_empty()),
        pod: sandbox_pod,
    };
    let broker = broker_address.zip(broker_tls_folder);
    let broker = broker.map(|(address, tls_folder)| BrokerSettings { address, tls_folder });
    let egress = Egress::new(broker.map(BrokerClient::new));
    tokio::spawn(policy.apply(client.clone()));
    let lease = LeaseRef { namespace, name: lease_name, identity: pod_name };
    let health = Health::default();
    let admin = tokio::spawn(serve_admin(http_address, Arc::new(registry), health.clone()));
    let signal = shutdown::signal()?;
    let stop = async move {
        signal.await;
        if let Some(gateway) = shutdown_after {
            shutdown::wait_until_closed(gateway).await;
        }
    };
    tokio::select! {
        result = run::run(client, lease, (settings, egress, workspaces.client()), metrics, health, stop) => Ok(result?),
        served = admin => served?,
    }
}

/// Returns the operator's client of the cluster that it runs in.
async fn connect(api: &ApiMetrics) -> anyhow::Result<Client> {
    let mut cluster = Config::infer().await.context("could not find a cluster")?;
    // Every part of the operator repeats its own requests, and must know of an answer before it does.
    cluster.default_retry = false;
    skillet_kube::connect(cluster, api).context("the cluster's configuration cannot be used")
}

/// Serves health, readiness and metrics until the process ends.
async fn serve_admin(address: SocketAddr, registry: Arc<Registry>, health: Health) -> anyhow::Result<()> {
    let (alive, ready) = (health.clone(), health);
    let is_alive = move || if alive.is_alive() { Ok(()) } else { Err("the engine is stuck\n") };
    let is_ready = move || if ready.is_ready() { Ok(()) } else { Err("the caches are not filled yet\n") };
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("could not listen on {address}"))?;
    admin::serve(listener, admin::routes(is_alive, is_ready, registry)).await;
    Ok(())
}

async fn delivery(wanted: Delivery, client: &Client) -> anyhow::Result<RunnerDelivery> {
    let chosen = match wanted {
        Delivery::ImageVolume => RunnerDelivery::ImageVolume,
        Delivery::InitContainer => RunnerDelivery::InitContainer,
        Delivery::Auto => {
            let version =
                client.apiserver_version().await.context("could not ask the API server for its version")?;
            by_version(&version.minor)
        }
    };
    info!(delivery = ?chosen, "Runner delivery chosen");
    Ok(chosen)
}

/// Some providers write the minor version as `35+`.
fn by_version(minor: &str) -> RunnerDelivery {
    let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
    if digits.parse::<u32>().is_ok_and(|minor| minor >= IMAGE_VOLUMES_SINCE) {
        RunnerDelivery::ImageVolume
    } else {
        RunnerDelivery::InitContainer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_volumes_are_used_where_the_api_server_has_them() {
        assert_eq!(by_version("36"), RunnerDelivery::ImageVolume);
        assert_eq!(by_version("35+"), RunnerDelivery::ImageVolume);
        assert_eq!(by_version("34"), RunnerDelivery::InitContainer);
        assert_eq!(by_version(""), RunnerDelivery::InitContainer);
    }
}

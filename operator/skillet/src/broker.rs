//! `skillet broker`: starts the broker of egress from its flags. It has no client of the cluster.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use prometheus_client::registry::Registry;
use skillet_egress::{LimitSettings, Metrics, Server, ServerSettings, SystemConnect, SystemResolver};
use skillet_gateway::process_metrics;

use crate::{config::BrokerConfig, drained};

/// Runs until SIGTERM or SIGINT, and then until the linked runs have ended or the time for that is over.
pub(crate) async fn run(config: BrokerConfig) -> anyhow::Result<()> {
    let BrokerConfig {
        listen_address,
        http_address,
        tls_folder,
        ca_bundle,
        max_connections,
        tenant_connections,
        tenant_rate,
        body_memory_mib,
        idle_seconds,
        link_seconds,
        drain_seconds,
    } = config;
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    process_metrics::register(&mut registry, "skillet");
    let settings = ServerSettings {
        tls_folder,
        ca_bundle,
        limits: LimitSettings { connections: max_connections, tenant_connections, tenant_rate },
        body_memory: body_memory_mib << 20,
        idle_limit: Duration::from_secs(idle_seconds),
        link_limit: Duration::from_secs(link_seconds),
        drain: Duration::from_secs(drain_seconds),
    };
    let resolver = SystemResolver::new().context("could not read the name servers of /etc/resolv.conf")?;
    let server = Server::new(settings, Arc::new(resolver), Arc::new(SystemConnect), metrics)?;
    drained::serve((listen_address, http_address), registry, async |listener, shutdown| {
        server.serve(listener, shutdown).await;
    })
    .await
}

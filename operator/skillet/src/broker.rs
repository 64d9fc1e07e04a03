//! `skillet broker`: starts the broker of egress from its flags. It has no client of the cluster.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use prometheus_client::registry::Registry;
use skillet_egress::{LimitSettings, Metrics, Server, ServerSettings, SystemConnect, SystemResolver};
use skillet_gateway::{admin, process_metrics};
use tokio::net::TcpListener;
use tracing::info;

use crate::{config::BrokerConfig, shutdown};

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
    let listen = async |address| {
        TcpListener::bind(address).await.with_context(|| format!("could not listen on {address}"))
    };
    let (listener, probes) = (listen(listen_address).await?, listen(http_address).await?);
    let is_draining = Arc::new(AtomicBool::new(false));
    let (drains, signal) = (Arc::clone(&is_draining), shutdown::signal()?);
    let readiness = move || if drains.load(Ordering::Relaxed) { Err("draining\n") } else { Ok(()) };
    let admin = admin::serve(probes, admin::routes(|| Ok(()), readiness, Arc::new(registry)));
    info!("Broker started");
    let shutdown = async {
        signal.await;
        is_draining.store(true, Ordering::Relaxed);
    };
    tokio::select! {
        () = server.serve(listener, shutdown) => Ok(()),
        () = admin => anyhow::bail!("the server of metrics has ended"),
    }
}

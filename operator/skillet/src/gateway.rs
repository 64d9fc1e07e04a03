//! `skillet gateway`: from flags to the running gateway.

use anyhow::Context as _;
use kube::Client;
use skillet_gateway::server;
use tokio::signal::unix::{SignalKind, signal};

use crate::{config::GatewayConfig, telemetry};

/// Runs until SIGTERM or SIGINT, and then until the requests under way are answered.
pub(crate) async fn run(config: GatewayConfig) -> anyhow::Result<()> {
    let GatewayConfig { namespace, gateway_address, log } = config;
    telemetry::start(&log)?;
    let client = Client::try_default().await.context("could not find a cluster")?;
    let mut terminated = signal(SignalKind::terminate()).context("could not listen for SIGTERM")?;
    let mut interrupted = signal(SignalKind::interrupt()).context("could not listen for SIGINT")?;
    let shutdown = async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    };
    server::run(client, namespace, gateway_address, shutdown).await.context("the gateway failed")
}

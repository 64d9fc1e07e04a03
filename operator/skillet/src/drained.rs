//! A server with its probes and metrics, until a signal and then until it has drained.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;
use futures::future::BoxFuture;
use prometheus_client::registry::Registry;
use skillet_gateway::admin;
use tokio::net::TcpListener;
use tracing::info;

use crate::shutdown;

/// Serves on `listen_address`, and probes and metrics on `http_address`. The process is not ready from SIGTERM or SIGINT on,
/// with which the future of `serve` ends; then `serve` drains.
pub(crate) async fn serve(
    (listen_address, http_address): (SocketAddr, SocketAddr),
    registry: Registry,
    serve: impl AsyncFnOnce(TcpListener, BoxFuture<'static, ()>),
) -> anyhow::Result<()> {
    let listen = async |address| {
        TcpListener::bind(address).await.with_context(|| format!("could not listen on {address}"))
    };
    let (listener, probes) = (listen(listen_address).await?, listen(http_address).await?);
    let is_draining = Arc::new(AtomicBool::new(false));
    let (drains, signal) = (Arc::clone(&is_draining), shutdown::signal()?);
    let readiness = move || if drains.load(Ordering::Relaxed) { Err("draining\n") } else { Ok(()) };
    let admin = admin::serve(probes, admin::routes(|| Ok(()), readiness, Arc::new(registry)));
    info!(address = %listen_address, "Server started");
    let shutdown = Box::pin(async move {
        signal.await;
        is_draining.store(true, Ordering::Relaxed);
    });
    tokio::select! {
        () = serve(listener, shutdown) => Ok(()),
        () = admin => anyhow::bail!("the server of metrics has ended"),
    }
}

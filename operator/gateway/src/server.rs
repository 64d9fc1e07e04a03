//! The server: its routes, its watches, and how it stops.
//!
//! Probes and metrics have an address of their own, without TLS, and are answered until the process ends.

mod tasks;

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    serve::ListenerExt as _,
};
use kube::Client;
use skillet_llm::confirmation::ConfirmationKey;
use thiserror::Error;
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info};

pub use self::tasks::TaskEnded;
use self::tasks::TaskGroup;
use crate::{
    admin,
    auth::Auth,
    catalog::SkillCatalog,
    error::ApiError,
    executions::ExecutionClient,
    mcp, metrics,
    model::{inject, proxy, upstream},
    request_id, rest,
    state::GatewayState,
    tls::{self, TlsError, TlsListener},
};

/// After the order to stop, new requests are served for so long: who forwards them here learns of it a moment later.
const DRAIN_DELAY: Duration = Duration::from_secs(3);

#[derive(Debug, Error)]
pub enum Error {
    #[error("could not listen on {address}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("could not serve TLS")]
    Tls(#[from] TlsError),
    #[error("could not make the client for providers")]
    Upstream(#[from] reqwest::Error),
    #[error("the server failed")]
    Serve(#[source] std::io::Error),
    #[error(transparent)]
    Task(#[from] TaskEnded),
}

/// The settings of the gateway.
#[derive(Clone)]
pub struct Settings {
    /// Namespace of the platform's own keys for providers.
    pub namespace: String,
    /// The address for agents.
    pub address: SocketAddr,
    /// The address of `/healthz`, `/readyz` and `/metrics`.
    pub probes: SocketAddr,
    /// Agents are served under TLS, where it is set.
    pub tls: Option<tls::Files>,
    /// Of all gateways of the installation. Without it no hybrid skill is offered to models.
    pub confirmation: Option<ConfirmationKey>,
}

/// All routes for agents.
pub fn router(gateway: GatewayState) -> Router {
    Router::new()
        .merge(proxy::routes())
        .merge(inject::routes())
        .merge(rest::routes())
        .merge(mcp::routes(gateway.service(), &gateway.stop))
        // Before the watches are in, defaults would decide where a request goes.
        .route_layer(middleware::from_fn_with_state(gateway.clone(), synced))
        .merge(admin::health(readiness(&gateway)))
        .route_layer(middleware::from_fn_with_state(gateway.metrics.clone(), metrics::count))
        .layer(middleware::from_fn(request_id::trace))
        .with_state(gateway)
}

/// All routes for the cluster.
fn probes(gateway: &GatewayState) -> Router {
    admin::routes(readiness(gateway), gateway.metrics.registry())
}

/// Ready only if every watch has seen the cluster as it is, and until the shutdown begins.
fn readiness(gateway: &GatewayState) -> impl admin::Readiness + use<> {
    let gateway = gateway.clone();
    move || {
        if gateway.stop.is_cancelled() {
            return Err("the gateway stops");
        }
        if gateway.is_synced() { Ok(()) } else { Err("the watches have not seen everything yet") }
    }
}

async fn synced(State(gateway): State<GatewayState>, request: Request, next: Next) -> Response {
    if gateway.is_synced() {
        return next.run(request).await;
    }
    ApiError::unavailable("the gateway has just started; ask again in a moment").into_response()
}

/// Serves until `shutdown` fires, then until the conversations under way are at their ends.
pub async fn run(
    client: Client,
    settings: Settings,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let Settings { namespace, address, probes: probes_address, tls, confirmation } = settings;
    let gateway = GatewayState {
        auth: Arc::new(Auth::new(client.clone())),
        catalog: Arc::new(SkillCatalog::default()),
        executions: Arc::new(ExecutionClient::new(client.clone())),
        metrics: Arc::default(),
        memory: Arc::default(),
        upstream: upstream::client()?,
        provider_keys: Arc::default(),
        tool_refusals: Arc::default(),
        namespace: namespace.into(),
        stop: CancellationToken::new(),
        client: client.clone(),
        confirmation: confirmation.map(Arc::new),
    };
    let (listener, probed) = (listen(address).await?, listen(probes_address).await?);
    let mut tasks = TaskGroup::default();
    tasks.spawn("the watch of skills", gateway.catalog.clone().watch(client));
    tasks.spawn("the watch of API keys", gateway.auth.clone().watch_keys());
    tasks.spawn("the watch of executions", gateway.executions.clone().watch_all());
    let cluster = probes(&gateway);
    tasks.spawn("the server of probes", async move {
        if let Err(error) = axum::serve(probed, cluster).await {
            error!(%error, "Probes are not served any more");
        }
    });
    info!(%address, %probes_address, is_tls = tls.is_some(), "Gateway started");
    let drain = drain(shutdown, gateway.stop.clone());
    tokio::select! {
        served = serve(listener, tls, router(gateway), drain) => served?,
        ended = tasks.first_exit() => return Err(ended.into()),
    }
    info!("Gateway stops");
    tasks.stop().await;
    Ok(())
}

async fn serve(
    listener: TcpListener,
    tls: Option<tls::Files>,
    agents: Router,
    drain: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    match tls {
        None => {
            let listener = listener.tap_io(|stream| set_nodelay(stream));
            axum::serve(listener, agents).with_graceful_shutdown(drain).await
        }
        Some(files) => {
            let listener =
                TlsListener::new(listener, files)?.tap_io(|stream| set_nodelay(stream.get_ref().0));
            axum::serve(listener, agents).with_graceful_shutdown(drain).await
        }
    }
    .map_err(Error::Serve)
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })
}

/// Sets TCP_NODELAY. Otherwise the first event of a stream waits until the client has acknowledged the headers, which
/// takes 40 milliseconds.
fn set_nodelay(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        // Such a connection is slower, or already closed.
        debug!(%error, "Could not set TCP_NODELAY");
    }
}

/// Streams that only wait for news end at once, and readiness with them; requests are taken a little longer.
async fn drain(shutdown: impl Future<Output = ()>, stop: CancellationToken) {
    shutdown.await;
    stop.cancel();
    sleep(DRAIN_DELAY).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_writes_at_once() {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let connecting = TcpStream::connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(connecting, listener.accept());
        let (_client, (stream, _)) = (client.unwrap(), accepted.unwrap());
        assert!(!stream.nodelay().unwrap());
        set_nodelay(&stream);
        assert!(stream.nodelay().unwrap());
    }
}

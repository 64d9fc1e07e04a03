//! The server: its routes, its watches, and how it stops.

use std::{future::Future, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::get,
};
use http::StatusCode;
use kube::Client;
use skillet_core::dialect::confirmation::ConfirmationKey;
use thiserror::Error;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    error::ApiError, executor::Executor, identity::Identity, mcp, metrics, proxy, request_id, rest,
    skills::Skills, state::Gateway, stateless, upstream,
};

#[derive(Debug, Error)]
pub enum Error {
    #[error("could not listen on {address}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("could not make the client for providers")]
    Upstream(#[from] reqwest::Error),
    #[error("the server failed")]
    Serve(#[source] std::io::Error),
}

/// All routes.
pub fn router(gateway: Gateway, stop: &CancellationToken) -> Router {
    Router::new()
        .merge(proxy::routes())
        .merge(stateless::routes())
        .merge(rest::routes())
        .merge(mcp::routes(Arc::new(gateway.clone()), stop))
        // Before the watches are in, defaults would decide where a request goes.
        .route_layer(middleware::from_fn_with_state(gateway.clone(), synced))
        .merge(metrics::routes())
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(ready))
        .route_layer(middleware::from_fn_with_state(gateway.metrics.clone(), metrics::count))
        .layer(middleware::from_fn(request_id::name))
        .with_state(gateway)
}

async fn synced(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    if gateway.is_synced() {
        return next.run(request).await;
    }
    ApiError::unavailable("the gateway has just started; ask again in a moment").into_response()
}

/// True only when every watch has seen the cluster as it is.
async fn ready(State(gateway): State<Gateway>) -> Response {
    if gateway.is_synced() {
        return "ok".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, "the watches have not seen everything yet").into_response()
}

/// Serves until `shutdown` fires, then until the requests under way are answered.
pub async fn run(
    client: Client,
    namespace: String,
    address: SocketAddr,
    confirmation: Option<ConfirmationKey>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let gateway = Gateway {
        identity: Arc::new(Identity::new(client.clone())),
        skills: Arc::new(Skills::default()),
        executor: Arc::new(Executor::new(client.clone())),
        metrics: Arc::default(),
        room: Arc::default(),
        upstream: upstream::client()?,
        keys: Arc::default(),
        namespace: namespace.into(),
        client: client.clone(),
        confirmation: confirmation.map(Arc::new),
    };
    let mut watches = JoinSet::new();
    watches.spawn(gateway.skills.clone().watch(client));
    watches.spawn(gateway.identity.clone().watch_keys());
    watches.spawn(gateway.executor.clone().watch());
    let listener = TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })?;
    info!(%address, "Gateway started");
    // Streams that only wait for news end at once; requests under way are answered.
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let shutdown = async move {
        shutdown.await;
        stopping.cancel();
    };
    axum::serve(listener, router(gateway, &stop))
        .with_graceful_shutdown(shutdown)
        .await
        .map_err(Error::Serve)?;
    info!("Gateway stops");
    watches.shutdown().await;
    Ok(())
}

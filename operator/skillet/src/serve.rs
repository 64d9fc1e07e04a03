//! Health, readiness and metrics over HTTP.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use prometheus_client::{encoding::text::encode, registry::Registry};
use skillet_controller::run::Readiness;
use tokio::net::TcpListener;

#[derive(Clone)]
struct Shared {
    registry: Arc<Registry>,
    readiness: Readiness,
}

/// Serves until the process ends.
pub(crate) async fn serve(
    address: SocketAddr,
    registry: Arc<Registry>,
    readiness: Readiness,
) -> anyhow::Result<()> {
    let routes = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(Shared { registry, readiness });
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("could not listen on {address}"))?;
    axum::serve(listener, routes).await.context("could not serve HTTP")
}

async fn ready(State(shared): State<Shared>) -> (StatusCode, &'static str) {
    if shared.readiness.is_ready() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the caches are not filled yet\n")
    }
}

async fn metrics(State(shared): State<Shared>) -> impl IntoResponse {
    let mut text = String::new();
    match encode(&mut text, &shared.registry) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            Ok(([(header::CONTENT_TYPE, kind)], text))
        }
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

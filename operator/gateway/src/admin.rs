//! Health, readiness and metrics over HTTP, for the gateway and, through the `skillet` binary, for the operator.

use std::sync::Arc;

use axum::{
    Router,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::net::TcpListener;

use crate::server::connections;

/// Most connections at once. A kubelet and a few scrapers have one each.
const MAX_CONNECTIONS: usize = 64;

/// Answers a probe: whether a process works, or can take work. The error is the response.
pub trait Probe: Fn() -> Result<(), &'static str> + Clone + Send + Sync + 'static {}

impl<F: Fn() -> Result<(), &'static str> + Clone + Send + Sync + 'static> Probe for F {}

/// `/healthz` and `/readyz`.
pub fn health<S: Clone + Send + Sync + 'static>(liveness: impl Probe, readiness: impl Probe) -> Router<S> {
    let respond = |answer| match answer {
        Ok(()) => (StatusCode::OK, "ok\n"),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, reason),
    };
    Router::new()
        .route("/healthz", get(async move || respond(liveness())))
        .route("/readyz", get(async move || respond(readiness())))
}

/// `/healthz`, `/readyz` and `/metrics`.
pub fn routes(liveness: impl Probe, readiness: impl Probe, registry: Arc<Registry>) -> Router {
    health(liveness, readiness).route("/metrics", get(async move || encode_metrics(&registry)))
}

/// Serves probes and metrics until the future is dropped. Above the limit, the address with the most connections loses one.
pub async fn serve(listener: TcpListener, routes: Router) {
    connections::serve(listener, None, routes, MAX_CONNECTIONS, std::future::pending()).await;
}

fn encode_metrics(registry: &Registry) -> impl IntoResponse + use<> {
    let mut text = String::new();
    match encode(&mut text, registry) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            Ok(([(header::CONTENT_TYPE, kind)], text))
        }
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use http::Request;
    use std::time::Duration;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
        time::timeout,
    };
    use tower::ServiceExt as _;

    use super::*;

    async fn get_text(routes: Router, path: &str) -> (StatusCode, String) {
        let response = routes.oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn readyz_answers_503_with_the_reason_while_healthz_is_ok() {
        let starting = || routes(|| Ok(()), || Err("starting"), Arc::default());
        assert_eq!(get_text(starting(), "/healthz").await, (StatusCode::OK, "ok\n".to_owned()));
        let unavailable = (StatusCode::SERVICE_UNAVAILABLE, "starting".to_owned());
        assert_eq!(get_text(starting(), "/readyz").await, unavailable);
        let ready = routes(|| Ok(()), || Ok(()), Arc::default());
        assert_eq!(get_text(ready, "/readyz").await, (StatusCode::OK, "ok\n".to_owned()));
        let stuck = routes(|| Err("stuck"), || Ok(()), Arc::default());
        let unavailable = (StatusCode::SERVICE_UNAVAILABLE, "stuck".to_owned());
        assert_eq!(get_text(stuck, "/healthz").await, unavailable);
    }

    #[tokio::test]
    async fn a_probe_is_answered_beside_many_idle_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, routes(|| Ok(()), || Ok(()), Arc::default())));
        let mut idle = Vec::new();
        for _ in 0..2 * MAX_CONNECTIONS {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let mut probe = TcpStream::connect(address).await.unwrap();
        probe.write_all(b"GET /healthz HTTP/1.1\r\nhost: pod\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        probe.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("ok\n"), "{answer}");
        let mut closed = 0;
        for mut connection in idle {
            let ended = timeout(Duration::from_millis(10), connection.read(&mut [0])).await;
            closed += usize::from(matches!(ended, Ok(Ok(0) | Err(_))));
        }
        assert!(closed >= MAX_CONNECTIONS, "{closed}");
    }

    #[tokio::test]
    async fn metrics_are_served_in_the_openmetrics_format() {
        let served = get_text(routes(|| Ok(()), || Ok(()), Arc::default()), "/metrics").await;
        assert_eq!(served, (StatusCode::OK, "# EOF\n".to_owned()));
    }
}

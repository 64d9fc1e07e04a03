//! Health, readiness and metrics over HTTP, for the gateway and, through the `skillet` binary, for the operator.

use std::sync::Arc;

use axum::{
    Router,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use prometheus_client::{encoding::text::encode, registry::Registry};

/// Tells whether a process can take work; the error is the response of `/readyz`.
pub trait Readiness: Fn() -> Result<(), &'static str> + Clone + Send + Sync + 'static {}

impl<F: Fn() -> Result<(), &'static str> + Clone + Send + Sync + 'static> Readiness for F {}

/// `/healthz` and `/readyz`.
pub fn health<S: Clone + Send + Sync + 'static>(readiness: impl Readiness) -> Router<S> {
    let ready = async move || match readiness() {
        Ok(()) => (StatusCode::OK, "ok\n"),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, reason),
    };
    Router::new().route("/healthz", get(async || "ok\n")).route("/readyz", get(ready))
}

/// `/healthz`, `/readyz` and `/metrics`.
pub fn routes(readiness: impl Readiness, registry: Arc<Registry>) -> Router {
    health(readiness).route("/metrics", get(async move || encode_metrics(&registry)))
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
        let starting = || routes(|| Err("starting"), Arc::default());
        assert_eq!(get_text(starting(), "/healthz").await, (StatusCode::OK, "ok\n".to_owned()));
        let unavailable = (StatusCode::SERVICE_UNAVAILABLE, "starting".to_owned());
        assert_eq!(get_text(starting(), "/readyz").await, unavailable);
        let ready = routes(|| Ok(()), Arc::default());
        assert_eq!(get_text(ready, "/readyz").await, (StatusCode::OK, "ok\n".to_owned()));
    }

    #[tokio::test]
    async fn metrics_are_served_in_the_openmetrics_format() {
        let served = get_text(routes(|| Ok(()), Arc::default()), "/metrics").await;
        assert_eq!(served, (StatusCode::OK, "# EOF\n".to_owned()));
    }
}

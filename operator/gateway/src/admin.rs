//! Health, readiness and metrics over HTTP, for the gateway and, through the `skillet` binary, for the operator.

use std::sync::Arc;

use axum::{
    Router,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use prometheus_client::{encoding::text::encode, registry::Registry};

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
    async fn metrics_are_served_in_the_openmetrics_format() {
        let served = get_text(routes(|| Ok(()), || Ok(()), Arc::default()), "/metrics").await;
        assert_eq!(served, (StatusCode::OK, "# EOF\n".to_owned()));
    }
}

//! Metrics of the gateway. Labels come from closed sets; no name of an object or a caller is a label.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{MatchedPath, Request, State},
    http::StatusCode,
    middleware::Next,
    response::Response,
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use tokio::time::Instant;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    /// The route as it is written in the code, not the path that was asked for.
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    outcome: &'static str,
}

/// Handles to every metric.
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<RequestLabels, Counter>,
    time: Histogram,
    refusals: Family<RefusalLabels, Counter>,
    calls: Family<CallLabels, Counter>,
    call_time: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.001, 2.0, 18));
        let (requests, refusals, calls) = (Family::default(), Family::default(), Family::default());
        let (time, call_time) = (seconds(), seconds());
        let mut registry = Registry::with_prefix("skillet_gateway");
        registry.register("requests", "Requests answered, by route and status", requests.clone());
        registry.register_with_unit("request", "Time until an answer begins", Unit::Seconds, time.clone());
        registry.register("model_refusals", "Model requests that the gateway refused", refusals.clone());
        registry.register("skill_calls", "Skill calls of models, by how they ended", calls.clone());
        registry.register_with_unit("skill_call", "Time of a skill call", Unit::Seconds, call_time.clone());
        Self { registry: Arc::new(registry), requests, time, refusals, calls, call_time }
    }
}

impl Metrics {
    /// All metrics, for `/metrics`.
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.clone()
    }

    /// A model's call of a skill has ended.
    pub fn called(&self, is_error: bool, took: Duration) {
        let outcome = if is_error { "error" } else { "success" };
        self.calls.get_or_create(&CallLabels { outcome }).inc();
        self.call_time.observe(took.as_secs_f64());
    }

    /// The gateway refused a request for a model.
    pub fn refused(&self, reason: &'static str) {
        self.refusals.get_or_create(&RefusalLabels { reason }).inc();
    }

    fn answered(&self, route: &str, status: StatusCode, took: Duration) {
        let labels = RequestLabels { route: route.to_owned(), status: status.as_u16() };
        self.requests.get_or_create(&labels).inc();
        self.time.observe(took.as_secs_f64());
    }
}

/// Counts every request.
pub async fn count(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let response = next.run(request).await;
    // What has no route is one series, whatever was asked for.
    metrics.answered(route.as_deref().unwrap_or("none"), response.status(), started.elapsed());
    response
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn requests_and_calls_are_counted_under_closed_sets() {
        let metrics = Metrics::default();
        metrics.answered("/v1/messages", StatusCode::OK, Duration::from_millis(3));
        metrics.answered("/v1/messages", StatusCode::OK, Duration::from_millis(3));
        metrics.answered("none", StatusCode::NOT_FOUND, Duration::ZERO);
        metrics.refused("ProviderForbidden");
        metrics.called(true, Duration::from_secs(1));
        let mut text = String::new();
        encode(&mut text, &metrics.registry).unwrap();
        for line in [
            "skillet_gateway_requests_total{route=\"/v1/messages\",status=\"200\"} 2",
            "skillet_gateway_requests_total{route=\"none\",status=\"404\"} 1",
            "skillet_gateway_model_refusals_total{reason=\"ProviderForbidden\"} 1",
            "skillet_gateway_skill_calls_total{outcome=\"error\"} 1",
            "skillet_gateway_request_seconds_count 3",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}

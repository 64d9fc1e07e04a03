//! Metrics of the requests to the API server. Labels come from closed sets.

use http::StatusCode;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    error: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    /// The plural of the watched kind: the code names each.
    resource: String,
}

/// Handles to the metrics of one client; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ApiMetrics {
    pub(super) in_flight: Gauge,
    pub(super) waiting: Gauge,
    errors: Family<ErrorLabels, Counter>,
    watches: Family<WatchLabels, Counter>,
}

/// An error of a request, by what it says of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApiError {
    /// No response in time.
    Timeout,
    Connection,
    /// 429: the API server limits this client.
    Throttled,
    /// 401 or 403: a right is missing.
    Denied,
    /// 5xx.
    Server,
}

impl ApiError {
    /// Returns the error that a status tells of. 404, 409 and 422 are answers that callers expect.
    pub(super) fn of(status: StatusCode) -> Option<Self> {
        match status {
            StatusCode::TOO_MANY_REQUESTS => Some(Self::Throttled),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Some(Self::Denied),
            status if status.is_server_error() => Some(Self::Server),
            _ => None,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::Throttled => "throttled",
            Self::Denied => "denied",
            Self::Server => "server",
        }
    }
}

impl ApiMetrics {
    /// Registers every metric under the prefix `api_`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("api");
        registry.register(
            "requests_in_flight",
            "Requests to the API server that have a place",
            self.in_flight.clone(),
        );
        registry.register("requests_waiting", "Requests that wait for a place", self.waiting.clone());
        registry.register("errors", "Requests to the API server that failed, by error", self.errors.clone());
        registry.register("watches", "Watches that were opened, by resource", self.watches.clone());
    }

    pub(super) fn count_error(&self, error: ApiError) {
        self.errors.get_or_create(&ErrorLabels { error: error.label() }).inc();
    }

    /// Counts the start of a watch on the collection with this path.
    pub(super) fn count_watch(&self, path: &str) {
        let resource = path.rsplit('/').next().unwrap_or_default().to_owned();
        self.watches.get_or_create(&WatchLabels { resource }).inc();
    }
}

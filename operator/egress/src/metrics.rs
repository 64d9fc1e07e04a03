//! Metrics of the broker. Labels come from closed sets.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use skillet_protocol::Verdict;

use crate::limits::Flow;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabels {
    verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FlowLabels {
    direction: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug)]
pub struct Metrics {
    connections: Family<VerdictLabels, Counter>,
    refused_by_runners: Family<VerdictLabels, Counter>,
    bytes: Family<FlowLabels, Counter>,
    open_channels: Gauge,
    run_links: Gauge,
    operator_connections: Counter,
    requests: Family<OutcomeLabels, Counter>,
    dial_seconds: Histogram,
}

/// One more of a gauge, for as long as the value lives.
#[derive(Debug)]
pub(crate) struct Held(Gauge);

impl Held {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Registers every metric of the broker.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            connections: Family::default(),
            refused_by_runners: Family::default(),
            bytes: Family::default(),
            open_channels: Gauge::default(),
            run_links: Gauge::default(),
            operator_connections: Counter::default(),
            requests: Family::default(),
            dial_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 14)),
        };
        let registry = registry.sub_registry_with_prefix("skillet_broker");
        registry.register("connections", "Connections by verdict", metrics.connections.clone());
        registry.register(
            "refused_by_runners",
            "Connections and lookups that runners refused themselves",
            metrics.refused_by_runners.clone(),
        );
        registry.register_with_unit(
            "transferred",
            "Bytes between programs and hosts",
            Unit::Bytes,
            metrics.bytes.clone(),
        );
        registry.register(
            "open_channels",
            "Connections of programs that are open",
            metrics.open_channels.clone(),
        );
        registry.register("run_links", "Runs that are linked to the broker", metrics.run_links.clone());
        registry.register(
            "operator_connections",
            "Connections of operators that were accepted",
            metrics.operator_connections.clone(),
        );
        registry.register("requests", "HTTP requests of skills by their outcome", metrics.requests.clone());
        registry.register_with_unit(
            "dial_duration",
            "Time from the check of a host to its connection or refusal",
            Unit::Seconds,
            metrics.dial_seconds.clone(),
        );
        metrics
    }

    pub(crate) fn dialed(&self, verdict: Verdict) {
        self.connections.get_or_create(&VerdictLabels { verdict: verdict.as_str() }).inc();
    }

    pub(crate) fn dial_seconds(&self, took: Duration) {
        self.dial_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn refused_by_runner(&self, verdict: Verdict) {
        self.refused_by_runners.get_or_create(&VerdictLabels { verdict: verdict.as_str() }).inc();
    }

    pub(crate) fn transferred(&self, flow: Flow, bytes: usize) {
        let direction = match flow {
            Flow::Sent => "sent",
            Flow::Received => "received",
        };
        self.bytes.get_or_create(&FlowLabels { direction }).inc_by(bytes as u64);
    }

    pub(crate) fn request(&self, outcome: &'static str) {
        self.requests.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    pub(crate) fn operator_connected(&self) {
        self.operator_connections.inc();
    }

    pub(crate) fn open_channel(&self) -> Held {
        Held::new(&self.open_channels)
    }

    pub(crate) fn run_link(&self) -> Held {
        Held::new(&self.run_links)
    }
}

//! Metrics of connections, as the operator sees them.

use std::collections::HashMap;

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{counter::Counter, family::Family},
    registry::{Registry, Unit},
};
use skillet_api::{Verdict, network::Connections};

/// Handles; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct EgressMetrics {
    connections: Family<VerdictLabels, Counter>,
    bytes: Family<DirectionLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabels {
    verdict: VerdictLabel,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct VerdictLabel(Verdict);

impl EncodeLabelValue for VerdictLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&self.0.as_str(), encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabels {
    direction: &'static str,
}

impl EgressMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "egress_connections",
            "Connections that runs asked for, by verdict",
            self.connections.clone(),
        );
        registry.register_with_unit(
            "egress_transfer",
            "Bytes of the connections of runs, by direction",
            Unit::Bytes,
            self.bytes.clone(),
        );
    }

    /// Counts the connections of a run that has ended.
    pub(crate) fn count(&self, connections: &Connections, verdicts: &HashMap<Verdict, u64>) {
        for (verdict, count) in verdicts {
            self.connections.get_or_create(&VerdictLabels { verdict: VerdictLabel(*verdict) }).inc_by(*count);
        }
        for (direction, bytes) in [("sent", connections.sent_bytes), ("received", connections.received_bytes)]
        {
            self.bytes.get_or_create(&DirectionLabels { direction }).inc_by(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_by_verdict_and_bytes_by_direction() {
        let mut registry = Registry::default();
        let metrics = EgressMetrics::default();
        metrics.register(&mut registry);
        let connections = Connections { sent_bytes: 3, received_bytes: 5, ..Connections::default() };
        let verdicts = HashMap::from([(Verdict::Allowed, 2), (Verdict::HostNotAllowed, 1)]);
        metrics.count(&connections, &verdicts);
        metrics.count(&connections, &verdicts);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "egress_connections_total{verdict=\"Allowed\"} 4",
            "egress_connections_total{verdict=\"HostNotAllowed\"} 2",
            "egress_transfer_bytes_total{direction=\"sent\"} 6",
            "egress_transfer_bytes_total{direction=\"received\"} 10",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}

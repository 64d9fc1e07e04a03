//! The operator's side of egress: its client of the broker, the cluster's ranges, and the frames and record of each run.
//!
//! The operator itself never dials a host. What a run may reach is decided before (`core::skill`, `execution::build::egress`)
//! and held by the broker, which has no right in the cluster.

mod access;
mod metrics;
mod ranges;
mod record;
mod relay;

use skillet_egress::BrokerClient;

use self::ranges::ClusterRanges;
pub(crate) use self::{access::RunAccess, metrics::EgressMetrics, record::add, relay::Relay};

/// The way to the broker; cheap to clone.
#[derive(Clone, Default)]
pub struct Egress {
    broker: Option<BrokerClient>,
    ranges: ClusterRanges,
}

impl Egress {
    /// Without a broker no run reaches a host.
    pub fn new(broker: Option<BrokerClient>) -> Self {
        Self { broker, ranges: ClusterRanges::default() }
    }

    /// Learns the cluster's ranges, as long as the process works. Without a broker nobody asks for them.
    pub(crate) async fn learn_ranges(self, client: kube::Client) {
        match self.broker {
            Some(_) => self.ranges.learn(client).await,
            None => std::future::pending().await,
        }
    }
}

//! The operator's side of egress: its client of the broker, the cluster's ranges, and the frames and record of each run.
//!
//! The operator itself never dials a host. What a run may reach is decided before (`core::skill`, `execution::build::egress`)
//! and held by the broker, which has no right in the cluster.

mod metrics;
mod ranges;
mod record;
mod relay;

use skillet_api::{SkillPolicySpec, network::Host};
use skillet_egress::{BrokerClient, RunPolicy};

use self::ranges::ClusterRanges;
pub(crate) use self::{metrics::EgressMetrics, record::add, relay::Relay};
use crate::execution::build::egress;

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

    /// Learns the cluster's ranges, as long as the process works.
    pub(crate) async fn learn_ranges(self, client: kube::Client) {
        self.ranges.learn(client).await;
    }

    /// Returns the broker and what a run may reach through it. `None`: there is no broker, or it is not known yet which
    /// addresses are the cluster's own.
    pub(crate) fn open(
        &self,
        (execution_uid, tenant): (&str, &str),
        hosts: &[Host],
        policy: &SkillPolicySpec,
    ) -> Option<(BrokerClient, RunPolicy)> {
        let ranges = self.ranges.get()?;
        Some((self.broker.clone()?, egress::policy((execution_uid, tenant), hosts, policy, &ranges)))
    }
}

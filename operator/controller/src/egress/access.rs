//! The access of one run to the broker, by the policy of the moment at which it asks.

use std::sync::Arc;

use skillet_api::Verdict;
use skillet_core::skill::{ValidNetwork, check_hosts};
use skillet_egress::{BrokerClient, RunLink, RunPolicy};
use tracing::warn;

use super::Egress;
use crate::{catalog::Catalog, execution::build::egress};

/// The run of a skill that names hosts.
pub(crate) struct RunAccess {
    pub(crate) egress: Egress,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) execution_uid: String,
    /// Namespace of the skill.
    pub(crate) namespace: String,
    /// Namespace of the caller, whose runs share limits.
    pub(crate) tenant: String,
    pub(crate) network: ValidNetwork,
}

impl RunAccess {
    /// Returns the broker and what the run may reach now, or the verdict about all of its connections. Just after the
    /// start of the operator it waits for the cluster's own addresses.
    pub(crate) async fn way(&self) -> Result<(BrokerClient, RunPolicy), Verdict> {
        let policy = self.catalog.policy();
        if let Err(problem) = check_hosts(&self.network, &self.namespace, &policy) {
            warn!(%problem, "SkillPolicy does not allow the hosts of a run any more");
            return Err(Verdict::HostNotAllowed);
        }
        let broker = self.egress.broker.clone().ok_or(Verdict::BrokerUnavailable)?;
        let ranges = self.egress.ranges.wait().await.ok_or(Verdict::BrokerUnavailable)?;
        let run = (self.execution_uid.as_str(), self.tenant.as_str());
        Ok((broker, egress::policy(run, &self.network.hosts, &policy, &ranges)))
    }

    /// Opens a link for the connections of the run's program, which has sent and received so many bytes on earlier ones.
    pub(super) async fn open(&self, (sent_bytes, received_bytes): (u64, u64)) -> Result<RunLink, Verdict> {
        let (broker, policy) = self.way().await?;
        let policy = RunPolicy { sent_bytes, received_bytes, ..policy };
        broker.open_run(&policy).await.map_err(|error| {
            warn!(%error, "The broker of egress cannot be reached");
            Verdict::BrokerUnavailable
        })
    }
}

//! The decisions about a connection: hosts, ports and addresses. Pure.

use serde::{Deserialize, Serialize};
use skillet_protocol::HostRule;

/// What one run may reach. The operator makes it of the skill and the SkillPolicy, and the broker holds every connection to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunPolicy {
    /// Uid of the SkillExecution, for logs.
    pub run: String,
    /// Namespace whose skills share the limits of a tenant.
    pub tenant: String,
    /// Hosts that skill and SkillPolicy both allow.
    pub hosts: Vec<HostRule>,
    /// Hosts that may have addresses which are not public.
    #[serde(default)]
    pub internal_hosts: Vec<InternalHostRule>,
    /// Ranges that nobody may reach, beside those that are not public: the cluster's and the SkillPolicy's.
    #[serde(default)]
    pub denied_ranges: Vec<String>,
    /// Most connections at one time.
    pub connections: u32,
    /// Most bytes in each direction.
    pub transfer_bytes: u64,
}

/// A host whose addresses may be in these ranges although they are not public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InternalHostRule {
    #[serde(flatten)]
    pub host: HostRule,
    pub ranges: Vec<String>,
}

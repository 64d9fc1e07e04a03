//! The decisions about a connection: hosts, ports and addresses. Pure: nothing is looked up or dialed here.

mod address;
mod host;

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use skillet_protocol::{HostRule, Verdict};
use thiserror::Error;

pub use host::HostName;
pub(crate) use host::HostPattern;

/// The reach of one run. The operator makes it of the skill and the SkillPolicy, and the broker holds every connection to it.
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
    /// Bytes of it that the run has sent on earlier links, or by earlier requests.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Bytes of it that the run has received there.
    #[serde(default)]
    pub received_bytes: u64,
}

/// A host whose addresses may be in these ranges although they are not public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InternalHostRule {
    #[serde(flatten)]
    pub host: HostRule,
    pub ranges: Vec<String>,
}

/// A [`RunPolicy`] that cannot be held to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidPolicy {
    #[error("the host pattern {0:?} is neither a name nor a name after *.")]
    Pattern(String),
    #[error("the range {0:?} is neither an address nor a network such as 10.0.0.0/8")]
    Range(String),
}

/// The rules of one run, checked and ready for decisions.
#[derive(Clone, Debug)]
pub struct Policy {
    hosts: HostRules,
    internal: Vec<InternalRule>,
    denied: Vec<IpNet>,
}

/// Host patterns with their ports.
#[derive(Clone, Debug)]
pub(crate) struct HostRules(Vec<(HostPattern, Vec<u16>)>);

#[derive(Clone, Debug)]
struct InternalRule {
    host: HostRules,
    ranges: Vec<IpNet>,
}

impl HostRules {
    pub(crate) fn new(rules: &[HostRule]) -> Result<Self, InvalidPolicy> {
        let parse = |HostRule { name, ports }: &HostRule| {
            let pattern = HostPattern::parse(name).ok_or_else(|| InvalidPolicy::Pattern(name.clone()))?;
            Ok((pattern, ports.clone()))
        };
        rules.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Decides about a host by its name and port.
    pub(crate) fn check(&self, host: &HostName, port: u16) -> Result<(), Verdict> {
        let mut named = self.0.iter().filter(|(pattern, _)| pattern.matches(host)).peekable();
        if named.peek().is_none() {
            return Err(Verdict::HostNotAllowed);
        }
        if named.any(|(_, ports)| ports.contains(&port)) { Ok(()) } else { Err(Verdict::PortNotAllowed) }
    }
}

impl Policy {
    /// Reads the patterns and ranges of a policy.
    pub fn new(policy: &RunPolicy) -> Result<Self, InvalidPolicy> {
        let internal = |rule: &InternalHostRule| {
            let host = HostRules::new(std::slice::from_ref(&rule.host))?;
            Ok(InternalRule { host, ranges: ranges(&rule.ranges)? })
        };
        Ok(Self {
            hosts: HostRules::new(&policy.hosts)?,
            internal: policy.internal_hosts.iter().map(internal).collect::<Result<_, _>>()?,
            denied: ranges(&policy.denied_ranges)?,
        })
    }

    /// Decides about a host as a program or a URL names it. An address is no host, in whatever notation.
    pub fn check_host(&self, host: &str, port: u16) -> Result<HostName, Verdict> {
        let host = HostName::parse(host).ok_or(Verdict::HostNotAllowed)?;
        self.hosts.check(&host, port).map(|()| host)
    }

    /// Returns the addresses that may be dialed for a host. When there is none, the error is the first that was refused.
    ///
    /// The ranges of an internal host win over denied ranges, for both are the administrator's and the first is the more
    /// exact. They never win over addresses of the node itself.
    pub fn check_addresses(
        &self,
        host: &HostName,
        port: u16,
        addresses: &[IpAddr],
    ) -> Result<Vec<IpAddr>, Option<IpAddr>> {
        let ranges: Vec<IpNet> = self
            .internal
            .iter()
            .filter(|rule| rule.host.check(host, port).is_ok())
            .flat_map(|rule| rule.ranges.iter().copied())
            .collect();
        let is_allowed = |address: &IpAddr| {
            let is_internal =
                ranges.iter().any(|range| range.contains(address)) && !address::is_never_allowed(*address);
            let is_denied = self.denied.iter().any(|range| range.contains(address));
            is_internal || (address::is_public(*address) && !is_denied)
        };
        let allowed: Vec<IpAddr> = addresses.iter().copied().filter(is_allowed).collect();
        if allowed.is_empty() { Err(addresses.first().copied()) } else { Ok(allowed) }
    }
}

fn ranges(texts: &[String]) -> Result<Vec<IpNet>, InvalidPolicy> {
    let parse = |text: &String| {
        let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network.map_err(|_| InvalidPolicy::Range(text.clone()))
    };
    texts.iter().map(parse).collect()
}

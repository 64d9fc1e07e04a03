//! The reach of one run: the hosts of the skill, under the SkillPolicy and the cluster's own ranges.

use skillet_api::{
    SkillPolicySpec,
    network::{Host, InternalHost},
};
use skillet_core::{admission::Admitted, skill::HostPattern};
use skillet_egress::{InternalHostRule, RunPolicy};
use skillet_protocol::{HostRule, RunNetwork};

use crate::{context::Context, egress::RunAccess, execution::reference::ExecutionRef};

/// The access of a run to the hosts of its skill. `None` if the skill names none.
pub(crate) fn access(ctx: &Context, reference: &ExecutionRef, admitted: &Admitted) -> Option<RunAccess> {
    let network = admitted.content.network.clone()?;
    Some(RunAccess {
        egress: ctx.egress.clone(),
        catalog: ctx.catalog.clone(),
        execution_uid: reference.uid.clone(),
        namespace: reference.namespace().to_owned(),
        tenant: reference.lane.caller_namespace.clone(),
        network,
    })
}

/// Holds for every connection of the run. Hosts were checked against the policy at admission.
pub(crate) fn policy(
    (execution_uid, tenant): (&str, &str),
    hosts: &[Host],
    policy: &SkillPolicySpec,
    cluster_ranges: &[String],
) -> RunPolicy {
    let network = &policy.network;
    // The `*` of a built-in means public hosts: an internal one has to be named.
    let is_named = |internal: &&InternalHost| {
        let mut patterns = hosts.iter().map(|host| HostPattern::of(&host.name));
        let internal = HostPattern::of(&internal.name);
        patterns.any(|host| host != HostPattern::Every && (host.covers(internal) || internal.covers(host)))
    };
    let internal = network.internal_hosts.iter().filter(is_named).map(|host| InternalHostRule {
        host: HostRule { name: host.name.clone(), ports: host.ports.clone() },
        ranges: host.ranges.clone(),
    });
    RunPolicy {
        run: execution_uid.to_owned(),
        tenant: tenant.to_owned(),
        hosts: rules(hosts),
        internal_hosts: internal.collect(),
        denied_ranges: cluster_ranges.iter().chain(&network.denied_ranges).cloned().collect(),
        connections: network.connections,
        transfer_bytes: u64::from(network.transfer_mib) << 20,
        sent_bytes: 0,
        received_bytes: 0,
    }
}

/// The part of it that the runner enforces.
pub(crate) fn run_network(hosts: &[Host], policy: &SkillPolicySpec) -> RunNetwork {
    RunNetwork { hosts: rules(hosts), connections: policy.network.connections }
}

fn rules(hosts: &[Host]) -> Vec<HostRule> {
    hosts.iter().map(|host| HostRule { name: host.name.clone(), ports: host.ports.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(yaml: &str) -> SkillPolicySpec {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn a_run_may_reach_the_hosts_of_its_skill_within_the_limits_of_the_policy() {
        let hosts: Vec<Host> = serde_saphyr::from_str(
            "[{name: api.example.com}, {name: '*.x.dev', ports: [80, 443]}, {name: db.svc, ports: [5432]}]",
        )
        .unwrap();
        let spec = of(
            "{network: {internalHosts: [{name: db.svc, ports: [5432], ranges: [10.0.0.0/8]}, {name: other.svc, ranges: []}], \
                       deniedRanges: [198.51.100.0/24], connections: 3, transferMiB: 2}}",
        );
        let made = policy(("uid", "team"), &hosts, &spec, &["203.0.113.0/24".to_owned()]);
        let rule = |name: &str, ports: &[u16]| HostRule { name: name.into(), ports: ports.into() };
        assert_eq!(
            made.hosts,
            [rule("api.example.com", &[443]), rule("*.x.dev", &[80, 443]), rule("db.svc", &[5432])]
        );
        let internal = InternalHostRule { host: rule("db.svc", &[5432]), ranges: vec!["10.0.0.0/8".into()] };
        assert_eq!(made.internal_hosts, [internal]);
        assert_eq!(made.denied_ranges, ["203.0.113.0/24", "198.51.100.0/24"]);
        assert_eq!((made.connections, made.transfer_bytes), (3, 2 << 20));
        assert_eq!((made.run.as_str(), made.tenant.as_str()), ("uid", "team"));
        assert_eq!(run_network(&hosts, &spec), RunNetwork { hosts: made.hosts, connections: 3 });
    }

    #[test]
    fn every_host_means_every_public_host() {
        let hosts: Vec<Host> = serde_saphyr::from_str("[{name: '*'}]").unwrap();
        let spec = of("{network: {internalHosts: [{name: db.svc, ranges: [10.0.0.0/8]}]}}");
        assert!(policy(("uid", "team"), &hosts, &spec, &[]).internal_hosts.is_empty());
    }
}

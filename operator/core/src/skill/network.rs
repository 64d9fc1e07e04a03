//! Validation of `spec.network`, and the check of its hosts against the SkillPolicy.

use skillet_api::{
    Reason, SkillPolicySpec,
    network::{Host, InternalHost, Network},
};

use super::{FieldError, field_error::FieldErrors};

const FIELD: &str = "spec.network.hosts";

/// The hosts that a skill names, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidNetwork {
    pub hosts: Vec<Host>,
}

/// A name, all names below one, or every name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostPattern<'a> {
    Every,
    Below(&'a str),
    Exact(&'a str),
}

impl<'a> HostPattern<'a> {
    /// Reads a pattern as users write it.
    pub fn of(text: &'a str) -> Self {
        match (text, text.strip_prefix("*.")) {
            ("*", _) => Self::Every,
            (_, Some(parent)) => Self::Below(parent),
            (_, None) => Self::Exact(text),
        }
    }

    /// True if each name of `other` is a name of this pattern.
    pub fn covers(self, other: HostPattern<'_>) -> bool {
        match (self, other) {
            (Self::Every, _) => true,
            (Self::Below(parent), HostPattern::Below(below)) => parent == below || is_below(below, parent),
            (Self::Below(parent), HostPattern::Exact(name)) => is_below(name, parent),
            (Self::Exact(name), HostPattern::Exact(other)) => name == other,
            (Self::Below(_) | Self::Exact(_), HostPattern::Every)
            | (Self::Exact(_), HostPattern::Below(_)) => false,
        }
    }
}

fn is_below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// Returns the hosts of a skill. Adds an error for each that the CRD would refuse.
pub(super) fn read(network: Option<&Network>, errors: &mut FieldErrors) -> Option<ValidNetwork> {
    let hosts = &network?.hosts;
    if hosts.is_empty() {
        errors.spec(FIELD, "is empty; name a host, or remove spec.network");
    }
    errors.at_most_items(FIELD, hosts.len(), 32);
    for (place, Host { name, ports }) in hosts.iter().enumerate() {
        let field = format!("{FIELD}[{place}]");
        if !is_host_pattern(name) {
            let message =
                "must be a host in lower case, such as api.example.com, or *.example.com for all below it";
            errors.spec(format_args!("{field}.name"), message);
        }
        if hosts[..place].iter().any(|earlier| earlier.name == *name) {
            errors.spec(
                format_args!("{field}.name"),
                format!("{name} is named twice; list all its ports once"),
            );
        }
        if ports.is_empty() || ports.contains(&0) {
            errors.spec(format_args!("{field}.ports"), "must be ports from 1 to 65535, such as [443]");
        }
        errors.at_most_items(format_args!("{field}.ports"), ports.len(), 16);
    }
    Some(ValidNetwork { hosts: hosts.clone() })
}

/// Returns the first host that the policy does not let the skills of this namespace reach.
pub fn check_hosts(
    network: &ValidNetwork,
    namespace: &str,
    policy: &SkillPolicySpec,
) -> Result<(), FieldError> {
    if !policy.network_enabled {
        let message = "SkillPolicy default has networkEnabled: false, so that no skill reaches a host; have it set to true, or remove spec.network";
        return Err(FieldError::new(Reason::NetworkDisabled, "spec.network", message));
    }
    for (place, host) in network.hosts.iter().enumerate() {
        if !may_reach(host, namespace, policy) {
            let message = format!(
                "SkillPolicy does not let skills of namespace {namespace} reach {}; have it added to spec.network.allowedHosts of the SkillPolicy",
                host.name
            );
            return Err(FieldError::new(Reason::HostNotAllowed, format!("{FIELD}[{place}].name"), message));
        }
    }
    Ok(())
}

/// True if the policy lets skills of this namespace reach all names and ports of `host`.
pub fn may_reach(host: &Host, namespace: &str, policy: &SkillPolicySpec) -> bool {
    let wanted = HostPattern::of(&host.name);
    let network = &policy.network;
    let own = network.namespaces.iter().filter(|entry| entry.namespaces.iter().any(|name| name == namespace));
    let mut allowed = network.allowed_hosts.iter().chain(own.flat_map(|entry| &entry.hosts));
    let is_internal = |internal: &InternalHost| {
        HostPattern::of(&internal.name).covers(wanted)
            && host.ports.iter().all(|port| internal.ports.contains(port))
    };
    allowed.any(|pattern| HostPattern::of(pattern).covers(wanted))
        || network.internal_hosts.iter().any(is_internal)
}

/// True for a host in lower case, or such a host behind `*.`.
fn is_host_pattern(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_label = |label: &str| label.len() <= 63 && super::is_dns_label(label);
    text.len() <= 253 && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_covers(outer: &str, inner: &str, expected: bool) {
        assert_eq!(HostPattern::of(outer).covers(HostPattern::of(inner)), expected, "{outer} covers {inner}");
    }

    #[test]
    fn a_pattern_covers_its_own_names_only() {
        check_covers("*", "a.b", true);
        check_covers("*", "*.b", true);
        check_covers("*.b", "a.b", true);
        check_covers("*.b", "x.a.b", true);
        check_covers("*.b", "*.b", true);
        check_covers("*.b", "*.a.b", true);
        check_covers("a.b", "a.b", true);
        check_covers("*.b", "b", false);
        check_covers("*.b", ".b", false);
        check_covers("*.b", "ab", false);
        check_covers("*.a.b", "*.b", false);
        check_covers("*.b", "*", false);
        check_covers("a.b", "*.b", false);
        check_covers("a.b", "*", false);
        check_covers("a.b", "x.a.b", false);
    }

    fn errors_of(yaml: &str) -> Vec<String> {
        let network: Network = serde_saphyr::from_str(yaml).unwrap();
        let mut errors = FieldErrors::default();
        read(Some(&network), &mut errors);
        errors.into_vec().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn hosts_are_names_with_ports() {
        let good =
            "hosts: [{name: api.example.com}, {name: '*.example.org', ports: [80, 443]}, {name: localhost}]";
        assert_eq!(errors_of(good), Vec::<String>::new());
        for name in [
            "'*'",
            "API.example.com",
            "a..b",
            "a.b.",
            "-a.b",
            "'a b'",
            "a*.b",
            "'*.*.b'",
            "''",
            "a/b",
            "'[::1]'",
        ] {
            let errors = errors_of(&format!("hosts: [{{name: {name}}}]"));
            assert_eq!(errors.len(), 1, "{name}: {errors:?}");
            assert!(errors[0].starts_with("spec.network.hosts[0].name: must be a host"), "{}", errors[0]);
        }
        assert!(errors_of("hosts: [{name: a.b, ports: []}]")[0].contains("ports: must be ports"));
        assert!(errors_of("hosts: [{name: a.b, ports: [0]}]")[0].contains("ports: must be ports"));
        assert!(errors_of("hosts: [{name: a.b}, {name: a.b, ports: [80]}]")[0].contains("named twice"));
        assert!(errors_of("hosts: []")[0].contains("is empty"));
    }

    fn check_policy(policy: &str, host: &str, namespace: &str, expected: Option<Reason>) {
        let policy: SkillPolicySpec = serde_saphyr::from_str(policy).unwrap();
        let host: Host = serde_saphyr::from_str(host).unwrap();
        let checked = check_hosts(&ValidNetwork { hosts: vec![host] }, namespace, &policy);
        assert_eq!(checked.err().map(|error| error.reason()), expected, "{policy:?}");
    }

    #[test]
    fn both_keys_are_needed() {
        let host = "name: api.example.com";
        check_policy("{network: {allowedHosts: ['*']}}", host, "a", Some(Reason::NetworkDisabled));
        check_policy("{networkEnabled: true}", host, "a", Some(Reason::HostNotAllowed));
        check_policy("{networkEnabled: true, network: {allowedHosts: ['*.example.com']}}", host, "a", None);
        check_policy(
            "{networkEnabled: true, network: {allowedHosts: [example.com]}}",
            host,
            "a",
            Some(Reason::HostNotAllowed),
        );
    }

    #[test]
    fn a_namespace_can_have_hosts_of_its_own() {
        let policy =
            "{networkEnabled: true, network: {namespaces: [{namespaces: [a], hosts: [api.example.com]}]}}";
        check_policy(policy, "name: api.example.com", "a", None);
        check_policy(policy, "name: api.example.com", "b", Some(Reason::HostNotAllowed));
    }

    #[test]
    fn an_internal_host_is_allowed_with_its_ports() {
        let policy = "{networkEnabled: true, network: {internalHosts: [{name: x.svc, ports: [80], ranges: [10.0.0.0/8]}]}}";
        check_policy(policy, "{name: x.svc, ports: [80]}", "a", None);
        check_policy(policy, "{name: x.svc}", "a", Some(Reason::HostNotAllowed));
    }
}

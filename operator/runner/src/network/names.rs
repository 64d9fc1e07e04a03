//! The names that a run may connect to, and their synthetic addresses.
//!
//! Pure. A name gets an address only if a rule allows it, and keeps that address for the run. The exact names of rules have theirs
//! from the beginning, because the sandbox's `/etc/hosts` has them. Names below a wildcard get theirs at the first lookup.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use skillet_protocol::{HostRule, Verdict, host_address, host_index, named_hosts};

/// Names of one run. A wildcard allows endless ones, and each takes memory.
const MAX_NAMES: usize = 4096;

/// Longest name, in characters.
pub(crate) const MAX_NAME: usize = 253;

#[derive(Debug, Default)]
pub(crate) struct Names {
    rules: Vec<HostRule>,
    by_name: HashMap<String, u32>,
    /// Names in the order of their addresses.
    known: Vec<String>,
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Address(Ipv4Addr),
    NotAllowed,
    /// The run has too many names.
    Full,
}

impl Names {
    pub(crate) fn new(rules: Vec<HostRule>) -> Self {
        let known = named_hosts(rules.iter().map(|rule| &*rule.name));
        let by_name = known.iter().cloned().zip(0..).collect();
        Self { rules, by_name, known }
    }

    /// Returns the address of `name`, which is in lower case.
    pub(crate) fn look_up(&mut self, name: &str) -> Lookup {
        if name == "localhost" || name.ends_with(".localhost") {
            return Lookup::Address(Ipv4Addr::LOCALHOST);
        }
        if !self.is_allowed(name) {
            return Lookup::NotAllowed;
        }
        if let Some(at) = self.by_name.get(name) {
            return Lookup::Address(host_address(*at));
        }
        let Some(at) = u32::try_from(self.known.len()).ok().filter(|_found| self.known.len() < MAX_NAMES)
        else {
            return Lookup::Full;
        };
        self.by_name.insert(name.to_owned(), at);
        self.known.push(name.to_owned());
        Lookup::Address(host_address(at))
    }

    /// Returns the host that a connection to `ip` means, if a rule allows it at `port`.
    pub(crate) fn host(&self, ip: IpAddr, port: u16) -> Result<String, Verdict> {
        let host = match self.name(ip) {
            Some(name) => name.to_owned(),
            // A rule may name an address.
            None => ip.to_string(),
        };
        let mut rules = self.rules.iter().filter(|rule| matches(&rule.name, &host)).peekable();
        if rules.peek().is_none() {
            return Err(Verdict::HostNotAllowed);
        }
        if rules.any(|rule| rule.ports.contains(&port)) { Ok(host) } else { Err(Verdict::PortNotAllowed) }
    }

    /// Returns the name that has the synthetic address `ip`.
    pub(crate) fn name(&self, ip: IpAddr) -> Option<&str> {
        let IpAddr::V4(ip) = ip else { return None };
        let at = usize::try_from(host_index(ip)?).ok()?;
        self.known.get(at).map(String::as_str)
    }

    fn is_allowed(&self, name: &str) -> bool {
        is_name(name) && self.rules.iter().any(|rule| matches(&rule.name, name))
    }
}

/// True for letters, digits, hyphens and underscores in labels of 1 to 63.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
    };
    name.len() <= MAX_NAME && name.split('.').all(is_label)
}

/// The pattern of built-ins without hosts of their own.
const EVERY: &str = "*";

fn matches(pattern: &str, host: &str) -> bool {
    if pattern == EVERY {
        // Of a built-in, for public hosts: neither names of one label nor addresses, which nobody looked up.
        return host.contains('.') && host.parse::<IpAddr>().is_err();
    }
    match pattern.strip_prefix("*.") {
        Some(parent) => host.strip_suffix(parent).is_some_and(|below| {
            below.len() > 1 && below.ends_with('.') && is_name(&below[..below.len() - 1])
        }),
        None => pattern == host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(rules: &[(&str, &[u16])]) -> Names {
        let rule = |(name, ports): &(&str, &[u16])| HostRule { name: (*name).into(), ports: ports.to_vec() };
        Names::new(rules.iter().map(rule).collect())
    }

    #[test]
    fn a_name_keeps_its_address_and_the_address_its_name() {
        let mut names = names(&[("a.example", &[80]), ("*.b.example", &[443])]);
        let Lookup::Address(first) = names.look_up("a.example") else { panic!() };
        let Lookup::Address(second) = names.look_up("x.y.b.example") else { panic!() };
        assert_eq!(first, Ipv4Addr::new(198, 18, 1, 0));
        assert_eq!(second, Ipv4Addr::new(198, 18, 1, 1));
        assert_eq!(names.look_up("a.example"), Lookup::Address(first));
        assert_eq!(names.host(first.into(), 80), Ok("a.example".into()));
        assert_eq!(names.host(second.into(), 443), Ok("x.y.b.example".into()));
        assert_eq!(names.host(first.into(), 443), Err(Verdict::PortNotAllowed));
    }

    #[test]
    fn exact_names_have_their_address_without_a_lookup() {
        let mut names = names(&[("*.b.example", &[443]), ("a.example", &[80]), ("c.example", &[80])]);
        for (ip, host) in [("198.18.1.0", "a.example"), ("198.18.1.1", "c.example")] {
            assert_eq!(names.host(ip.parse().unwrap(), 80), Ok(host.into()));
            assert_eq!(names.host(ip.parse().unwrap(), 443), Err(Verdict::PortNotAllowed));
        }
        assert_eq!(names.host("198.18.1.2".parse().unwrap(), 443), Err(Verdict::HostNotAllowed));
        assert_eq!(names.look_up("x.b.example"), Lookup::Address(Ipv4Addr::new(198, 18, 1, 2)));
        assert_eq!(names.look_up("c.example"), Lookup::Address(Ipv4Addr::new(198, 18, 1, 1)));
    }

    #[test]
    fn other_names_have_no_address() {
        let mut names = names(&[("a.example", &[80]), ("*.b.example", &[443])]);
        for name in [
            "b.example",
            ".b.example",
            "xb.example",
            "a.example.evil",
            "x.a.example",
            "",
            ".",
            "a.example.",
            "*.b.example",
            "*",
            "a\0.b.example",
            "a b.b.example",
            "..b.example",
            "ä.b.example",
            "a/b.b.example",
            "%00.b.example",
            "A.b.example",
            "a@b.example",
        ] {
            assert_eq!(names.look_up(name), Lookup::NotAllowed, "{name:?}");
        }
        let long = format!("{}.b.example", "a".repeat(64));
        assert_eq!(names.look_up(&long), Lookup::NotAllowed);
        let longer = format!("{}b.example", "a.".repeat(123));
        assert_eq!(names.look_up(&longer), Lookup::NotAllowed);
    }

    #[test]
    fn every_name_of_two_labels_has_an_address_under_a_star_and_no_address_is_a_name() {
        let mut names = names(&[("*", &[80])]);
        assert!(matches!(names.look_up("any.example"), Lookup::Address(_)));
        for name in ["single", "8.8.8.8", "a..example", "a b.example"] {
            assert_eq!(names.look_up(name), Lookup::NotAllowed, "{name:?}");
        }
        assert_eq!(names.host("198.18.1.0".parse().unwrap(), 80), Ok("any.example".into()));
        assert_eq!(names.host("198.18.1.0".parse().unwrap(), 443), Err(Verdict::PortNotAllowed));
        for ip in ["8.8.8.8", "2001:4860:4860::8888", "198.18.1.1"] {
            assert_eq!(names.host(ip.parse().unwrap(), 80), Err(Verdict::HostNotAllowed), "{ip}");
        }
    }

    #[test]
    fn addresses_without_a_name_are_refused() {
        let mut names = names(&[("*.a.example", &[80]), ("203.0.113.7", &[80])]);
        let refused = Err(Verdict::HostNotAllowed);
        for ip in ["198.18.1.0", "198.18.0.1", "198.19.255.255", "10.0.0.1", "127.0.0.1", "::1", "0.0.0.0"] {
            assert_eq!(names.host(ip.parse().unwrap(), 80), refused, "{ip}");
        }
        names.look_up("b.a.example");
        assert_eq!(names.host("198.18.1.0".parse().unwrap(), 80), Ok("b.a.example".into()));
        assert_eq!(names.host("198.18.1.1".parse().unwrap(), 80), refused);
        assert_eq!(names.host("::ffff:198.18.1.0".parse().unwrap(), 80), refused);
        assert_eq!(names.host("203.0.113.7".parse().unwrap(), 80), Ok("203.0.113.7".into()));
    }

    #[test]
    fn a_wildcard_costs_bounded_memory() {
        let mut names = names(&[("*.b.example", &[443])]);
        for at in 0..MAX_NAMES {
            assert!(matches!(names.look_up(&format!("n{at}.b.example")), Lookup::Address(_)));
        }
        assert_eq!(names.look_up("one-more.b.example"), Lookup::Full);
        assert!(matches!(names.look_up("n7.b.example"), Lookup::Address(_)));
    }

    #[test]
    fn the_loopback_has_a_name() {
        let localhost = Lookup::Address(Ipv4Addr::LOCALHOST);
        assert_eq!(names(&[]).look_up("localhost"), localhost);
        assert_eq!(names(&[]).look_up("app.localhost"), localhost);
        assert_eq!(names(&[]).look_up("notlocalhost"), Lookup::NotAllowed);
    }
}

//! Connections and lookups that the runner refused itself, for the record of the run: each host and port once, and not too many. Pure.

use std::collections::HashSet;

use skillet_protocol::{NetworkRequest, RefusedConnection, Verdict};

/// Refusals of one run that are recorded. A program can be refused without end.
const MAX_RECORDED: usize = 64;

/// Longest recorded host, in characters.
const MAX_HOST: usize = 253;

#[derive(Debug, Default)]
pub(crate) struct Refusals {
    recorded: HashSet<(String, u16)>,
}

impl Refusals {
    /// Returns the frame for a refusal that is new. `port` is 0 for a lookup.
    pub(crate) fn record(&mut self, host: &str, port: u16, verdict: Verdict) -> Option<NetworkRequest> {
        if self.recorded.len() >= MAX_RECORDED {
            return None;
        }
        // Odd bytes of a name are for people to read.
        let host: String = host.escape_default().take(MAX_HOST).collect();
        if !self.recorded.insert((host.clone(), port)) {
            return None;
        }
        Some(NetworkRequest::Refused(RefusedConnection { host, port, verdict }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_is_recorded_once_and_not_too_many() {
        let mut refusals = Refusals::default();
        let mut record = |host: &str, port| refusals.record(host, port, Verdict::HostNotAllowed);
        let expected =
            RefusedConnection { host: "10.0.0.1".into(), port: 80, verdict: Verdict::HostNotAllowed };
        assert_eq!(record("10.0.0.1", 80), Some(NetworkRequest::Refused(expected)));
        assert_eq!(record("10.0.0.1", 80), None);
        assert!(record("10.0.0.1", 81).is_some());
        let recorded = (0..1000).filter(|port| record("10.0.0.2", *port).is_some()).count();
        assert_eq!(recorded, MAX_RECORDED - 2);
    }

    #[test]
    fn odd_names_are_made_readable_and_short() {
        let mut refusals = Refusals::default();
        let Some(NetworkRequest::Refused(refused)) =
            refusals.record(&"a\0".repeat(500), 0, Verdict::HostNotAllowed)
        else {
            panic!("not recorded")
        };
        assert!(refused.host.starts_with("a\\u{0}a") && refused.host.len() == MAX_HOST, "{}", refused.host);
    }
}

//! The hosts that an administrator lets sources reach.

use reqwest::Url;

use crate::failure::{Failure, Place};

/// Hosts as SkillPolicy names them: `git.example.com`, or with a port `git.example.com:8443`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    pub(crate) fn new(hosts: &[String]) -> Self {
        Self(hosts.to_vec())
    }

    /// Checks a URL before anything is sent to it. `place` is the field that leads there.
    pub(crate) fn check(&self, place: Place, url: &Url) -> Result<(), Failure> {
        if !matches!(url.scheme(), "http" | "https") {
            let message = format!("the scheme {} is not supported; write https", url.scheme());
            return Err(Failure::BadUrl(place, message));
        }
        let host = url.host_str().unwrap_or_default();
        // The URL has no port if it is the scheme's default.
        let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let default_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        let is_allowed =
            self.0.iter().any(|allowed| *allowed == authority || Some(allowed) == default_port.as_ref());
        if is_allowed { Ok(()) } else { Err(Failure::HostNotAllowed(authority)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(allowed: &[&str], url: &str) -> Result<(), Failure> {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        AllowedHosts::new(&allowed).check(Place::Git, &Url::parse(url).unwrap())
    }

    #[test]
    fn a_host_is_allowed_with_the_port_of_its_scheme_or_a_named_one() {
        for (allowed, url) in [
            ("github.com", "https://github.com/a/b.git"),
            ("github.com", "http://github.com/a"),
            ("github.com:443", "https://github.com/a"),
            ("git.svc:8080", "http://git.svc:8080/a"),
            ("[::1]:8080", "http://[::1]:8080/a"),
            ("github.com", "https://GitHub.com/a"),
        ] {
            assert_eq!(check(&[allowed], url), Ok(()), "{allowed} {url}");
        }
    }

    #[test]
    fn other_hosts_ports_and_notations_are_refused() {
        let refused = |host: &str| Err(Failure::HostNotAllowed(host.to_owned()));
        assert_eq!(check(&[], "https://github.com/a"), refused("github.com"));
        for (url, host) in [
            ("https://github.com:8443/a", "github.com:8443"),
            ("https://github.com.evil.example/", "github.com.evil.example"),
            ("https://github.com@evil.example/", "evil.example"),
            ("https://api.github.com/", "api.github.com"),
            ("http://169.254.169.254/latest/meta-data", "169.254.169.254"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://[::ffff:127.0.0.1]/", "[::ffff:7f00:1]"),
            ("https://ｇｉｔｈｕｂ.com.evil.example/", "github.com.evil.example"),
        ] {
            assert_eq!(check(&["github.com"], url), refused(host), "{url}");
        }
        assert!(matches!(check(&["github.com"], "file:///etc/passwd"), Err(Failure::BadUrl(..))));
        assert!(matches!(check(&["github.com"], "ssh://github.com/a"), Err(Failure::BadUrl(..))));
    }
}

//! The check of a URL that a model wrote, before anything is looked up.
//!
//! It refuses what cannot be public by its text: an address that is not, a name of one label, a name of the cluster. Names
//! that resolve to such addresses are the broker's to refuse, since only it dials the address that it checked.

use std::net::IpAddr;

use url::{Host, Url};

use super::{
    error::{BuiltinError, Code},
    is_public_address,
};

/// Last labels of names that are not public.
const LOCAL_ENDS: [&str; 12] = [
    "localhost",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "svc",
    "home.arpa",
    "onion",
    "invalid",
];
/// Names of metadata services that look public.
const METADATA_NAMES: [&str; 2] = ["metadata.goog", "instance-data.ec2.internal"];
/// Most bytes of a URL.
const MAX_BYTES: usize = 8192;

/// The reason against a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlRefusal {
    #[error("the URL does not parse")]
    NoUrl,
    #[error("the URL needs the scheme https or http")]
    Scheme,
    #[error("the URL has a user name or a password; a request has none")]
    Credentials,
    #[error("the URL names a private or local host")]
    NotPublic,
}

impl UrlRefusal {
    /// True if the text is no URL of a request at all.
    pub fn is_invalid(self) -> bool {
        match self {
            Self::NoUrl | Self::Scheme => true,
            Self::Credentials | Self::NotPublic => false,
        }
    }
}

impl From<UrlRefusal> for BuiltinError {
    fn from(refusal: UrlRefusal) -> Self {
        let code = if refusal.is_invalid() { Code::InvalidUrl } else { Code::UrlGuardBlocked };
        Self::with_code(code, refusal.to_string())
    }
}

/// Reads a URL as browsers do, and refuses one that is not for a public host.
pub fn check_url(text: &str) -> Result<Url, UrlRefusal> {
    let url = Url::parse(text).map_err(|_| UrlRefusal::NoUrl)?;
    if url.as_str().len() > MAX_BYTES {
        return Err(UrlRefusal::NoUrl);
    }
    if !matches!(url.scheme(), "http" | "https") {
        return Err(UrlRefusal::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlRefusal::Credentials);
    }
    let is_public = match url.host() {
        None => false,
        Some(Host::Ipv4(address)) => is_public_address(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => is_public_address(IpAddr::V6(address)),
        Some(Host::Domain(name)) => is_public_name(name),
    };
    if is_public { Ok(url) } else { Err(UrlRefusal::NotPublic) }
}

fn is_public_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_local =
        LOCAL_ENDS.iter().any(|end| name.strip_suffix(end).is_some_and(|before| before.ends_with('.')));
    let is_metadata = METADATA_NAMES.contains(&name);
    name.contains('.') && !name.split('.').any(str::is_empty) && !is_local && !is_metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> UrlRefusal {
        check_url(url).expect_err(url)
    }

    #[test]
    fn public_urls_pass_in_their_normal_form() {
        for (text, normal) in [
            ("https://example.com", "https://example.com/"),
            ("  HTTP:example.com ", "http://example.com/"),
            ("https://EXAMPLE.com:443/a b?q#f", "https://example.com/a%20b?q#f"),
            ("http://8.8.8.8/", "http://8.8.8.8/"),
            ("http://[2606:4700::1111]:8080/", "http://[2606:4700::1111]:8080/"),
            ("https://fcbarcelona.com/", "https://fcbarcelona.com/"),
            ("https://example.com./", "https://example.com./"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ] {
            assert_eq!(check_url(text).unwrap().as_str(), normal);
        }
    }

    #[test]
    fn text_that_is_no_url_of_http_is_invalid() {
        for text in ["", "example.com", "//example.com/", "http://", "http://256.256.256.256/", "http://a b/"]
        {
            assert_eq!(refused(text), UrlRefusal::NoUrl);
        }
        assert_eq!(refused(&format!("https://example.com/{}", "a".repeat(8192))), UrlRefusal::NoUrl);
        for text in
            ["ftp://example.com/", "file:///etc/passwd", "javascript:alert(1)", "data:,x", "ws://a.b/"]
        {
            assert_eq!(refused(text), UrlRefusal::Scheme);
        }
        assert_eq!(refused("https://u@example.com/"), UrlRefusal::Credentials);
        assert_eq!(refused("https://:p@example.com/"), UrlRefusal::Credentials);
    }

    #[test]
    fn addresses_are_refused_in_every_notation() {
        for host in [
            "127.0.0.1",
            "127.1",
            "0177.0.0.1",
            "0x7f.1",
            "2130706433",
            "0x7f000001",
            "①②⑦.⓪.⓪.①",
            "127。0。0。1",
            "127.0.0.1.",
            "0",
            "[::]",
            "[::1]",
            "[::ffff:8.8.8.8]",
            "[::7f00:1]",
            "[64:ff9b::1]",
            "%31%32%37.1",
            "169.254.169.254",
            "192.0.2.1",
        ] {
            assert_eq!(refused(&format!("http://{host}/")), UrlRefusal::NotPublic);
        }
    }

    #[test]
    fn names_that_are_not_public_are_refused() {
        for host in [
            "localhost",
            "localhost.",
            "a.localhost",
            "LOCALHOST",
            "printer.local",
            "metadata.google.internal",
            "metadata.google.internal.",
            "metadata.goog",
            "intranet",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "a.b.svc.cluster.local",
            "a..b.example",
            ".example.com",
        ] {
            let got = check_url(&format!("http://{host}/"));
            // A name with one label before a public end looks like a public one.
            if host == "kubernetes.default" {
                assert!(got.is_ok());
            } else {
                assert_eq!(got, Err(UrlRefusal::NotPublic), "{host}");
            }
        }
    }
}

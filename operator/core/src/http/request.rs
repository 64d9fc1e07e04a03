//! The request of a skill that runs without a sandbox, and the reason why its response is no output.

use skillet_api::{Reason, http::HttpMethod};
use url::Url;

/// A request as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedRequest {
    pub method: HttpMethod,
    /// URL with scheme `https` or `http`, in its normal form.
    pub url: String,
    /// Names and values without line ends.
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
}

impl RenderedRequest {
    /// Returns the host and the port to which it is sent. `None` if its URL is none.
    pub fn host_and_port(&self) -> Option<(String, u16)> {
        let url = Url::parse(&self.url).ok()?;
        Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
    }
}

/// The reason why a run without a sandbox has no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ResponseError {
    pub reason: Reason,
    pub message: String,
}

impl ResponseError {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    pub fn reason(&self) -> Reason {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_for_the_host_and_the_port_of_its_url() {
        for (url, expected) in [
            ("https://api.example.com/x?y=http://other.dev", Some(("api.example.com", 443))),
            ("http://api.example.com/", Some(("api.example.com", 80))),
            ("https://api.example.com:8443/", Some(("api.example.com", 8443))),
            ("api.example.com", None),
        ] {
            let (method, headers, body) = (HttpMethod::Get, Vec::new(), None);
            let request = RenderedRequest { method, url: url.into(), headers, body };
            let expected = expected.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(request.host_and_port(), expected, "{url}");
        }
    }
}

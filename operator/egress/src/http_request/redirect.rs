//! The next hop of a redirect: its URL, method and headers, or the reason why it is not followed. Pure.

#[cfg(test)]
mod tests;

use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use skillet_protocol::Verdict;
use url::Url;

use crate::policy::{HostName, HostRules, Policy};

/// Headers that go to another host too.
const SAFE_HEADERS: [HeaderName; 4] =
    [header::ACCEPT, header::ACCEPT_LANGUAGE, header::USER_AGENT, header::CONTENT_TYPE];

/// One request of a chain of redirects.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) has_body: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) verdict: Option<Verdict>,
    pub(super) message: String,
}

/// Returns the target of a response that redirects.
pub(super) fn location(status: StatusCode, headers: &HeaderMap) -> Option<&[u8]> {
    let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    headers.get(header::LOCATION).filter(|_found| is_redirect).map(header::HeaderValue::as_bytes)
}

/// Decides about a redirect of `hop` to `location`.
pub(super) fn next(
    hop: &Hop,
    status: StatusCode,
    location: &[u8],
    policy: &Policy,
    others: &HostRules,
) -> Result<Hop, Refused> {
    let refused =
        |message: &str| Refused { host: None, port: None, verdict: None, message: message.to_owned() };
    let text = std::str::from_utf8(location).map_err(|_| refused("the target is not text"))?;
    let mut url = hop.url.join(text).map_err(|_| refused("the target is no URL"))?;
    url.set_fragment(None);
    let host = url.host_str().map(str::to_owned);
    let refused = |message: &str, verdict| Refused {
        host: host.clone(),
        port: url.port_or_known_default(),
        verdict,
        message: message.to_owned(),
    };
    match (hop.url.scheme(), url.scheme()) {
        ("https", "http") => return Err(refused("a redirect leads from https to http", None)),
        (_, "http" | "https") => {}
        _ => return Err(refused("the target is neither http nor https", None)),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("the target has a user name", None));
    }
    let (Some(name), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(refused("the target has no host", None));
    };
    let name = policy
        .check_host(name, port)
        .map_err(|verdict| refused("the target is no host that the policy allows", Some(verdict)))?;
    let is_same = is_same_origin(&hop.url, &name, &url);
    if !is_same && let Err(verdict) = others.check(&name, port) {
        return Err(refused("the request may not be redirected to this host", Some(verdict)));
    }
    Ok(follow(hop, status, url, is_same))
}

/// True for the same host and port, and for the step from http to https of one host.
fn is_same_origin(from: &Url, name: &HostName, to: &Url) -> bool {
    let is_same_host = from.host_str().and_then(HostName::parse).as_ref() == Some(name);
    let ports = (from.port_or_known_default(), to.port_or_known_default());
    let is_step_up = from.scheme() == "http" && to.scheme() == "https" && ports == (Some(80), Some(443));
    is_same_host && (is_step_up || (ports.0 == ports.1 && from.scheme() == to.scheme()))
}

/// Makes the next request as browsers do.
fn follow(hop: &Hop, status: StatusCode, url: Url, is_same: bool) -> Hop {
    let mut headers = hop.headers.clone();
    let becomes_get = match status.as_u16() {
        303 => hop.method != Method::GET && hop.method != Method::HEAD,
        301 | 302 => hop.method == Method::POST,
        _ => false,
    };
    if !is_same {
        let names: Vec<HeaderName> =
            headers.keys().filter(|name| !SAFE_HEADERS.contains(name)).cloned().collect();
        for name in names {
            headers.remove(name);
        }
    }
    if becomes_get {
        for name in [
            header::CONTENT_TYPE,
            header::CONTENT_ENCODING,
            header::CONTENT_LANGUAGE,
            header::CONTENT_LOCATION,
        ] {
            headers.remove(name);
        }
    }
    Hop {
        method: if becomes_get { Method::GET } else { hop.method.clone() },
        url,
        headers,
        has_body: hop.has_body && !becomes_get,
    }
}

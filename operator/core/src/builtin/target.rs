//! The one host and port of a request, held against the hosts of the skill.

use skillet_api::{Reason, network::Host};
use url::Url;

use crate::{
    http::ResponseError,
    skill::{HostPattern, ValidNetwork},
};

/// Returns the host and port that a request needs, if the skill names them. The broker gets these alone.
pub fn target(url: &str, network: Option<&ValidNetwork>) -> Result<Host, ResponseError> {
    let no_host = || ResponseError::new(Reason::InputInvalid, format!("the URL {url:?} names no host"));
    let parsed = Url::parse(url).map_err(|_| no_host())?;
    let name = parsed.host_str().ok_or_else(no_host)?;
    let name = name.strip_suffix('.').unwrap_or(name).to_owned();
    let port = parsed.port_or_known_default().ok_or_else(no_host)?;
    let hosts = network.map(|network| network.hosts.as_slice()).unwrap_or_default();
    let mut named =
        hosts.iter().filter(|host| HostPattern::of(&host.name).covers(HostPattern::Exact(&name))).peekable();
    if named.peek().is_none() {
        let message = format!("spec.network of the Skill does not name {name}");
        return Err(ResponseError::new(Reason::HostNotAllowed, message));
    }
    if !named.any(|host| host.ports.contains(&port)) {
        let message = format!("spec.network of the Skill does not name port {port} of {name}");
        return Err(ResponseError::new(Reason::PortNotAllowed, message));
    }
    Ok(Host { name, ports: vec![port] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, hosts: &str) -> Result<Host, Reason> {
        let hosts: Vec<Host> = serde_saphyr::from_str(hosts).unwrap();
        target(url, Some(&ValidNetwork { hosts })).map_err(|error| error.reason())
    }

    #[test]
    fn a_request_needs_its_own_host_and_port_and_no_other() {
        let every = "[{name: '*', ports: [80, 443]}]";
        let host = |name: &str, port| Ok(Host { name: name.into(), ports: vec![port] });
        assert_eq!(check("https://a.example./x", every), host("a.example", 443));
        assert_eq!(check("http://a.example/x", every), host("a.example", 80));
        assert_eq!(check("http://a.example:8080/x", every), Err(Reason::PortNotAllowed));
        assert_eq!(check("https://a.example/", "[{name: '*.example'}]"), host("a.example", 443));
        assert_eq!(check("https://b.org/", "[{name: '*.example'}]"), Err(Reason::HostNotAllowed));
        assert_eq!(check("data:,x", every), Err(Reason::InputInvalid));
        assert_eq!(target("https://a.b/", None).unwrap_err().reason(), Reason::HostNotAllowed);
    }
}

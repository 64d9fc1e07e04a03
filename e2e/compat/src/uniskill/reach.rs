//! `ssrf`: which hosts a request reaches. Admission, the broker's rules of hosts and its rules of addresses must all allow it.

use std::net::IpAddr;

use serde_json::{Value, json};
use skillet_api::{http::Http, network::Network};
use skillet_core::http::HttpProgram;
use skillet_egress::policy::{Policy, RunPolicy};
use skillet_protocol::HostRule;

use super::manifest::to_http;
use crate::{case::Case, judge::Answer};

// Every replay has this type.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn ssrf(case: &Case) -> Result<Answer, String> {
    let value = match decide(case) {
        Ok(host) => json!({"allowed": true, "host": host}),
        Err(why) => json!({"allowed": false, "why": why}),
    };
    Ok(Answer::by_fields(case, value, &["allowed"]))
}

/// Returns the host that is reached, or the reason why none is.
fn decide(case: &Case) -> Result<String, String> {
    let http: Http = to_http(&case.input)?;
    // A skill with http:// names its port. It may be the one of any URL, so that only the host decides.
    let network = port_80(&http.url);
    let program = HttpProgram::read(&http, network.as_ref())
        .map_err(|problems| problems.into_iter().map(|it| it.message).collect::<Vec<_>>().join("; "))?;
    let params = case.input.get("params").cloned().unwrap_or_else(|| json!({}));
    program.render(&params, &std::collections::BTreeMap::new()).map_err(|error| error.message)?;
    let host = program.host();
    let rule = HostRule { name: host.name.clone(), ports: host.ports.clone() };
    let policy = Policy::new(&RunPolicy { hosts: vec![rule], ..RunPolicy::default() })
        .map_err(|error| error.to_string())?;
    let port = host.ports.first().copied().unwrap_or_default();
    let name = policy.check_host(&host.name, port).map_err(|verdict| verdict.as_str().to_owned())?;
    let addresses = addresses(case, &host.name);
    policy
        .check_addresses(&name, port, &addresses)
        .map_err(|address| format!("{address:?} is not public"))?;
    Ok(host.name)
}

fn port_80(url: &str) -> Option<Network> {
    let authority = url.strip_prefix("http://")?.split(['/', '?']).next()?;
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "80"));
    let port: u16 = port.parse().ok()?;
    serde_json::from_value(json!({"hosts": [{"name": host.to_lowercase(), "ports": [port]}]})).ok()
}

/// Returns the addresses that the case gives its host, else those that a resolver in a cluster would.
fn addresses(case: &Case, host: &str) -> Vec<IpAddr> {
    let given = ["resolves_to", "resolved", "addresses", "dns"].iter().map(|name| &case.input[*name]);
    let texts = given.flat_map(|value| match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    });
    let given: Vec<IpAddr> = texts.filter_map(|text| text.parse().ok()).collect();
    if !given.is_empty() {
        return given;
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    let text = match host {
        "metadata.google.internal" | "metadata" => "169.254.169.254",
        _ if last == "localhost" => "127.0.0.1",
        _ if matches!(last, "local" | "svc" | "internal") => "10.96.0.1",
        // A name of one label is a Service of the cluster.
        _ if !host.contains('.') => "10.96.0.1",
        _ => "93.184.215.14",
    };
    text.parse().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::judged;

    // Cases are written once, where they are used.
    #[allow(clippy::needless_pass_by_value)]
    fn check(input: Value, is_allowed: bool) {
        for (expected, is_passed) in [(is_allowed, true), (!is_allowed, false)] {
            let judged = judged(
                "uniskill",
                json!({"kind": "ssrf", "input": input, "expected": {"allowed": expected}}),
            );
            assert_eq!(judged == "passed", is_passed, "{judged}");
        }
    }

    #[test]
    fn only_public_hosts_by_name_are_reached() {
        for url in [
            "http://127.0.0.1/",
            "http://localhost:8080/",
            "http://169.254.169.254/latest",
            "http://[::1]/",
            "http://0x7f.1/",
            "http://2130706433/",
            "https://kubernetes.default.svc/",
            "https://metadata.google.internal/",
            "file:///etc/passwd",
            "gopher://up.example/",
            "https://up.example@127.0.0.1/",
            "https://{{host}}/x",
        ] {
            check(json!({"endpoint": url, "params": {"host": "up.example"}}), false);
        }
        check(json!({"endpoint": "https://up.example/x"}), true);
        check(json!({"endpoint": "http://up.example:8080/{{p}}", "params": {"p": "@127.0.0.1"}}), true);
        check(json!({"endpoint": "https://up.example/", "resolves_to": ["10.0.0.1"]}), false);
        check(json!({"endpoint": "https://up.example/", "resolves_to": "93.184.215.14"}), true);
    }
}

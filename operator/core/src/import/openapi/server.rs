//! The server of an operation: its URL with the defaults of variables, and its host.

use serde_json::{Value, json};

use super::Operation;

/// A server without a slash at its end.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) url: String,
    /// The host as `network.hosts` has it.
    pub(super) host: Value,
}

/// Returns the server that the user names, else the first of the operation, of its path or of the document.
pub(super) fn of(operation: Operation<'_>) -> Result<Server, String> {
    let fix = "name the server with --server URL";
    let url = if let Some(url) = operation.source.server {
        url.to_owned()
    } else {
        let places = [operation.own, operation.item, operation.source.document];
        let first = places.iter().find_map(|place| place["servers"].get(0));
        filled(first.ok_or_else(|| format!("the document names no server; {fix}"))?)
    };
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(format!("the server {url:?} has no host; {fix}"));
    };
    let scheme = scheme.to_ascii_lowercase();
    let authority = rest.split('/').next().unwrap_or_default();
    let (name, port) = match authority.split_once(':') {
        Some((name, port)) => {
            (name, port.parse::<u16>().map_err(|_| format!("the server {url:?} has an odd port; {fix}"))?)
        }
        None if scheme == "http" => (authority, 80),
        None => (authority, 443),
    };
    let mut host = json!({ "name": name.to_ascii_lowercase() });
    if port != 443 {
        host["ports"] = json!([port]);
    }
    Ok(Server { url: url.trim_end_matches('/').to_owned(), host })
}

fn filled(server: &Value) -> String {
    let mut url = server["url"].as_str().unwrap_or_default().to_owned();
    for (name, variable) in server["variables"].as_object().into_iter().flatten() {
        let value = match &variable["default"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        url = url.replace(&format!("{{{name}}}"), &value);
    }
    url
}

//! One user's requests, from the API server's audit log.

use serde_json::Value;

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct Request {
    pub verb: String,
    /// Such as `skills/status`, `jobs` or `events`, with the API group before it: `batch/jobs`.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub query: String,
    pub code: i64,
}

impl Request {
    /// Tells if the request changes something.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    /// Verb and resource, as a rule of RBAC grants them.
    pub fn right(&self) -> (String, String) {
        (self.verb.clone(), self.resource.clone())
    }
}

/// The requests of `user`, in the order in which they were answered.
pub fn requests(log: &str, user: &str) -> Vec<Request> {
    log.lines()
        // The last line may be half written.
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["user"]["username"] == user)
        .map(|event| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let object = &event["objectRef"];
            let path = [&object["apiGroup"], &object["resource"], &object["subresource"]];
            let path: Vec<String> = path.into_iter().map(text).filter(|part| !part.is_empty()).collect();
            let uri = text(&event["requestURI"]);
            Request {
                verb: text(&event["verb"]),
                resource: path.join("/"),
                namespace: text(&object["namespace"]),
                name: text(&object["name"]),
                query: uri.split_once('?').map(|(_, query)| query.to_owned()).unwrap_or_default(),
                code: event["responseStatus"]["code"].as_i64().unwrap_or_default(),
            }
        })
        .collect()
}

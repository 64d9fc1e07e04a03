//! An API server as far as the gateway asks one: lists in pages, watches that tell of nothing, and every review granted.
//!
//! Its objects do not change. It checks no request: its only client is the gateway that this process has started.

use std::{collections::BTreeMap, future::pending, io, net::SocketAddr, sync::Arc};

use serde_json::{Value, json};

use crate::http::{self, Connection};

/// A token for the gateway by its form: its claims are `{"aud":"skillet"}`.
pub(crate) const TOKEN: &str = "e30.eyJhdWQiOiJza2lsbGV0In0.c2ln";
/// The namespace of whoever asks.
pub(crate) const NAMESPACE: &str = "bench";

/// Objects as JSON, by plural.
pub(crate) struct Api(BTreeMap<&'static str, Vec<String>>);

impl Api {
    /// Holds these objects; of all other kinds there are none.
    pub(crate) fn new(kinds: impl IntoIterator<Item = (&'static str, Vec<Value>)>) -> Self {
        let texts = |objects: Vec<Value>| objects.iter().map(Value::to_string).collect();
        Self(kinds.into_iter().map(|(plural, objects)| (plural, texts(objects))).collect())
    }

    /// Serves until the process ends.
    pub(crate) async fn start(self) -> io::Result<SocketAddr> {
        let api = Arc::new(self);
        http::listen(move |connection| serve(connection, api.clone())).await
    }

    /// One page of a kind's objects, from the given number on; with more to follow, the number the next page begins with.
    fn page(&self, plural: &str, limit: Option<usize>, from: usize) -> String {
        let all = self.0.get(plural).map(Vec::as_slice).unwrap_or_default();
        let left = all.get(from..).unwrap_or_default();
        let items = left.get(..limit.unwrap_or(left.len())).unwrap_or(left);
        let mut metadata = json!({ "resourceVersion": "1" });
        if items.len() < left.len() {
            metadata["continue"] = json!((from + items.len()).to_string());
        }
        let items = items.join(",");
        format!("{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"metadata\":{metadata},\"items\":[{items}]}}")
    }
}

async fn serve(mut connection: Connection, api: Arc<Api>) -> io::Result<()> {
    while let Some(head) = connection.head().await? {
        connection.body(&head).await?;
        let (path, query) = head.target().split_once('?').unwrap_or((head.target(), ""));
        let plural = path.rsplit('/').next().unwrap_or_default();
        let parameter = |name: &str| {
            query
                .split('&')
                .filter_map(|part| part.split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value)
        };
        if parameter("watch").is_some() {
            connection.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            // Nothing ever happens.
            pending::<()>().await;
        }
        let answer = match plural {
            "tokenreviews" => http::answer("201 Created", &token_review().to_string()),
            "subjectaccessreviews" => http::answer("201 Created", &access_review().to_string()),
            _ => {
                let number = |name| parameter(name).and_then(|text| text.parse().ok());
                let page = api.page(plural, number("limit"), number("continue").unwrap_or(0));
                http::answer("200 OK", &page)
            }
        };
        connection.write(&answer).await?;
    }
    Ok(())
}

fn token_review() -> Value {
    let user = json!({
        "username": format!("system:serviceaccount:{NAMESPACE}:agent"),
        "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{NAMESPACE}"), "system:authenticated"],
    });
    let status = json!({ "authenticated": true, "audiences": ["skillet"], "user": user });
    json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {}, "status": status })
}

fn access_review() -> Value {
    let status = json!({ "allowed": true });
    json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {}, "status": status })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_kind_is_listed_page_by_page() {
        let objects: Vec<Value> = (0..1_200).map(|number| json!({ "number": number })).collect();
        let address = Api::new([("skills", objects)]).start().await.unwrap().to_string();
        let mut connection = Connection::open(&address).await.unwrap();
        let mut ask = async |target: &str| -> Value {
            connection.write(&http::request(&format!("GET {target}"), &[], "")).await.unwrap();
            let head = connection.head().await.unwrap().unwrap();
            serde_json::from_slice(&connection.body(&head).await.unwrap()).unwrap()
        };
        let (mut seen, mut target) = (Vec::new(), "/apis/skillet.dev/v1alpha1/skills?limit=500".to_owned());
        loop {
            let list = ask(&target).await;
            seen.push(list["items"].as_array().unwrap().len());
            let Some(next) = list["metadata"]["continue"].as_str() else { break };
            target = format!("/apis/skillet.dev/v1alpha1/skills?limit=500&continue={next}");
        }
        assert_eq!(seen, [500, 500, 200]);
        assert_eq!(ask("/apis/skillet.dev/v1alpha1/skills").await["items"][1_199]["number"], 1_199);
        assert_eq!(ask("/apis/skillet.dev/v1alpha1/apikeys?limit=10").await["items"], json!([]));
        let review = ask("/apis/authorization.k8s.io/v1/subjectaccessreviews").await;
        assert_eq!(review["status"]["allowed"], true);
    }
}

//! A small API server for tests: a fixed response for each method and path, and the requests that it saw.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http::{Request, Response};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tower::service_fn;

use crate::connection::ClusterClient;

/// A request that the server saw.
#[derive(Clone, Debug)]
pub(crate) struct SeenRequest {
    /// Method and path, without the query.
    pub(crate) target: String,
    pub(crate) query: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Value,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) type Requests = Arc<Mutex<Vec<SeenRequest>>>;

/// Connects to namespace `team-a` of a server that returns the given response for `GET /path`, and else 404.
pub(crate) fn server(answers: Value) -> (ClusterClient, Requests) {
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    let service = service_fn(move |request: Request<Body>| {
        let (seen, answers) = (Arc::clone(&seen), answers.clone());
        async move {
            let target = format!("{} {}", request.method(), request.uri().path());
            let query = request.uri().query().unwrap_or_default().to_owned();
            let headers = request.headers().clone();
            let body = request.into_body().collect_bytes().await.unwrap();
            let bytes = body.to_vec();
            let body = serde_json::from_slice(&bytes).unwrap_or_default();
            seen.lock().unwrap().push(SeenRequest { target: target.clone(), query, headers, body, bytes });
            let (status, answer) = match answers.get(&target) {
                Some(answer) => (answer["code"].as_u64().unwrap_or(200), answer.clone()),
                None => (404, refusal(404, "not found")),
            };
            // A text is the body as it is.
            let answer = answer.as_str().map_or_else(|| answer.to_string(), ToOwned::to_owned);
            let answer = Body::from(answer.into_bytes());
            let status = u16::try_from(status).unwrap();
            Ok::<_, Infallible>(Response::builder().status(status).body(answer).unwrap())
        }
    });
    let client = Client::new(service, "default");
    (ClusterClient { client, namespace: "team-a".into() }, requests)
}

pub(crate) fn refusal(code: u16, message: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "x", "code": code, "message": message })
}

/// The answer of an API server that serves the kind and has no object of the name.
pub(crate) fn not_found(kind: &str, name: &str) -> Value {
    let mut answer = refusal(404, "not found");
    answer["details"] = json!({ "kind": kind, "name": name });
    answer
}

pub(crate) fn targets(requests: &Requests) -> Vec<String> {
    requests.lock().unwrap().iter().map(|request| request.target.clone()).collect()
}

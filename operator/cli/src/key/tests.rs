//! Requests of `key` to the cluster, against a small API server with a fixed response for each method and path.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

type Requests = Arc<Mutex<Vec<(String, Value)>>>;

/// A client of a server that returns the given response for `GET /path`, and else 404.
fn server(answers: Value) -> (Client, Requests) {
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    let service = service_fn(move |request: Request<Body>| {
        let (seen, answers) = (Arc::clone(&seen), answers.clone());
        async move {
            let what = format!("{} {}", request.method(), request.uri().path());
            let body = request.into_body().collect_bytes().await.unwrap();
            seen.lock().unwrap().push((what.clone(), serde_json::from_slice(&body).unwrap_or_default()));
            let (status, answer) = match answers.get(&what) {
                Some(answer) => (answer["code"].as_u64().unwrap_or(200), answer.clone()),
                None => (404, refusal(404, "not found")),
            };
            let answer = Body::from(answer.to_string().into_bytes());
            let status = u16::try_from(status).unwrap();
            Ok::<_, Infallible>(Response::builder().status(status).body(answer).unwrap())
        }
    });
    (Client::new(service, "default"), requests)
}

fn refusal(code: u16, message: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "x", "code": code, "message": message })
}

const ACCOUNT: &str = "GET /api/v1/namespaces/team-a/serviceaccounts/agent";
const KEYS: &str = "/apis/skillet.dev/v1alpha1/namespaces/team-a/apikeys";

fn object(name: &str) -> Value {
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "ApiKey", "metadata": { "name": name },
        "spec": { "hash": "0".repeat(64) } })
}

fn key_name() -> KeyName {
    "ci".parse().unwrap()
}

fn words(requests: &Requests) -> Vec<String> {
    requests.lock().unwrap().iter().map(|(what, _)| what.clone()).collect()
}

#[tokio::test]
async fn create_sends_only_the_hash_of_the_printed_key() {
    let account = json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {} });
    let (client, requests) = server(json!({ ACCOUNT: account, format!("POST {KEYS}"): object("ci") }));
    let key = make(client, "team-a", &key_name(), "agent", None).await.unwrap();
    let sent = requests.lock().unwrap().pop().unwrap().1;
    let wanted = api_key(&key_name(), "agent", None, key.hash());
    assert_eq!(sent, serde_json::to_value(wanted).unwrap());
    assert!(KeyText::parse(key.text()).is_some());
}

#[tokio::test]
async fn create_refuses_a_missing_service_account() {
    let (client, requests) = server(json!({}));
    let error = make(client, "team-a", &key_name(), "agent", None).await.err().unwrap();
    assert_eq!(error.to_string(), "namespace team-a has no service account agent");
    assert_eq!(words(&requests), [ACCOUNT]);
}

#[tokio::test]
async fn create_needs_no_right_to_read_service_accounts_and_refuses_a_taken_name() {
    let taken = refusal(409, "apikeys.skillet.dev \"ci\" already exists");
    let (client, _) = server(json!({ ACCOUNT: refusal(403, "no"), format!("POST {KEYS}"): taken }));
    let error = make(client, "team-a", &key_name(), "agent", None).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "could not create API key team-a/ci: apikeys.skillet.dev \"ci\" already exists"
    );
    assert_eq!(error.exit(), Exit::Refused);
}

#[tokio::test]
async fn delete_deletes_the_object_of_that_name() {
    let done = json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" });
    let (client, requests) = server(json!({ format!("DELETE {KEYS}/ci"): done }));
    remove(client, "team-a", &key_name()).await.unwrap();
    assert_eq!(words(&requests), [format!("DELETE {KEYS}/ci")]);
}

#[tokio::test]
async fn delete_of_an_unknown_name_suggests_similar_names() {
    let listed = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "ApiKeyList", "metadata": {},
        "items": [object("ic"), object("other")] });
    let (client, _) = server(json!({ format!("GET {KEYS}"): listed }));
    let error = remove(client, "team-a", &key_name()).await.unwrap_err();
    assert!(matches!(&error, CliError::NoKey { suggestions, .. } if suggestions == &["ic"]), "{error:?}");
}

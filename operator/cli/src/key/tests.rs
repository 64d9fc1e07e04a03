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
const SECRETS: &str = "/api/v1/namespaces/team-a/secrets";

fn metadata(name: &str, label: &str) -> Value {
    json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": { "name": name, "uid": "u-1", "labels": { "skillet.dev/api-key": label } } })
}

fn key_name() -> KeyName {
    "ci".parse().unwrap()
}

fn words(requests: &Requests) -> Vec<String> {
    requests.lock().unwrap().iter().map(|(what, _)| what.clone()).collect()
}

#[tokio::test]
async fn create_sends_only_the_hash_of_the_printed_key() {
    let created = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": {} });
    let (client, requests) =
        server(json!({ ACCOUNT: metadata("agent", "-"), format!("POST {SECRETS}"): created }));
    let key = make(client, "team-a", &key_name(), "agent", None).await.unwrap();
    let sent = requests.lock().unwrap().pop().unwrap().1;
    let wanted = key_secret(&key_name(), "agent", None, key.hash());
    assert_eq!(sent, serde_json::to_value(wanted).unwrap());
    assert!(ApiKey::parse(key.text()).is_some());
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
    let taken = refusal(409, "secrets \"skillet-key-ci\" already exists");
    let (client, _) = server(json!({ ACCOUNT: refusal(403, "no"), format!("POST {SECRETS}"): taken }));
    let error = make(client, "team-a", &key_name(), "agent", None).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "could not create API key team-a/ci: secrets \"skillet-key-ci\" already exists"
    );
    assert_eq!(error.exit(), Exit::Refused);
}

#[tokio::test]
async fn revoke_deletes_the_secret_by_its_uid() {
    let path = format!("{SECRETS}/skillet-key-ci");
    let gone = json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" });
    let (client, requests) = server(json!({
        format!("GET {path}"): metadata("skillet-key-ci", "true"),
        format!("DELETE {path}"): gone,
    }));
    remove(client, "team-a", &key_name()).await.unwrap();
    let (what, body) = requests.lock().unwrap().pop().unwrap();
    assert_eq!(what, format!("DELETE {path}"));
    assert_eq!(body["preconditions"], json!({ "uid": "u-1" }));
}

#[tokio::test]
async fn revoke_deletes_only_api_keys_and_suggests_similar_names() {
    let listed = json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {},
        "items": [metadata("skillet-key-ic", "true"), metadata("other", "true")] });
    let (client, requests) = server(json!({
        format!("GET {SECRETS}/skillet-key-ci"): metadata("skillet-key-ci", "false"),
        format!("GET {SECRETS}"): listed,
    }));
    let error = remove(client, "team-a", &key_name()).await.unwrap_err();
    assert!(matches!(&error, CliError::NoKey { suggestions, .. } if suggestions == &["ic"]), "{error:?}");
    assert!(words(&requests).iter().all(|what| what.starts_with("GET ")));
}

//! What is sent to the cluster for a key, against a small API server that answers by method and path.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// A client whose server answers `GET /path` with what is listed for it, and with 404 where nothing is.
fn server(answers: Value) -> (Client, Asked) {
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
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
    (Client::new(service, "default"), asked)
}

fn refusal(code: u16, message: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "CliError", "reason": "x", "code": code, "message": message })
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

fn words(asked: &Asked) -> Vec<String> {
    asked.lock().unwrap().iter().map(|(what, _)| what.clone()).collect()
}

#[tokio::test]
async fn the_cluster_is_given_the_hash_of_the_key_that_is_printed() {
    let created = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": {} });
    let (client, asked) =
        server(json!({ ACCOUNT: metadata("agent", "-"), format!("POST {SECRETS}"): created }));
    let key = make(client, "team-a", &key_name(), "agent", None).await.unwrap();
    let sent = asked.lock().unwrap().pop().unwrap().1;
    let wanted = key_secret(&key_name(), "agent", None, key.hash());
    assert_eq!(sent, serde_json::to_value(wanted).unwrap());
    assert!(ApiKey::parse(key.text()).is_some());
}

#[tokio::test]
async fn no_key_is_made_for_a_service_account_that_does_not_exist() {
    let (client, asked) = server(json!({}));
    let failure = make(client, "team-a", &key_name(), "agent", None).await.err().unwrap();
    assert_eq!(failure.to_string(), "namespace team-a has no service account agent");
    assert_eq!(words(&asked), [ACCOUNT]);
}

#[tokio::test]
async fn one_who_may_not_see_service_accounts_may_make_a_key_and_a_name_that_is_taken_is_refused() {
    let taken = refusal(409, "secrets \"skillet-key-ci\" already exists");
    let (client, _) = server(json!({ ACCOUNT: refusal(403, "no"), format!("POST {SECRETS}"): taken }));
    let failure = make(client, "team-a", &key_name(), "agent", None).await.err().unwrap();
    assert_eq!(
        failure.to_string(),
        "could not create API key team-a/ci: secrets \"skillet-key-ci\" already exists"
    );
    assert_eq!(failure.exit(), Exit::Refused);
}

#[tokio::test]
async fn revoking_deletes_the_secret_that_was_seen() {
    let path = format!("{SECRETS}/skillet-key-ci");
    let gone = json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" });
    let (client, asked) = server(json!({
        format!("GET {path}"): metadata("skillet-key-ci", "true"),
        format!("DELETE {path}"): gone,
    }));
    remove(client, "team-a", &key_name()).await.unwrap();
    let (what, body) = asked.lock().unwrap().pop().unwrap();
    assert_eq!(what, format!("DELETE {path}"));
    assert_eq!(body["preconditions"], json!({ "uid": "u-1" }));
}

#[tokio::test]
async fn revoke_deletes_only_api_keys_and_suggests_similar_names() {
    let listed = json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {},
        "items": [metadata("skillet-key-ic", "true"), metadata("other", "true")] });
    let (client, asked) = server(json!({
        format!("GET {SECRETS}/skillet-key-ci"): metadata("skillet-key-ci", "false"),
        format!("GET {SECRETS}"): listed,
    }));
    let failure = remove(client, "team-a", &key_name()).await.unwrap_err();
    assert!(matches!(&failure, CliError::NoKey { suggestions, .. } if suggestions == &["ic"]), "{failure:?}");
    assert!(words(&asked).iter().all(|what| what.starts_with("GET ")));
}

//! Requests of `key` to the cluster, against a small API server with a fixed response for each method and path.

use serde_json::{Value, json};

use super::*;
use crate::testing::{refusal, server, targets};

const ACCOUNT: &str = "GET /api/v1/namespaces/team-a/serviceaccounts/agent";
const KEYS: &str = "/apis/skillet.dev/v1alpha1/namespaces/team-a/apikeys";

fn object(name: &str) -> Value {
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "ApiKey", "metadata": { "name": name },
        "spec": { "hash": "0".repeat(64) } })
}

fn key_name() -> KeyName {
    "ci".parse().unwrap()
}

#[tokio::test]
async fn create_sends_only_the_hash_of_the_printed_key() {
    let account = json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {} });
    let (ClusterClient { client, .. }, requests) =
        server(json!({ ACCOUNT: account, format!("POST {KEYS}"): object("ci") }));
    let key = make(client, "team-a", &key_name(), "agent", None).await.unwrap();
    let sent = requests.lock().unwrap().pop().unwrap().body;
    let wanted = api_key(&key_name(), "agent", None, key.hash());
    assert_eq!(sent, serde_json::to_value(wanted).unwrap());
    assert!(KeyText::parse(key.text()).is_some());
}

#[tokio::test]
async fn create_refuses_a_missing_service_account() {
    let (ClusterClient { client, .. }, requests) = server(json!({}));
    let error = make(client, "team-a", &key_name(), "agent", None).await.err().unwrap();
    assert_eq!(error.to_string(), "namespace team-a has no service account agent");
    assert_eq!(targets(&requests), [ACCOUNT]);
}

#[tokio::test]
async fn create_needs_no_right_to_read_service_accounts_and_refuses_a_taken_name() {
    let taken = refusal(409, "apikeys.skillet.dev \"ci\" already exists");
    let (ClusterClient { client, .. }, _) =
        server(json!({ ACCOUNT: refusal(403, "no"), format!("POST {KEYS}"): taken }));
    let error = make(client, "team-a", &key_name(), "agent", None).await.err().unwrap();
    assert_eq!(error.to_string(), "namespace team-a has an API key ci already");
    assert_eq!(error.exit(), Exit::Refused);
}

#[tokio::test]
async fn delete_deletes_the_object_of_that_name() {
    let done = json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" });
    let (ClusterClient { client, .. }, requests) = server(json!({ format!("DELETE {KEYS}/ci"): done }));
    remove(client, "team-a", &key_name()).await.unwrap();
    assert_eq!(targets(&requests), [format!("DELETE {KEYS}/ci")]);
}

#[tokio::test]
async fn delete_of_an_unknown_name_suggests_similar_names() {
    let listed = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "ApiKeyList", "metadata": {},
        "items": [object("ic"), object("other")] });
    let (ClusterClient { client, .. }, _) = server(json!({ format!("GET {KEYS}"): listed }));
    let error = remove(client, "team-a", &key_name()).await.unwrap_err();
    assert!(matches!(&error, CliError::NoKey { suggestions, .. } if suggestions == &["ic"]), "{error:?}");
}

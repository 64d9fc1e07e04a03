//! The API server's rules for an ApiKey, whose hash never changes.

use kube::CustomResourceExt as _;
use serde_json::{Value, json};
use skillet_api::ApiKey;

use crate::{
    cases::{Case, assert_complete, breaks, long, with},
    requests::{create, keep, patch},
    server::{namespace, rules_admin},
};

const IMMUTABLE: &str = "hash is immutable; create another ApiKey";

fn shortest() -> String {
    format!("{{hash: '{}'}}", "0".repeat(64))
}

fn cases() -> Vec<Case> {
    vec![
        breaks("spec.hash required", "hash: null"),
        breaks("spec.hash maxLength", format!("hash: {}", long(65))),
        breaks("spec.hash pattern", format!("hash: {}", "A".repeat(64))),
        breaks("spec.serviceAccountName maxLength", format!("serviceAccountName: {}", long(254))),
        breaks("spec.serviceAccountName pattern", "serviceAccountName: 'a:b'"),
        breaks("spec.expiresAt maxLength", format!("expiresAt: '2026-01-01T00:00:00.{}Z'", "0".repeat(20))),
    ]
}

fn object(at: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "ApiKey", "metadata": { "name": "k", "namespace": at }, "spec": spec })
}

#[test]
fn every_bound_of_a_key_has_a_case_that_breaks_it() {
    assert_complete(&ApiKey::crd(), &cases(), &[&format!("spec.hash rule: {IMMUTABLE}")]);
}

#[tokio::test]
async fn the_api_server_refuses_each_broken_bound_of_a_key_and_names_the_field() {
    let Some(client) = rules_admin().await else { return };
    for case in cases() {
        create(&client, &object("default", &case.spec(&shortest()))).await.assert_refused(&case);
    }
    let no_time = object("default", &with(&shortest(), "expiresAt: tomorrow"));
    create(&client, &no_time).await.assert_names("spec.expiresAt", "date-time");
}

#[tokio::test]
async fn a_key_acts_as_the_default_account_and_keeps_its_hash() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "keys").await;
    let kept = keep(&client, &object(&at, &with(&shortest(), "{}"))).await;
    assert_eq!(kept["spec"]["serviceAccountName"], "default");
    let other = json!({ "spec": { "hash": "1".repeat(64) } });
    patch(&client, &kept, &other).await.assert_names("spec.hash", IMMUTABLE);
    let end = json!({ "spec": { "expiresAt": "2030-01-01T00:00:00+01:00" } });
    patch(&client, &kept, &end).await.assert_accepted("an end");
}

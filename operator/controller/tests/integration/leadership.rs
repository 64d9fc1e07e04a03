//! Two processes that compete for a Lease on a real API server.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;
use skillet_kube::{Leadership, LeaseRef};
use tokio::time::timeout;

use crate::server::{namespace, rules_admin};

/// Longer than a Lease lasts without a renewal, shorter than a user waits.
const TAKEOVER: Duration = Duration::from_secs(5);
const HANDOVER: Duration = Duration::from_secs(1);

fn lease(namespace: &str, identity: &str) -> LeaseRef {
    LeaseRef { namespace: namespace.into(), name: "operator".into(), identity: identity.into() }
}

async fn holder(client: &Client, namespace: &str) -> String {
    let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
    api.get("operator").await.unwrap().spec.unwrap().holder_identity.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_kept_by_its_holder_and_taken_after_a_kill() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "lease-kept").await;
    let first = Leadership::acquire(client.clone(), &lease(&at, "first")).await;
    let second_lease = lease(&at, "second");
    let mut second = Box::pin(Leadership::acquire(client.clone(), &second_lease));
    assert!(timeout(TAKEOVER, &mut second).await.is_err(), "the holder renews");
    timeout(HANDOVER, first.confirm()).await.expect("a renewed Lease is certainly held");
    let term = first.term();
    // The end of a process without a release.
    drop(first);
    let second = timeout(TAKEOVER, second).await.expect("the Lease is taken");
    assert!(second.term() > term);
    assert_eq!(holder(&client, &at).await, "second");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_lease_is_taken_at_once() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "lease-released").await;
    let first = Leadership::acquire(client.clone(), &lease(&at, "first")).await;
    let second_lease = lease(&at, "second");
    let second = tokio::spawn({
        let client = client.clone();
        async move { Leadership::acquire(client, &second_lease).await }
    });
    first.release().await;
    // An unreleased Lease keeps its holder until its time is over.
    assert_ne!(holder(&client, &at).await, "first");
    let second = timeout(TAKEOVER, second).await.expect("the Lease is taken").unwrap();
    assert!(second.term() > first.term());
    // The first process does not take back what it has released.
    first.release().await;
    assert_eq!(holder(&client, &at).await, "second");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_learns_that_another_has_taken_its_lease() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "lease-taken").await;
    let first = Leadership::acquire(client.clone(), &lease(&at, "first")).await;
    let api: Api<Lease> = Api::namespaced(client.clone(), &at);
    let taken = json!({ "spec": { "holderIdentity": "second" } });
    api.patch("operator", &PatchParams::default(), &Patch::Merge(taken)).await.unwrap();
    assert_eq!(timeout(TAKEOVER, first.lost()).await.expect("the loss is seen"), "second");
    assert!(timeout(HANDOVER, first.confirm()).await.is_err(), "a lost Lease is never confirmed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_holder_takes_its_own_lease_at_once_with_a_new_term() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "lease-restarted").await;
    let first = Leadership::acquire(client.clone(), &lease(&at, "first")).await;
    let term = first.term();
    drop(first);
    let again = timeout(HANDOVER, Leadership::acquire(client.clone(), &lease(&at, "first"))).await;
    assert!(again.expect("the Lease is its own").term() > term);
}

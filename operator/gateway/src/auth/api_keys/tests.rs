//! Reading of ApiKeys: required fields, the ServiceAccount behind a key, and objects that give no access.

use kube::runtime::watcher::Event;
use serde_json::{Value, json};
use skillet_core::api_key::KeyText;
use skillet_kube::Unlisted;

use super::*;

pub(super) fn hash(byte: u8) -> KeyHash {
    KeyText::of_random([byte; 32]).hash()
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// The shortest ApiKey, with more fields of its spec.
pub(super) fn object(namespace: &str, name: &str, byte: u8, spec: &Value) -> Value {
    let mut object = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "ApiKey",
        "metadata": { "namespace": namespace, "name": name, "uid": format!("uid-{name}"), "generation": 1 },
        "spec": { "hash": hash(byte).to_string() } });
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

pub(super) fn api_key(object: Value) -> ApiKey {
    serde_json::from_value(object).unwrap()
}

fn with(spec: &Value) -> ApiKey {
    api_key(object("team-a", "ci", 1, spec))
}

fn plain(namespace: &str, name: &str, byte: u8) -> ApiKey {
    api_key(object(namespace, name, byte, &json!({})))
}

/// The same as the watch shows it.
fn raw(object: &Value) -> RawObject<ApiKey> {
    serde_json::from_str(&object.to_string()).unwrap()
}

fn user(table: &KeyTable, byte: u8) -> Option<String> {
    table.caller(hash(byte), now()).ok().map(|caller| caller.user.to_string())
}

#[test]
fn a_key_stands_for_the_default_service_account_of_its_namespace() {
    let mut table = KeyTable::default();
    table.put(&plain("team-a", "ci", 1)).unwrap();
    let caller = table.caller(hash(1), now()).unwrap();
    assert_eq!(&*caller.namespace, "team-a");
    assert_eq!(&*caller.user, "system:serviceaccount:team-a:default");
    let groups = ["system:serviceaccounts", "system:serviceaccounts:team-a", "system:authenticated"];
    assert_eq!(*caller.groups, groups.map(ToOwned::to_owned));
    assert_eq!(user(&table, 2), None);
}

#[test]
fn a_key_stands_for_the_service_account_that_it_names() {
    let mut table = KeyTable::default();
    table.put(&with(&json!({ "serviceAccountName": "agent.v2" }))).unwrap();
    assert_eq!(user(&table, 1).as_deref(), Some("system:serviceaccount:team-a:agent.v2"));
}

#[test]
fn a_key_counts_until_its_end() {
    for (end, is_known) in [
        ("2026-01-01T00:00:01Z", true),
        ("2026-01-01T00:00:00Z", false),
        ("2026-01-01T00:30:00+01:00", false),
        ("2025-01-01T00:00:00Z", false),
    ] {
        let mut table = KeyTable::default();
        table.put(&with(&json!({ "expiresAt": end }))).unwrap();
        let expired = AuthError::Expired { key: "team-a/ci".into(), at: end.parse().unwrap() };
        let refused = table.caller(hash(1), now()).err();
        assert_eq!(refused, (!is_known).then_some(expired), "{end}");
    }
}

#[test]
fn what_cannot_be_read_gives_no_access() {
    let check = |spec: &Value, problem: KeyProblem| {
        let mut table = KeyTable::default();
        table.put(&plain("team-a", "ci", 1)).unwrap();
        assert_eq!(table.put(&with(spec)), Err(problem), "{spec}");
        assert_eq!(user(&table, 1), None);
    };
    for account in ["", "a:b", "A", "a/b", &"a".repeat(254)] {
        check(&json!({ "serviceAccountName": account }), KeyProblem::ServiceAccount);
    }
    for hash in ["", "AAAA", &hash(1).to_string().to_uppercase()] {
        check(&json!({ "hash": hash }), KeyProblem::Hash);
    }
}

#[test]
fn of_two_objects_with_one_key_neither_counts_until_one_is_gone() {
    let mut table = KeyTable::default();
    let (first, second) = (plain("team-a", "ci", 1), plain("team-b", "ci", 1));
    table.put(&first).unwrap();
    assert_eq!(table.put(&second), Err(KeyProblem::Shared));
    assert_eq!(table.caller(hash(1), now()), Err(AuthError::SharedHash));
    table.remove(&name_of(&first).unwrap());
    assert_eq!(user(&table, 1).as_deref(), Some("system:serviceaccount:team-b:default"));
}

#[test]
fn an_object_that_is_replaced_loses_the_key_it_held() {
    let mut table = KeyTable::default();
    table.put(&plain("team-a", "ci", 1)).unwrap();
    table.put(&plain("team-a", "ci", 2)).unwrap();
    assert_eq!(user(&table, 1), None);
    assert!(user(&table, 2).is_some());
    table.put(&with(&json!({ "hash": "" }))).unwrap_err();
    assert_eq!(user(&table, 2), None);
    assert!(table.holders.is_empty());
}

#[test]
fn an_object_that_is_being_deleted_is_no_key() {
    let mut table = KeyTable::default();
    table.put(&plain("team-a", "ci", 1)).unwrap();
    let mut terminating = object("team-a", "ci", 1, &json!({}));
    terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    table.put(&api_key(terminating)).unwrap();
    assert_eq!(user(&table, 1), None);
}

#[test]
fn a_complete_list_removes_the_keys_that_it_misses() {
    let (keys, mut unlisted) = (ApiKeys::default(), Unlisted::default());
    let known = |byte| keys.caller(hash(byte), now()).is_ok();
    let mut handle = |event| unlisted.handle(event, &mut &keys);
    let (one, two) = (object("a", "x", 1, &json!({})), object("a", "y", 2, &json!({})));
    handle(Event::Init);
    handle(Event::InitApply(raw(&one)));
    let early = keys.caller(hash(1), now());
    assert!(matches!(early, Err(AuthError::Unreachable(_))), "{early:?}");
    handle(Event::InitDone);
    assert!(keys.is_synced() && known(1));
    handle(Event::Init);
    handle(Event::InitApply(raw(&two)));
    assert!(known(1), "the list is not complete yet");
    handle(Event::InitDone);
    assert!(!known(1) && known(2));
    handle(Event::Apply(raw(&one)));
    handle(Event::Delete(raw(&two)));
    assert!(known(1) && !known(2));
    assert_eq!(keys.caller(hash(2), now()), Err(AuthError::Revoked { key: "a/y".into() }));
    assert_eq!(keys.caller(hash(3), now()), Err(AuthError::Unknown));
    handle(Event::Apply(raw(&object("a", "x", 1, &json!({ "expiresAt": "tomorrow" })))));
    assert!(!known(1), "what cannot be read gives no access");
}

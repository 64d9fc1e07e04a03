//! Reading of key Secrets: required fields, the ServiceAccount behind a key, and Secrets that are no key.

use serde_json::{Value, json};
use skillet_core::api_key::ApiKey;

use super::*;

fn hash(byte: u8) -> KeyHash {
    ApiKey::of_random([byte; 32]).hash()
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// The shortest Secret that is a key, with something else in it.
fn secret(namespace: &str, name: &str, byte: u8, change: impl FnOnce(&mut Value)) -> Secret {
    let mut secret =
        json!({ "metadata": { "name": name, "namespace": namespace, "annotations": {} }, "data": {} });
    let mut typed: Secret = serde_json::from_value(secret.clone()).unwrap();
    let digits = k8s_openapi::ByteString(hash(byte).to_string().into_bytes());
    typed.data = Some([("sha256".to_owned(), digits)].into());
    secret = serde_json::to_value(typed).unwrap();
    secret["metadata"]["annotations"] = json!({});
    change(&mut secret);
    serde_json::from_value(secret).unwrap()
}

fn annotated(name: &str, value: &str) -> Secret {
    secret("team-a", "skillet-key-ci", 1, |secret| secret["metadata"]["annotations"][name] = json!(value))
}

fn plain(namespace: &str, name: &str, byte: u8) -> Secret {
    secret(namespace, name, byte, |_| {})
}

/// The same as the watch shows it.
fn unread(namespace: &str, name: &str, byte: u8) -> RawObject<Secret> {
    serde_json::from_str(&serde_json::to_string(&plain(namespace, name, byte)).unwrap()).unwrap()
}

fn user(table: &KeyTable, byte: u8) -> Option<String> {
    table.caller(hash(byte), now()).map(|caller| caller.user.to_string())
}

#[test]
fn a_key_stands_for_the_default_service_account_of_its_namespace() {
    let mut table = KeyTable::default();
    table.put(&plain("team-a", "skillet-key-ci", 1)).unwrap();
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
    table.put(&annotated("skillet.dev/service-account", "agent.v2")).unwrap();
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
        table.put(&annotated("skillet.dev/expires-at", end)).unwrap();
        assert_eq!(user(&table, 1).is_some(), is_known, "{end}");
    }
}

#[test]
fn what_cannot_be_read_gives_no_access() {
    let check = |secret: &Secret, problem: KeyProblem| {
        let mut table = KeyTable::default();
        assert_eq!(table.put(secret), Err(problem), "{secret:?}");
        assert_eq!(user(&table, 1), None);
    };
    check(&annotated("skillet.dev/expires-at", "tomorrow"), KeyProblem::ExpiresAt);
    check(&annotated("skillet.dev/expires-at", ""), KeyProblem::ExpiresAt);
    for account in ["", "a:b", "A", "a/b", &"a".repeat(254)] {
        check(&annotated("skillet.dev/service-account", account), KeyProblem::ServiceAccount);
    }
    check(&plain("team-a", "my-key", 1), KeyProblem::Name);
    for data in [json!(null), json!({}), json!({ "sha256": "" }), json!({ "sha256": "AAAA" })] {
        check(&secret("team-a", "skillet-key-ci", 1, |secret| secret["data"] = data), KeyProblem::Hash);
    }
}

#[test]
fn of_two_secrets_with_one_key_neither_counts_until_one_is_gone() {
    let mut table = KeyTable::default();
    let (first, second) = (plain("team-a", "skillet-key-ci", 1), plain("team-b", "skillet-key-ci", 1));
    table.put(&first).unwrap();
    assert_eq!(table.put(&second), Err(KeyProblem::Shared));
    assert_eq!(user(&table, 1), None);
    table.remove(&name_of(&first));
    assert_eq!(user(&table, 1).as_deref(), Some("system:serviceaccount:team-b:default"));
}

#[test]
fn a_secret_that_is_changed_loses_the_key_it_held() {
    let mut table = KeyTable::default();
    table.put(&plain("team-a", "skillet-key-ci", 1)).unwrap();
    table.put(&plain("team-a", "skillet-key-ci", 2)).unwrap();
    assert_eq!(user(&table, 1), None);
    assert!(user(&table, 2).is_some());
    table.put(&secret("team-a", "skillet-key-ci", 2, |secret| secret["data"] = json!({}))).unwrap_err();
    assert_eq!(user(&table, 2), None);
    assert!(table.holders.is_empty());
}

#[test]
fn a_secret_that_is_being_deleted_is_no_key() {
    let mut table = KeyTable::default();
    table.put(&plain("team-a", "skillet-key-ci", 1)).unwrap();
    let going = secret("team-a", "skillet-key-ci", 1, |secret| {
        secret["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    table.put(&going).unwrap();
    assert_eq!(user(&table, 1), None);
}

#[test]
fn a_list_takes_the_place_of_what_was_known_when_it_is_complete() {
    use watcher::Event;
    let (keys, mut listed) = (ApiKeys::default(), KeyTable::default());
    let known = |byte| keys.caller(hash(byte), now()).is_ok();
    for event in [Event::Init, Event::InitApply(unread("a", "skillet-key-x", 1))] {
        keys.handle(event, &mut listed);
    }
    let early = keys.caller(hash(1), now());
    assert!(matches!(early, Err(AuthError::Unreachable(_))), "{early:?}");
    keys.handle(Event::InitDone, &mut listed);
    assert!(keys.is_synced() && known(1));
    for event in [Event::Init, Event::InitApply(unread("a", "skillet-key-y", 2))] {
        keys.handle(event, &mut listed);
    }
    assert!(known(1) && !known(2));
    keys.handle(Event::InitDone, &mut listed);
    assert!(!known(1) && known(2));
    keys.handle(Event::Apply(unread("a", "skillet-key-x", 1)), &mut listed);
    keys.handle(Event::Delete(unread("a", "skillet-key-y", 2)), &mut listed);
    assert!(known(1) && !known(2));
    assert_eq!(keys.caller(hash(2), now()), Err(AuthError::Unknown));
    let broken = r#"{"metadata": {"namespace": "a", "name": "skillet-key-x"}, "data": 7}"#;
    keys.handle(Event::Apply(serde_json::from_str(broken).unwrap()), &mut listed);
    assert!(!known(1), "what cannot be read gives no access");
}

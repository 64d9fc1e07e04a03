//! Status of ApiKeys: how exact the last use is, which condition a key has, and what is written how often.

use skillet_kube::{
    Mirror as _, RawObject,
    testing::{FakeApiServer, path},
};

use super::*;
use crate::auth::{
    AuthError,
    api_keys::tests::{api_key, hash, object},
};

fn at(second: i64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    start + SignedDuration::from_secs(second)
}

/// A table with one key, whose status is `status`.
fn table(status: &Value) -> KeyTable {
    let mut table = KeyTable::default();
    put(&mut table, "ci", 1, status);
    table
}

fn put(table: &mut KeyTable, name: &str, byte: u8, status: &Value) {
    let mut key = object("team-a", name, byte, &json!({ "expiresAt": "2026-01-01T01:00:00Z" }));
    key["status"] = status.clone();
    // A hash that is shared is reported in the condition.
    table.put(&api_key(key)).ok();
}

fn accepted() -> Value {
    let condition = json!({ "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z" });
    json!({ "conditions": [condition] })
}

/// The fields of the only patch.
fn written(table: &KeyTable, second: i64) -> Option<Value> {
    let mut patches = table.status_patches(at(second));
    assert!(patches.len() <= 1, "{patches:?}");
    patches.pop().map(|patch| patch.patch["status"].clone())
}

#[test]
fn the_first_use_is_written_and_the_next_only_five_minutes_later() {
    let mut table = table(&accepted());
    assert_eq!(written(&table, 0), None);
    table.caller(hash(1), at(10)).unwrap();
    assert_eq!(written(&table, 20), Some(json!({ "lastUsedAt": "2026-01-01T00:00:10Z" })));
    let mut status = accepted();
    status["lastUsedAt"] = json!("2026-01-01T00:00:10Z");
    put(&mut table, "ci", 1, &status);
    table.caller(hash(1), at(309)).unwrap();
    assert_eq!(written(&table, 310), None);
    table.caller(hash(1), at(310)).unwrap();
    assert_eq!(written(&table, 310), Some(json!({ "lastUsedAt": "2026-01-01T00:05:10Z" })));
}

#[test]
fn a_refused_request_is_no_use() {
    let table = table(&accepted());
    assert!(matches!(table.caller(hash(1), at(3600)), Err(AuthError::Expired { .. })));
    assert_eq!(table.caller(hash(2), at(0)), Err(AuthError::Unknown));
    assert_eq!(written(&table, 10), None);
}

#[test]
fn a_new_key_is_reported_as_ready_and_an_ended_one_as_expired() {
    let table = table(&json!({}));
    let conditions = |second| written(&table, second).unwrap()["conditions"].clone();
    let condition = |second| conditions(second)[0].clone();
    assert_eq!([&condition(0)["status"], &condition(0)["reason"]], ["True", "Ready"]);
    assert_eq!(condition(0)["observedGeneration"], 1);
    assert_eq!([&condition(3600)["status"], &condition(3600)["reason"]], ["False", "KeyExpired"]);
    let stalled = &conditions(3600)[1];
    assert_eq!([&stalled["type"], &stalled["status"], &stalled["reason"]], ["Stalled", "True", "KeyExpired"]);
    assert_eq!(conditions(0)[1], Value::Null);
}

#[test]
fn a_key_that_gets_a_later_end_is_no_longer_stalled() {
    let mut status = accepted();
    let mut stalled = status["conditions"][0].clone();
    (stalled["type"], stalled["reason"]) = (json!("Stalled"), json!("KeyExpired"));
    status["conditions"].as_array_mut().unwrap().push(stalled);
    let conditions = written(&table(&status), 0).unwrap()["conditions"].clone();
    assert_eq!(conditions.as_array().unwrap().len(), 1, "{conditions}");
}

#[test]
fn both_holders_of_a_shared_hash_are_reported_until_one_is_gone() {
    let mut table = table(&accepted());
    put(&mut table, "copy", 1, &accepted());
    let patches = table.status_patches(at(0));
    assert_eq!(patches.len(), 2);
    for StatusPatch { name, patch } in patches {
        assert_eq!(patch["metadata"]["uid"], format!("uid-{}", name.1));
        let condition = &patch["status"]["conditions"][0];
        assert_eq!([&condition["status"], &condition["reason"]], ["False", "HashShared"]);
    }
    table.remove(&("team-a".into(), "copy".into()));
    assert_eq!(table.status_patches(at(0)), []);
}

#[tokio::test]
async fn a_status_is_written_to_the_object_and_not_again() {
    let (api, keys) = (FakeApiServer::default(), ApiKeys::default());
    let here = path("team-a", "apikeys", "ci");
    api.put("apikeys", object("team-a", "ci", 1, &json!({})));
    let watch = || {
        let shown = api.object(&here).unwrap().to_string();
        (&keys).apply(serde_json::from_str::<RawObject<ApiKey>>(&shown).unwrap());
    };
    watch();
    read(&keys.table).caller(hash(1), at(10)).unwrap();
    // Another key of the table, whose object is gone, stops nothing.
    (&keys).apply(serde_json::from_str(&object("team-a", "gone", 2, &json!({})).to_string()).unwrap());
    keys.write_statuses(&api.client(), at(20)).await;
    let status = api.object(&here).unwrap()["status"].clone();
    assert_eq!(status["lastUsedAt"], "2026-01-01T00:00:10Z");
    assert_eq!(status["conditions"][0]["reason"], "Ready");
    watch();
    keys.write_statuses(&api.client(), at(80)).await;
    assert_eq!(api.count(&format!("PATCH {here}/status")), 1);
}

#[tokio::test]
async fn an_api_server_that_fails_ends_the_round_and_the_next_repeats_it() {
    let (api, keys) = (FakeApiServer::default(), ApiKeys::default());
    for (name, byte) in [("a", 1), ("b", 2)] {
        let key = object("team-a", name, byte, &json!({}));
        api.put("apikeys", key.clone());
        (&keys).apply(serde_json::from_str::<RawObject<ApiKey>>(&key.to_string()).unwrap());
    }
    api.fail_next("PATCH", 500, "no");
    keys.write_statuses(&api.client(), at(0)).await;
    assert_eq!(api.count("PATCH"), 1);
    keys.write_statuses(&api.client(), at(60)).await;
    assert_eq!(api.count("PATCH"), 3);
}

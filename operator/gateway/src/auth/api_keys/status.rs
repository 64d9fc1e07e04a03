//! The status of ApiKeys, written off the request path: last use, and whether the gateway accepts the key.
//!
//! Best effort. Every replica writes, and each reads from the watch what the others have written.

use std::{sync::atomic::Ordering, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use skillet_api::{
    ApiKey, Reason, names,
    reason::{READY, STALLED},
};
use skillet_kube::{Conditions, find_condition, read};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::warn;

use super::{ApiKeys, KeyTable, ObjectName, StoredKey};

/// Interval between two looks for statuses that have changed.
const INTERVAL: Duration = Duration::from_secs(60);
/// Least time between two times of last use that the cluster gets of one key.
const LAST_USED_STEP: SignedDuration = SignedDuration::from_mins(5);
/// The longest time of one patch.
const LIMIT: Duration = Duration::from_secs(10);

/// The changed part of one ApiKey's status, as a merge patch.
#[derive(Debug, PartialEq)]
pub(super) struct StatusPatch {
    name: ObjectName,
    patch: Value,
}

impl KeyTable {
    /// Returns the statuses that the cluster does not have yet.
    pub(super) fn status_patches(&self, now: Timestamp) -> Vec<StatusPatch> {
        let patch = |(name, key): (&ObjectName, &StoredKey)| {
            let status = self.changed_status(key, now)?;
            let patch = json!({ "metadata": { "uid": key.uid }, "status": status });
            Some(StatusPatch { name: name.clone(), patch })
        };
        self.keys.iter().filter_map(patch).collect()
    }

    fn changed_status(&self, key: &StoredKey, now: Timestamp) -> Option<Value> {
        let mut status = json!({});
        if let Some(used) = unwritten_use(key) {
            status["lastUsedAt"] = json!(Time(used));
        }
        let wanted = self.conditions(key, now);
        let is_written = [READY, STALLED].into_iter().all(|type_| {
            let of = |conditions| {
                let found: Option<&Condition> = find_condition(conditions, type_);
                found.map(|it| (it.status.clone(), it.reason.clone(), it.observed_generation))
            };
            of(&key.status.conditions) == of(&wanted)
        });
        if !is_written {
            status["conditions"] = json!(wanted);
        }
        (status != json!({})).then_some(status)
    }

    /// `Ready`, and `Stalled` for a key that gives no access until somebody changes it.
    fn conditions(&self, key: &StoredKey, now: Timestamp) -> Vec<Condition> {
        let (status, reason, message) = if self.is_shared(key.hash) {
            (
                "False",
                Reason::HashShared,
                "another ApiKey has the same spec.hash, so neither gives access; delete both and make a new key",
            )
        } else if key.is_expired(now) {
            ("False", Reason::KeyExpired, "the key is past spec.expiresAt")
        } else {
            ("True", Reason::Ready, "the gateway accepts the key")
        };
        let conditions = Conditions { old: &key.status.conditions, generation: key.generation, now };
        let ready = conditions.build(READY, status, reason.as_str(), message);
        let stalled =
            (status == "False").then(|| conditions.build(STALLED, "True", reason.as_str(), message));
        [Some(ready), stalled].into_iter().flatten().collect()
    }
}

/// Returns the time of the last use, if it is much later than the one that the cluster has.
fn unwritten_use(key: &StoredKey) -> Option<Timestamp> {
    let used = Timestamp::from_second(key.last_used.load(Ordering::Relaxed)).ok()?;
    let written = key.status.last_used_at.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    (used.duration_since(written) >= LAST_USED_STEP).then_some(used)
}

impl ApiKeys {
    /// Writes changed statuses again and again, as long as it is polled.
    pub(in crate::auth) async fn report(&self, client: Client, now: impl Fn() -> Timestamp) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.write_statuses(&client, now()).await;
        }
    }

    /// Writes one status after another, so that many keys take little of the API server. The next look repeats what failed.
    async fn write_statuses(&self, client: &Client, now: Timestamp) {
        let patches = read(&self.table).status_patches(now);
        for StatusPatch { name: (namespace, name), patch } in patches {
            let api = Api::<ApiKey>::namespaced(client.clone(), &namespace);
            let params = PatchParams {
                field_manager: Some(names::GATEWAY_FIELD_MANAGER.into()),
                ..PatchParams::default()
            };
            match timeout(LIMIT, api.patch_status(&name, &params, &Patch::Merge(&patch))).await {
                Ok(Ok(_)) => {}
                // The object was deleted, or made again under its name.
                Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409 | 422) => {}
                Ok(Err(error)) => {
                    warn!(%namespace, %name, %error, "Status of ApiKey could not be written");
                    return;
                }
                Err(_) => {
                    warn!(%namespace, %name, limit = ?LIMIT, "Status of ApiKey was not written in time");
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;

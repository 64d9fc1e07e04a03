//! API keys as the ApiKeys of all namespaces hold them: by hash, with service account, end and last use.
//!
//! The table is filled by a watch, so that a key counts from the moment its object is made to the moment it is deleted.

mod status;

use std::{
    collections::{HashMap, HashSet},
    sync::{
        RwLock,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use jiff::Timestamp;
use kube::{Api, Client, ResourceExt, runtime::watcher::Config};
use skillet_api::{ApiKey, ApiKeyStatus};
use skillet_core::api_key::KeyHash;
use skillet_kube::{Mirror, RawObject, mirror, read, watch, write};
use thiserror::Error;
use tracing::warn;

use super::{AuthError, Caller, reviews::service_account};
use crate::request_id;

/// A defect of an ApiKey, which then gives nobody access. The schema of the kind refuses all but the last.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum KeyProblem {
    #[error("it cannot be read: {0}")]
    Object(String),
    #[error("spec.hash is not 64 lower-case hexadecimal digits")]
    Hash,
    #[error("spec.serviceAccountName is no name of a service account")]
    ServiceAccount,
    #[error("another ApiKey has the same hash, and neither counts")]
    Shared,
}

/// Namespace and name.
type ObjectName = (String, String);

struct StoredKey {
    hash: KeyHash,
    caller: Caller,
    expires: Option<Timestamp>,
    /// Seconds since 1970 of the last request with the key; 0 if there was none.
    last_used: AtomicI64,
    uid: Option<String>,
    generation: Option<i64>,
    /// The status that the cluster has.
    status: ApiKeyStatus,
}

impl StoredKey {
    fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }
}

/// Every key that an ApiKey holds.
#[derive(Default)]
pub(super) struct KeyTable {
    keys: HashMap<ObjectName, StoredKey>,
    holders: HashMap<KeyHash, HashSet<ObjectName>>,
    /// The objects that last held a key that is gone.
    revoked: HashMap<KeyHash, ObjectName>,
}

/// Most keys that are remembered after they are gone.
const MAX_REVOKED: usize = 4096;

impl KeyTable {
    /// Takes an ApiKey in as it is now; what it said before counts no more.
    pub(super) fn put(&mut self, object: &ApiKey) -> Result<(), KeyProblem> {
        let Some(name) = name_of(object) else { return Ok(()) };
        let before = self.revoke(&name);
        // A finalizer may keep it for long, but somebody has revoked it.
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let mut key = stored_key(object, &name.0)?;
        if let Some(before) = before.filter(|before| before.hash == key.hash) {
            key.last_used = before.last_used;
        }
        let holders = self.holders.entry(key.hash).or_default();
        holders.insert(name.clone());
        let is_shared = holders.len() > 1;
        self.revoked.remove(&key.hash);
        self.keys.insert(name, key);
        if is_shared { Err(KeyProblem::Shared) } else { Ok(()) }
    }

    /// Removes a key and remembers its name.
    fn revoke(&mut self, name: &ObjectName) -> Option<StoredKey> {
        let key = self.remove(name)?;
        if self.revoked.len() >= MAX_REVOKED {
            self.revoked.clear();
        }
        self.revoked.insert(key.hash, name.clone());
        Some(key)
    }

    fn remove(&mut self, name: &ObjectName) -> Option<StoredKey> {
        let key = self.keys.remove(name)?;
        if let Some(holders) = self.holders.get_mut(&key.hash) {
            holders.remove(name);
            if holders.is_empty() {
                self.holders.remove(&key.hash);
            }
        }
        Some(key)
    }

    /// Returns the caller of a key and notes its use, unless the key has ended or two ApiKeys claim it. An error may name the
    /// ApiKey: the client has proven that it holds the key.
    pub(super) fn caller(&self, hash: KeyHash, now: Timestamp) -> Result<Caller, AuthError> {
        let Some(holders) = self.holders.get(&hash) else {
            let revoked = self.revoked.get(&hash).map(|name| AuthError::Revoked { key: record(name) });
            return Err(revoked.unwrap_or(AuthError::Unknown));
        };
        let mut holders = holders.iter();
        let (Some(holder), None) = (holders.next(), holders.next()) else {
            return Err(AuthError::SharedHash);
        };
        let key = self.keys.get(holder).ok_or(AuthError::Unknown)?;
        let name = record(holder);
        if let Some(at) = key.expires
            && key.is_expired(now)
        {
            return Err(AuthError::Expired { key: name, at });
        }
        key.last_used.fetch_max(now.as_second(), Ordering::Relaxed);
        Ok(key.caller.clone())
    }

    fn is_shared(&self, hash: KeyHash) -> bool {
        self.holders.get(&hash).is_some_and(|holders| holders.len() > 1)
    }
}

/// Returns `<namespace>/<name>` of an ApiKey whose holder sent a request, and notes it for the log.
fn record((namespace, name): &ObjectName) -> String {
    let key = format!("{namespace}/{name}");
    request_id::record_key(&key);
    key
}

fn name_of(object: &impl ResourceExt) -> Option<ObjectName> {
    Some((object.namespace()?, object.name_any()))
}

/// Refuses a key of which a part cannot be read: a limit must not be lost by a slip in writing it.
fn stored_key(object: &ApiKey, namespace: &str) -> Result<StoredKey, KeyProblem> {
    let spec = &object.spec;
    let hash = KeyHash::parse(&spec.hash).ok_or(KeyProblem::Hash)?;
    if !is_account_name(&spec.service_account_name) {
        return Err(KeyProblem::ServiceAccount);
    }
    Ok(StoredKey {
        hash,
        caller: service_account(namespace, &spec.service_account_name),
        expires: spec.expires_at.as_ref().map(|end| end.0),
        last_used: AtomicI64::new(0),
        uid: object.uid(),
        generation: object.metadata.generation,
        status: object.status.clone().unwrap_or_default(),
    })
}

/// Part of a user's name, which it must not be able to change the rest of.
fn is_account_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    (1..=253).contains(&text.len()) && text.chars().all(is_part)
}

/// The table, and whether it has been filled.
#[derive(Default)]
pub(super) struct ApiKeys {
    table: RwLock<KeyTable>,
    is_synced: AtomicBool,
}

impl ApiKeys {
    pub(super) fn is_synced(&self) -> bool {
        self.is_synced.load(Ordering::Acquire)
    }

    pub(super) fn caller(&self, hash: KeyHash, now: Timestamp) -> Result<Caller, AuthError> {
        if !self.is_synced() {
            return Err(AuthError::Unreachable("the API keys have not been read yet".into()));
        }
        read(&self.table).caller(hash, now)
    }

    /// Follows the ApiKeys as long as it is polled.
    pub(super) async fn follow(&self, client: Client) {
        let api = Api::<RawObject<ApiKey>>::all(client);
        mirror(watch(api, Config::default()), &mut &*self).await;
    }
}

impl Mirror for &ApiKeys {
    type Object = RawObject<ApiKey>;
    type Key = ObjectName;

    fn key(&self, object: &Self::Object) -> Option<ObjectName> {
        name_of(object)
    }

    fn keys(&self) -> impl IntoIterator<Item = ObjectName> {
        read(&self.table).keys.keys().cloned().collect::<Vec<_>>()
    }

    fn apply(&mut self, object: Self::Object) {
        let Some(name) = name_of(&object) else { return };
        let mut table = write(&self.table);
        let put = match object.parse() {
            Ok(key) => table.put(&key),
            Err(error) => {
                // What it said before counts no more.
                table.revoke(&name);
                Err(KeyProblem::Object(error.to_string()))
            }
        };
        if let Err(problem) = put {
            let (namespace, name) = name;
            warn!(%namespace, %name, %problem, "ApiKey gives no access");
        }
    }

    fn remove(&mut self, name: ObjectName) {
        write(&self.table).revoke(&name);
    }

    fn finish_list(&mut self) {
        self.is_synced.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;

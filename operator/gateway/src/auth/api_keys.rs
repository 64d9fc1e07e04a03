//! API keys as the labelled Secrets of all namespaces hold them: by hash, whom each stands for and until when.
//!
//! The table is filled by a watch, so that a key counts from the moment its Secret is made to the moment it is deleted.

use std::{
    collections::{HashMap, HashSet},
    pin::pin,
    sync::{
        RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt, runtime::watcher};
use skillet_api::names;
use skillet_core::api_key::KeyHash;
use skillet_kube::{RawObject, read, watch, write};
use thiserror::Error;
use tracing::warn;

use super::{AuthError, Caller, reviews::service_account};

/// A defect of a labeled Secret, which then gives nobody access.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum KeyProblem {
    #[error("it cannot be read")]
    Secret,
    #[error("its name does not begin with {}", names::API_KEY_SECRET_PREFIX)]
    Name,
    #[error("its entry {} is not 64 lower-case hexadecimal digits", names::API_KEY_HASH)]
    Hash,
    #[error("its annotation {} is no name of a service account", names::ANNOTATION_SERVICE_ACCOUNT)]
    ServiceAccount,
    #[error("its annotation {} is no time of RFC 3339", names::ANNOTATION_EXPIRES_AT)]
    ExpiresAt,
    #[error("another Secret holds the same key, and neither counts")]
    Shared,
}

/// Namespace and name.
type SecretName = (String, String);

#[derive(Debug, PartialEq, Eq)]
struct StoredKey {
    hash: KeyHash,
    caller: Caller,
    expires: Option<Timestamp>,
}

/// Every key that a Secret holds.
#[derive(Default)]
pub(super) struct KeyTable {
    keys: HashMap<SecretName, StoredKey>,
    holders: HashMap<KeyHash, HashSet<SecretName>>,
}

impl KeyTable {
    /// Takes a Secret in as it is now; what it said before counts no more.
    pub(super) fn put(&mut self, secret: &Secret) -> Result<(), KeyProblem> {
        self.remove(&name_of(secret));
        // A finalizer may keep it for long, but somebody has revoked it.
        if secret.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let key = stored_key(secret)?;
        let holders = self.holders.entry(key.hash).or_default();
        holders.insert(name_of(secret));
        let is_shared = holders.len() > 1;
        self.keys.insert(name_of(secret), key);
        if is_shared { Err(KeyProblem::Shared) } else { Ok(()) }
    }

    pub(super) fn remove(&mut self, name: &SecretName) {
        let Some(key) = self.keys.remove(name) else { return };
        if let Some(holders) = self.holders.get_mut(&key.hash) {
            holders.remove(name);
            if holders.is_empty() {
                self.holders.remove(&key.hash);
            }
        }
    }

    /// Whom a key stands for, unless it has ended or two Secrets claim it.
    pub(super) fn caller(&self, hash: KeyHash, now: Timestamp) -> Option<Caller> {
        let mut holders = self.holders.get(&hash)?.iter();
        let (Some(holder), None) = (holders.next(), holders.next()) else { return None };
        let key = self.keys.get(holder)?;
        key.expires.is_none_or(|end| now < end).then(|| key.caller.clone())
    }
}

fn name_of(secret: &impl ResourceExt) -> SecretName {
    (secret.namespace().unwrap_or_default(), secret.name_any())
}

/// Anything that cannot be read makes the key count for nothing: a limit must not be lost by a slip in writing it.
fn stored_key(secret: &Secret) -> Result<StoredKey, KeyProblem> {
    // `kubectl skill key list` shows what has this name: nothing else may give access.
    if !secret.name_any().starts_with(names::API_KEY_SECRET_PREFIX) {
        return Err(KeyProblem::Name);
    }
    let text = secret.data.as_ref().and_then(|data| data.get(names::API_KEY_HASH));
    let text = text.and_then(|bytes| std::str::from_utf8(&bytes.0).ok());
    let hash = text.and_then(KeyHash::parse).ok_or(KeyProblem::Hash)?;
    let annotation = |name: &str| secret.annotations().get(name).map(String::as_str);
    let account = annotation(names::ANNOTATION_SERVICE_ACCOUNT).unwrap_or(names::DEFAULT_SERVICE_ACCOUNT);
    if !is_account_name(account) {
        return Err(KeyProblem::ServiceAccount);
    }
    let expires = annotation(names::ANNOTATION_EXPIRES_AT).map(str::parse).transpose();
    let expires = expires.map_err(|_| KeyProblem::ExpiresAt)?;
    let caller = service_account(&secret.namespace().unwrap_or_default(), account);
    Ok(StoredKey { hash, caller, expires })
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
        read(&self.table).caller(hash, now).ok_or(AuthError::Unknown)
    }

    /// Follows the Secrets as long as it is polled.
    pub(super) async fn follow(&self, client: Client) {
        let config = watcher::Config::default().labels(&format!("{}=true", names::LABEL_API_KEY));
        let api = Api::<RawObject<Secret>>::all(client);
        let mut events = pin!(watch(api, config));
        let mut listed = KeyTable::default();
        while let Some(event) = events.next().await {
            self.handle(event, &mut listed);
        }
    }

    fn handle(&self, event: watcher::Event<RawObject<Secret>>, listed: &mut KeyTable) {
        match event {
            watcher::Event::Init => *listed = KeyTable::default(),
            watcher::Event::InitApply(secret) => put(listed, &secret),
            watcher::Event::InitDone => {
                self.change(|table| *table = std::mem::take(listed));
                self.is_synced.store(true, Ordering::Release);
            }
            watcher::Event::Apply(secret) => self.change(|table| put(table, &secret)),
            watcher::Event::Delete(secret) => self.change(|table| table.remove(&name_of(&secret))),
        }
    }

    fn change(&self, change: impl FnOnce(&mut KeyTable)) {
        change(&mut write(&self.table));
    }
}

fn put(table: &mut KeyTable, secret: &RawObject<Secret>) {
    let (namespace, name) = name_of(secret);
    let problem = if let Ok(secret) = secret.parse() {
        table.put(&secret).err()
    } else {
        // What it said before counts no more.
        table.remove(&(namespace.clone(), name.clone()));
        Some(KeyProblem::Secret)
    };
    if let Some(problem) = problem {
        warn!(%namespace, secret = %name, %problem, "Secret gives no access as an API key");
    }
}

#[cfg(test)]
mod tests;

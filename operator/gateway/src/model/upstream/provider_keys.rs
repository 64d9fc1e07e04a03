//! The platform's keys for providers, read from its Secrets and cached for some seconds.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use http::{HeaderValue, StatusCode};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use skillet_api::gateway::KeySecret;
use skillet_kube::lock;
use thiserror::Error;
use tokio::time::Instant;
use tracing::warn;

use crate::error::ApiError;

/// Lifetime of a cached key before its Secret is read again.
const KEPT: Duration = Duration::from_secs(30);

pub(super) struct ProviderKeys {
    secrets: Api<Secret>,
    namespace: String,
    cache: Mutex<HashMap<KeySecret, (Instant, HeaderValue)>>,
}

/// A failure to get the provider's key.
#[derive(Debug, Error)]
enum KeyError {
    #[error("could not read Secret {namespace}/{name}")]
    Read { namespace: String, name: String, source: Box<kube::Error> },
    #[error("there is no Secret {namespace}/{name}")]
    NoSecret { namespace: String, name: String },
    #[error("Secret {namespace}/{name} has no key {key}")]
    NoKey { namespace: String, name: String, key: String },
    #[error("key {key} of Secret {namespace}/{name} cannot stand in a header")]
    NoHeader { namespace: String, name: String, key: String },
}

impl From<KeyError> for ApiError {
    /// Hides from clients the Secret that holds the platform's key.
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Read { .. } => {
                Self::unavailable("the platform's key for this provider could not be read")
            }
            KeyError::NoSecret { .. } | KeyError::NoKey { .. } | KeyError::NoHeader { .. } => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "SecretMissing",
                "the platform has no key for this provider",
            ),
        }
    }
}

impl ProviderKeys {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        let secrets = Api::namespaced(client, namespace);
        Self { secrets, namespace: namespace.to_owned(), cache: Mutex::default() }
    }

    pub(super) async fn get(&self, secret: &KeySecret) -> Result<HeaderValue, ApiError> {
        if let Some((_, key)) = lock(&self.cache).get(secret).filter(|(at, _)| at.elapsed() < KEPT) {
            return Ok(key.clone());
        }
        let key = self.read(secret).await.map_err(|error| {
            warn!(error = ?error, "Provider cannot be asked with the platform's key");
            ApiError::from(error)
        })?;
        lock(&self.cache).insert(secret.clone(), (Instant::now(), key.clone()));
        Ok(key)
    }

    /// Forgets a key that the provider refused: its Secret may have another one by now.
    pub(super) fn forget(&self, secret: &KeySecret) {
        lock(&self.cache).remove(secret);
    }

    async fn read(&self, secret: &KeySecret) -> Result<HeaderValue, KeyError> {
        let (KeySecret { name, key }, namespace) = (secret.clone(), self.namespace.clone());
        let found = match self.secrets.get_opt(&name).await {
            Ok(Some(found)) => found,
            Ok(None) => return Err(KeyError::NoSecret { namespace, name }),
            Err(source) => return Err(KeyError::Read { namespace, name, source: Box::new(source) }),
        };
        let Some(bytes) = found.data.and_then(|mut data| data.remove(&key)) else {
            return Err(KeyError::NoKey { namespace, name, key });
        };
        HeaderValue::from_bytes(bytes.0.trim_ascii()).map_err(|_| KeyError::NoHeader { namespace, name, key })
    }
}

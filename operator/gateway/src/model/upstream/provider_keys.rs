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

impl KeyError {
    /// The answer to clients, which hides the Secret that holds the platform's key.
    fn answer(&self, provider: &str) -> ApiError {
        match self {
            Self::Read { .. } => ApiError::unavailable(format!(
                "the platform's key for the provider {provider} could not be read"
            )),
            Self::NoSecret { .. } | Self::NoKey { .. } | Self::NoHeader { .. } => {
                let message = format!(
                    "the platform has no key for the provider {provider}; the gateway's log names the missing Secret"
                );
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "SecretMissing", message)
            }
        }
    }
}

impl ProviderKeys {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        let secrets = Api::namespaced(client, namespace);
        Self { secrets, namespace: namespace.to_owned(), cache: Mutex::default() }
    }

    /// Returns the key of a provider, which a refusal names.
    pub(super) async fn get(&self, provider: &str, secret: &KeySecret) -> Result<HeaderValue, ApiError> {
        if let Some((_, key)) = lock(&self.cache).get(secret).filter(|(at, _)| at.elapsed() < KEPT) {
            return Ok(key.clone());
        }
        let key = self.read(secret).await.map_err(|error| {
            warn!(error = ?error, "Provider cannot be asked with the platform's key");
            error.answer(provider)
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

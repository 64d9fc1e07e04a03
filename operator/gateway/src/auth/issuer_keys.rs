//! The cluster's public keys for service-account tokens, and the check of a token's signature against them.
//!
//! It spares the API server reviews of forged tokens. It admits nobody: a token with a good signature is reviewed as well.

use std::{
    collections::HashMap,
    sync::RwLock,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use kube::Client;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, EcdsaVerificationAlgorithm, RSA_PKCS1_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;
use skillet_kube::{read, write};
use tokio::{sync::Mutex, time::timeout};
use tracing::warn;

/// Path of the keys. Kubernetes lets every service account read them.
const PATH: &str = "/openid/v1/jwks";
/// Least time between two requests for the keys. Tokens of unknown keys may come in floods.
const FETCH_INTERVAL: Duration = Duration::from_secs(5);
/// The longest time of one request for the keys, during which tokens of unknown keys wait.
const LIMIT: Duration = Duration::from_secs(2);

/// First byte of a curve's point that has both coordinates.
const UNCOMPRESSED: u8 = 4;

/// The verdict on a token's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signature {
    Valid,
    Forged,
    /// The key is of another kind, or the cluster gave no keys.
    Unchecked,
}

/// The public keys by id, read again if a token names another one.
#[derive(Default)]
pub(super) struct IssuerKeys {
    keys: RwLock<HashMap<String, PublicKey>>,
    last_fetch: Mutex<Option<Fetch>>,
}

#[derive(Clone, Copy)]
struct Fetch {
    at: Instant,
    has_keys: bool,
}

impl IssuerKeys {
    pub(super) async fn check(&self, client: &Client, token: &str, now: Instant) -> Signature {
        let Some(token) = SignedToken::parse(token) else { return Signature::Forged };
        if let Some(verdict) = self.verify(&token) {
            return verdict;
        }
        let mut last = self.last_fetch.lock().await;
        let fetch = match *last {
            // Those who waited for the lock find the keys of the request that has just ended.
            Some(fetch) if now.saturating_duration_since(fetch.at) < FETCH_INTERVAL => fetch,
            _ => *last.insert(Fetch { at: now, has_keys: self.fetch(client).await }),
        };
        let unknown = if fetch.has_keys { Signature::Forged } else { Signature::Unchecked };
        self.verify(&token).unwrap_or(unknown)
    }

    /// Returns the verdict, if the token's key is known.
    fn verify(&self, token: &SignedToken<'_>) -> Option<Signature> {
        Some(read(&self.keys).get(&token.key_id)?.verify(token))
    }

    /// Reads the keys from the cluster. Returns false if it gave none; those of before stay.
    async fn fetch(&self, client: &Client) -> bool {
        let request = match http::Request::get(PATH).body(Vec::new()) {
            Ok(request) => client.request::<KeySet>(request),
            Err(error) => {
                warn!(%error, "Keys of service-account tokens cannot be asked for");
                return false;
            }
        };
        match timeout(LIMIT, request).await {
            Ok(Ok(KeySet { keys })) if !keys.is_empty() => {
                let known = keys.into_iter().filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
                *write(&self.keys) = known.map(|key| (key.kid, key.key)).collect();
                return true;
            }
            Ok(Ok(_)) => warn!("The cluster has no keys of service-account tokens; each token is reviewed"),
            Ok(Err(error)) => {
                warn!(%error, "Keys of service-account tokens could not be read; each token is reviewed");
            }
            Err(_) => {
                warn!(limit = ?LIMIT, "Keys of service-account tokens did not come in time; each token is reviewed");
            }
        }
        false
    }
}

/// A token's text in front of its signature, the signature, and the id of its key.
struct SignedToken<'a> {
    key_id: String,
    text: &'a str,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    /// Kubernetes gives every token one. Empty text is the id of no key.
    #[serde(default)]
    kid: String,
}

impl<'a> SignedToken<'a> {
    fn parse(token: &'a str) -> Option<Self> {
        let (text, signature) = token.rsplit_once('.')?;
        let (header, _) = text.split_once('.')?;
        let header: Header = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        Some(Self { key_id: header.kid, text, signature })
    }
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

/// A JSON Web Key with its id.
#[derive(Deserialize)]
struct Jwk {
    kid: String,
    #[serde(flatten)]
    key: PublicKey,
}

#[derive(Deserialize)]
#[serde(tag = "kty")]
enum PublicKey {
    #[serde(rename = "RSA")]
    Rsa { n: Bytes, e: Bytes },
    #[serde(rename = "EC")]
    Ec { crv: String, x: Bytes, y: Bytes },
    #[serde(other)]
    Other,
}

impl PublicKey {
    /// Checks by the algorithm that Kubernetes uses for the kind of key, not by the one that the token names.
    fn verify(&self, token: &SignedToken<'_>) -> Signature {
        let (text, signature) = (token.text.as_bytes(), &token.signature);
        let on_curve = |curve: &'static EcdsaVerificationAlgorithm, x: &Bytes, y: &Bytes| {
            let point = [&[UNCOMPRESSED], &*x.0, &*y.0].concat();
            UnparsedPublicKey::new(curve, point).verify(text, signature)
        };
        let checked = match self {
            PublicKey::Rsa { n, e } => RsaPublicKeyComponents { n: &n.0, e: &e.0 }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                text,
                signature,
            ),
            PublicKey::Ec { crv, x, y } if crv == "P-256" => on_curve(&ECDSA_P256_SHA256_FIXED, x, y),
            PublicKey::Ec { crv, x, y } if crv == "P-384" => on_curve(&ECDSA_P384_SHA384_FIXED, x, y),
            PublicKey::Ec { .. } | PublicKey::Other => return Signature::Unchecked,
        };
        if checked.is_ok() { Signature::Valid } else { Signature::Forged }
    }
}

/// Bytes as base64url.
struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        URL_SAFE_NO_PAD.decode(text).map(Self).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;

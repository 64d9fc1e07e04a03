//! Authenticates callers and authorizes what they do.
//!
//! A service-account token (TokenReview, audience `skillet`) or an API key of a tenant. Never anything else: no field
//! of a body, no name in a path, no default.

mod api_keys;
mod issuer_keys;
mod reviews;
mod token;
mod ttl_cache;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::HeaderMap;
use jiff::Timestamp;
use thiserror::Error;

pub use self::token::{QUERY_PARAMETER, SKILLET_TOKEN};
use self::{
    api_keys::ApiKeys,
    issuer_keys::{IssuerKeys, Signature},
    reviews::{AccessRequest, review_access, review_token},
    token::{Credential, PresentedToken, TokenClaims, credential, has_other_audience, presented},
    ttl_cache::{Answer, TtlCache},
};
use crate::{error::ApiError, request_id};

/// The time that a reviewed token stays in the cache. A token may be used for so long after its pod is gone.
const TOKEN_TTL: Duration = Duration::from_secs(30);
/// The time that an unknown token stays in the cache.
const UNKNOWN_TOKEN_TTL: Duration = Duration::from_secs(5);
/// The time that a granted or refused right stays in the cache.
const ACCESS_TTL: Duration = Duration::from_secs(5);
/// Most namespaces about which one request asks at a time.
const SIDE_BY_SIDE: usize = 16;
/// Most tokens that are remembered, by hash.
const MAX_TOKENS: usize = 4096;
/// Most rights that are remembered: callers, times the skills of a conversation.
const MAX_ACCESS_ANSWERS: usize = 16_384;

/// An authenticated service account.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The caller's own namespace, where look-up begins and executions are made.
    pub namespace: Arc<str>,
    /// As Kubernetes knows it: `system:serviceaccount:<namespace>:<name>`.
    pub user: Arc<str>,
    pub groups: Arc<[String]>,
}

/// The caller, and the header or query parameter that carried its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    pub caller: Caller,
    /// Name of the header that carried the gateway's own token, or [`QUERY_PARAMETER`]. It must never reach a
    /// provider: [`Authenticated::strip_token`] takes it out.
    pub token_header: &'static str,
}

/// An action on skills, or on a model provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    Get,
    Execute,
    /// Change mode or switch.
    Patch,
    /// Send requests to a model provider with the platform's key.
    Use,
}

impl Verb {
    /// As a Role spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::Execute => "execute",
            Verb::Patch => "patch",
            Verb::Use => "use",
        }
    }

    /// The resource of the verb, in the plural.
    fn resource(self) -> &'static str {
        match self {
            Verb::Get | Verb::Execute | Verb::Patch => "skills",
            Verb::Use => "modelproviders",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AuthError {
    #[error(
        "no token: send a service-account token or an API key as `Authorization: Bearer`, `x-api-key` or `x-skillet-token`"
    )]
    Missing,
    #[error(
        "the token is not known; send a service-account token for the audience {}, or an API key",
        skillet_api::names::GATEWAY_AUDIENCE
    )]
    Unknown,
    #[error("the API key is cut or mistyped: its checksum is wrong")]
    Mistyped,
    #[error(
        "the token is for another audience; create it with --audience {}",
        skillet_api::names::GATEWAY_AUDIENCE
    )]
    OtherAudience,
    #[error("the API key {key} expired at {at}; make another one")]
    Expired { key: String, at: Timestamp },
    #[error("the API key {key} was deleted or replaced")]
    Revoked { key: String },
    #[error("several ApiKeys have the hash of this key, so none of them counts")]
    SharedHash,
    #[error("the caller may not {verb} {} in namespace {namespace}", .verb.resource())]
    Forbidden { verb: Verb, namespace: String },
    #[error("the cluster could not be asked: {0}")]
    Unreachable(String),
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        use http::StatusCode;
        let (status, code) = match &error {
            AuthError::Missing
            | AuthError::Unknown
            | AuthError::Mistyped
            | AuthError::OtherAudience
            | AuthError::Expired { .. }
            | AuthError::Revoked { .. }
            | AuthError::SharedHash => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            AuthError::Forbidden { .. } => (StatusCode::FORBIDDEN, "Forbidden"),
            AuthError::Unreachable(_) => (StatusCode::SERVICE_UNAVAILABLE, "ApiError"),
        };
        Self::new(status, code, error.to_string())
    }
}

/// Monotonic time for cache entries, wall-clock time for expiry dates.
#[derive(Clone, Copy)]
struct Now {
    instant: Instant,
    timestamp: Timestamp,
}

type Clock = Box<dyn Fn() -> Now + Send + Sync>;

/// Asks the API server, and remembers its answers for some seconds.
pub struct Auth {
    client: kube::Client,
    clock: Clock,
    keys: ApiKeys,
    issuer_keys: Arc<IssuerKeys>,
    tokens: Arc<TtlCache<[u8; 32], Option<Caller>>>,
    rights: Arc<TtlCache<AccessRequest, bool>>,
}

impl Auth {
    pub fn new(client: kube::Client) -> Self {
        Self::with_clock(client, Box::new(|| Now { instant: Instant::now(), timestamp: Timestamp::now() }))
    }

    /// Asks the API server each time: each look at the clock is later than any answer is kept.
    #[cfg(test)]
    pub(crate) fn uncached(client: kube::Client) -> Self {
        let looks = std::sync::atomic::AtomicU64::new(0);
        let start = Instant::now();
        let now = move || {
            let passed = TOKEN_TTL
                * 2
                * u32::try_from(looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed)).unwrap();
            Now { instant: start + passed, timestamp: Timestamp::now() }
        };
        Self::with_clock(client, Box::new(now))
    }

    fn with_clock(client: kube::Client, clock: Clock) -> Self {
        let (tokens, rights) = (TtlCache::at_most(MAX_TOKENS), TtlCache::at_most(MAX_ACCESS_ANSWERS));
        Self { client, clock, keys: ApiKeys::default(), issuer_keys: Arc::default(), tokens, rights }
    }

    /// Keeps the API keys as the cluster has them, and writes their status. Ends never; without it no API key is known.
    pub async fn watch_keys(self: Arc<Self>) {
        let now = || (self.clock)().timestamp;
        tokio::join!(self.keys.follow(self.client.clone()), self.keys.report(self.client.clone(), now));
    }

    /// Reports that the API keys have been listed. Before that the gateway is not ready.
    pub fn is_synced(&self) -> bool {
        self.keys.is_synced()
    }

    /// Returns the caller, and the header or query parameter that carried its token.
    ///
    /// `query` is the URL's query, if the client may have its key in it, as old clients of Google do.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
    ) -> Result<Authenticated, AuthError> {
        let PresentedToken { text, place } = presented(headers, query)?;
        let unknown = || if has_other_audience(text) { AuthError::OtherAudience } else { AuthError::Unknown };
        let caller = match credential(text).ok_or_else(unknown)? {
            Credential::MistypedKey => return Err(AuthError::Mistyped),
            Credential::ApiKey(hash) => self.keys.caller(hash, (self.clock)().timestamp)?,
            Credential::ServiceAccount(claims) => self.review(text, &claims).await?,
        };
        request_id::record_caller(&caller.namespace, &caller.user);
        Ok(Authenticated { caller, token_header: place })
    }

    async fn review(&self, text: &str, claims: &TokenClaims) -> Result<Caller, AuthError> {
        // The answer counts from when it was asked for, not from when it came.
        let now = (self.clock)();
        let (client, text, expires) = (self.client.clone(), text.to_owned(), claims.expires);
        let issuer_keys = Arc::clone(&self.issuer_keys);
        let ask = || async move {
            let caller = match issuer_keys.check(&client, &text, now.instant).await {
                Signature::Forged => None,
                Signature::Valid | Signature::Unchecked => review_token(client, text).await?,
            };
            let kept = if caller.is_some() { token_ttl(expires, now.timestamp) } else { UNKNOWN_TOKEN_TTL };
            Ok(Answer { value: caller, until: now.instant + kept })
        };
        self.tokens.get(&claims.digest, now.instant, ask).await?.ok_or(AuthError::Unknown)
    }

    /// Returns true if the caller may do this with the verb's objects of the namespace, or with one of them.
    pub async fn may(
        &self,
        caller: &Caller,
        verb: Verb,
        namespace: &str,
        name: Option<&str>,
    ) -> Result<bool, AuthError> {
        let request = AccessRequest::new(caller, verb, namespace, name);
        let now = (self.clock)().instant;
        let (client, asked) = (self.client.clone(), request.clone());
        let ask = || async move {
            let value = review_access(client, asked).await?;
            Ok(Answer { value, until: now + ACCESS_TTL })
        };
        self.rights.get(&request, now, ask).await
    }

    /// Returns those of `namespaces`, in their order, in which the caller may do all of `verbs`. The API server is asked
    /// about several namespaces at a time.
    pub async fn allowed(
        &self,
        caller: &Caller,
        verbs: &[Verb],
        namespaces: Vec<Arc<str>>,
        skill: Option<&str>,
    ) -> Result<Vec<Arc<str>>, AuthError> {
        let questions = namespaces.into_iter().map(|namespace| async move {
            for verb in verbs {
                if !self.may(caller, *verb, &namespace, skill).await? {
                    return Ok(None);
                }
            }
            Ok(Some(namespace))
        });
        let allowed: Vec<_> = stream::iter(questions).buffered(SIDE_BY_SIDE).try_collect().await?;
        Ok(allowed.into_iter().flatten().collect())
    }

    /// Returns the first of `verbs` that the caller may not do with any skill of the namespace.
    pub async fn first_refused(
        &self,
        caller: &Caller,
        verbs: &[Verb],
        namespace: &str,
    ) -> Result<Option<Verb>, AuthError> {
        for verb in verbs {
            if !self.may(caller, *verb, namespace, None).await? {
                return Ok(Some(*verb));
            }
        }
        Ok(None)
    }

    /// Fails unless the caller may do this with skills of the namespace, or with one of them.
    pub async fn authorize(
        &self,
        caller: &Caller,
        verb: Verb,
        namespace: &str,
        skill: Option<&str>,
    ) -> Result<(), AuthError> {
        if self.may(caller, verb, namespace, skill).await? {
            Ok(())
        } else {
            Err(AuthError::Forbidden { verb, namespace: namespace.to_owned() })
        }
    }
}

/// Never longer than the token itself is good.
fn token_ttl(expires: Option<Timestamp>, now: Timestamp) -> Duration {
    let left = expires.map(|end| Duration::try_from(end.duration_since(now)).unwrap_or_default());
    left.map_or(TOKEN_TTL, |left| left.min(TOKEN_TTL))
}

#[cfg(test)]
mod tests;

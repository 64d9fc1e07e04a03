//! Who asks, and what they may.
//!
//! A service-account token (TokenReview, audience `skillet`) or an API key of a tenant. Never anything else: no field
//! of a body, no name in a path, no default.

mod api_keys;
mod reviews;
mod token;
mod ttl_cache;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use http::HeaderMap;
use jiff::Timestamp;
use thiserror::Error;

pub use self::token::{QUERY_PARAMETER, SKILLET_TOKEN};
use self::{
    api_keys::ApiKeys,
    reviews::{AccessRequest, review_access, review_token},
    token::{Credential, PresentedToken, TokenClaims, credential, presented},
    ttl_cache::{Answer, TtlCache},
};
use crate::error::ApiError;

/// How long a token that was reviewed is taken without asking again: so long may one be used after its pod is gone.
const TOKEN_TTL: Duration = Duration::from_secs(30);
/// How long a token that the API server does not know is refused without asking again.
const UNKNOWN_TOKEN_TTL: Duration = Duration::from_secs(5);
/// How long a right, or the lack of one, is remembered.
const ACCESS_TTL: Duration = Duration::from_secs(5);
/// Most tokens that are remembered, by hash.
const MAX_TOKENS: usize = 4096;
/// Most rights that are remembered: callers, times the skills of a conversation.
const MAX_ACCESS_ANSWERS: usize = 16_384;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The caller's own namespace, where look-up begins and executions are made.
    pub namespace: Arc<str>,
    /// As Kubernetes knows it: `system:serviceaccount:<namespace>:<name>`.
    pub user: Arc<str>,
    pub groups: Arc<[String]>,
}

/// Who asks, and where the token was found that told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    pub caller: Caller,
    /// Name of the header that carried the gateway's own token, or [`QUERY_PARAMETER`]. It must never reach a
    /// provider: [`Authenticated::strip_token`] takes it out.
    pub token_header: &'static str,
}

/// What is to be done with a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    Get,
    Execute,
    /// Change mode or switch.
    Patch,
}

impl Verb {
    /// As a Role spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::Execute => "execute",
            Verb::Patch => "patch",
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
    #[error("the token is not known")]
    Unknown,
    #[error("the caller may not {verb} skills in namespace {namespace}")]
    Forbidden { verb: Verb, namespace: String },
    #[error("the cluster could not be asked: {0}")]
    Unreachable(String),
}

/// Whether it is allowed; an error only where that could not be found out.
pub fn is_allowed(checked: Result<(), AuthError>) -> Result<bool, AuthError> {
    match checked {
        Ok(()) => Ok(true),
        Err(AuthError::Forbidden { .. }) => Ok(false),
        Err(error @ (AuthError::Missing | AuthError::Unknown | AuthError::Unreachable(_))) => Err(error),
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        use http::StatusCode;
        let (status, code) = match &error {
            AuthError::Missing | AuthError::Unknown => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            AuthError::Forbidden { .. } => (StatusCode::FORBIDDEN, "Forbidden"),
            AuthError::Unreachable(_) => (StatusCode::SERVICE_UNAVAILABLE, "ApiError"),
        };
        Self::new(status, code, error.to_string())
    }
}

/// The time twice: the one that only grows is for what is remembered, the calendar's for what has a date.
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
    tokens: Arc<TtlCache<[u8; 32], Option<Caller>>>,
    rights: Arc<TtlCache<AccessRequest, bool>>,
}

impl Auth {
    pub fn new(client: kube::Client) -> Self {
        Self::with_clock(client, Box::new(|| Now { instant: Instant::now(), timestamp: Timestamp::now() }))
    }

    fn with_clock(client: kube::Client, clock: Clock) -> Self {
        let (tokens, rights) = (TtlCache::at_most(MAX_TOKENS), TtlCache::at_most(MAX_ACCESS_ANSWERS));
        Self { client, clock, keys: ApiKeys::default(), tokens, rights }
    }

    /// Keeps the API keys as the cluster has them. Ends never; without it no API key is known.
    pub async fn watch_keys(self: Arc<Self>) {
        self.keys.follow(self.client.clone()).await;
    }

    /// Whether the API keys are in: before that the gateway is not ready.
    pub fn is_synced(&self) -> bool {
        self.keys.is_synced()
    }

    /// Who sent these headers.
    pub async fn caller(&self, headers: &HeaderMap) -> Result<Caller, AuthError> {
        Ok(self.identify(headers).await?.caller)
    }

    /// Who sent these headers, and which of them must not be passed on to a provider.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<Authenticated, AuthError> {
        self.caller_with_query(headers, None).await
    }

    /// The same, where the client may have its key in the URL's query, as old ones of Google do.
    pub async fn caller_with_query(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
    ) -> Result<Authenticated, AuthError> {
        let PresentedToken { text, place } = presented(headers, query)?;
        let caller = match credential(text).ok_or(AuthError::Unknown)? {
            Credential::ApiKey(hash) => self.keys.caller(hash, (self.clock)().timestamp)?,
            Credential::ServiceAccount(claims) => self.reviewed(text, &claims).await?,
        };
        Ok(Authenticated { caller, token_header: place })
    }

    async fn reviewed(&self, text: &str, claims: &TokenClaims) -> Result<Caller, AuthError> {
        // The answer counts from when it was asked for, not from when it came.
        let now = (self.clock)();
        let (client, text, expires) = (self.client.clone(), text.to_owned(), claims.expires);
        let ask = || async move {
            let caller = review_token(client, text).await?;
            let kept = if caller.is_some() { known_for(expires, now.timestamp) } else { UNKNOWN_TOKEN_TTL };
            Ok(Answer { value: caller, until: now.instant + kept })
        };
        self.tokens.get(&claims.digest, now.instant, ask).await?.ok_or(AuthError::Unknown)
    }

    /// Fails unless the caller may do this with skills of the namespace, or with one of them.
    pub async fn check(
        &self,
        caller: &Caller,
        verb: Verb,
        namespace: &str,
        skill: Option<&str>,
    ) -> Result<(), AuthError> {
        let request = AccessRequest::new(caller, verb, namespace, skill);
        let now = (self.clock)().instant;
        let (client, asked) = (self.client.clone(), request.clone());
        let ask = || async move {
            let value = review_access(client, asked).await?;
            Ok(Answer { value, until: now + ACCESS_TTL })
        };
        if self.rights.get(&request, now, ask).await? {
            Ok(())
        } else {
            Err(AuthError::Forbidden { verb, namespace: namespace.to_owned() })
        }
    }
}

/// Never longer than the token itself is good.
fn known_for(expires: Option<Timestamp>, now: Timestamp) -> Duration {
    let left = expires.map(|end| Duration::try_from(end.duration_since(now)).unwrap_or_default());
    left.map_or(TOKEN_TTL, |left| left.min(TOKEN_TTL))
}

#[cfg(test)]
mod tests;

//! Who asks, and what they may.
//!
//! A service-account token (TokenReview, audience `skillet`) or an API key of a tenant. Never anything else: no field
//! of a body, no name in a path, no default.

use std::sync::Arc;

use http::HeaderMap;
use thiserror::Error;

use crate::error::ApiError;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The caller's own namespace, where look-up begins and executions are made.
    pub namespace: Arc<str>,
    /// As Kubernetes knows it: `system:serviceaccount:<namespace>:<name>`.
    pub user: Arc<str>,
    pub groups: Arc<[String]>,
}

/// A caller, and the header that held its token: it was for the gateway, and goes no further.
#[derive(Clone, Debug)]
pub struct Identified {
    pub caller: Caller,
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

#[derive(Clone, Debug, Error)]
pub enum IdentityError {
    #[error(
        "no token: send a service-account token or an API key as `Authorization: Bearer`, `x-api-key` or `x-skillet-token`"
    )]
    Missing,
    #[error("the token is not known")]
    Unknown,
    #[error("the caller may not {verb:?} skills in namespace {namespace}")]
    Forbidden { verb: Verb, namespace: String },
    #[error("the cluster could not be asked: {0}")]
    Unreachable(String),
}

impl From<IdentityError> for ApiError {
    fn from(error: IdentityError) -> Self {
        use http::StatusCode;
        let (status, code) = match &error {
            IdentityError::Missing | IdentityError::Unknown => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            IdentityError::Forbidden { .. } => (StatusCode::FORBIDDEN, "Forbidden"),
            IdentityError::Unreachable(_) => (StatusCode::SERVICE_UNAVAILABLE, "ApiError"),
        };
        Self::new(status, code, error.to_string())
    }
}

/// Asks the API server, and remembers its answers for some seconds.
pub struct Identity {
    #[allow(dead_code)]
    client: kube::Client,
}

impl Identity {
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// Who sent these headers. The token used is also told, so that it is never passed on to a provider.
    pub async fn caller(&self, _headers: &HeaderMap) -> Result<Caller, IdentityError> {
        Err(IdentityError::Missing)
    }

    /// Who sent these headers, or this query, and which header told so.
    pub async fn identify(
        &self,
        headers: &HeaderMap,
        _query: Option<&str>,
    ) -> Result<Identified, IdentityError> {
        Ok(Identified { caller: self.caller(headers).await?, token_header: "authorization" })
    }

    /// Fails unless the caller may do this with skills of the namespace, or with one of them.
    pub async fn check(
        &self,
        _caller: &Caller,
        _verb: Verb,
        _namespace: &str,
        _skill: Option<&str>,
    ) -> Result<(), IdentityError> {
        Err(IdentityError::Missing)
    }
}

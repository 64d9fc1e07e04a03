//! Admission of a request to its provider.
//!
//! A request with the platform's key needs the right to `use` the provider. A client that pays with its own key needs none.

use http::{HeaderMap, StatusCode};
use skillet_llm::DialectName;

use super::{
    ModelState,
    upstream::{Upstream, provider_name},
};
use crate::{
    auth::{Caller, Verb},
    error::ApiError,
};

impl ModelState {
    /// Prepares a client's request, and fails if the caller may not send it.
    pub(super) async fn admit(
        &self,
        caller: &Caller,
        dialect: DialectName,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Upstream, ApiError> {
        let policy = self.catalog.policy();
        let upstream = self.providers.prepare(&policy.gateway.providers, dialect, path, headers).await?;
        if upstream.has_platform_key() {
            self.authorize_use(caller, provider_name(dialect)).await?;
        }
        Ok(upstream)
    }

    async fn authorize_use(&self, caller: &Caller, provider: &str) -> Result<(), ApiError> {
        if self.auth.may(caller, Verb::Use, &caller.namespace, Some(provider)).await? {
            return Ok(());
        }
        let message = format!(
            "the caller may not use provider {provider} with the platform's key: it needs the verb use on \
             modelproviders.skillet.dev in namespace {}",
            caller.namespace
        );
        self.metrics.refused("ProviderForbidden");
        Err(ApiError::new(StatusCode::FORBIDDEN, "ProviderForbidden", message))
    }
}

#[cfg(test)]
mod tests;

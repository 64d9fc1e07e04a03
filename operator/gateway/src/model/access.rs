//! Admission of a request to its provider.
//!
//! A provider of the policy has to take the model. A request with the platform's key needs the right to `use` the provider. A client that pays with its own key needs none.

use http::StatusCode;

use super::{
    ModelState,
    provider_choice::choose,
    upstream::{ProviderRequest, Upstream},
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
        request: &ProviderRequest<'_>,
    ) -> Result<Upstream, ApiError> {
        let policy = self.catalog.policy();
        let chosen = choose(&policy.gateway.providers, request.dialect, request.model);
        let provider = chosen.ok_or_else(|| self.refuse_model(request.model))?;
        if let Some(other) = request.fallbacks.iter().find(|model| !provider.takes(model)) {
            return Err(self.refuse_model(Some(other)));
        }
        let upstream = self.providers.prepare(&provider, request).await?;
        if upstream.has_platform_key() {
            self.authorize_use(caller, provider.name).await?;
        }
        Ok(upstream)
    }

    /// The refusal of a model that no provider takes.
    fn refuse_model(&self, model: Option<&str>) -> ApiError {
        let model = model.map_or_else(|| "without a name".to_owned(), |model| format!("{model:?}"));
        let message = format!("no provider of SkillPolicy default takes the model {model}");
        self.metrics.refused("ModelNotAllowed");
        ApiError::new(StatusCode::FORBIDDEN, "ModelNotAllowed", message)
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

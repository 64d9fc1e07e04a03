//! Admission of a request to its provider.
//!
//! A provider of the policy has to take the model. A request with the platform's key needs the right to `use` the provider. A client that pays with its own key needs none, and has no limits.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use skillet_api::{SkillPolicySpec, gateway::GatewayPolicy};

use super::{
    ModelState,
    provider_choice::choose,
    request_record::RequestRecord,
    upstream::{KeyOwner, ProviderRequest, Upstream},
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
        record: &Arc<RequestRecord>,
    ) -> Result<Upstream, ApiError> {
        let policy = self.catalog.policy();
        let chosen = choose(&policy.gateway.providers, request.dialect, request.model);
        let provider = chosen.ok_or_else(|| self.refuse_model(request.model))?;
        record.set_provider(provider.name);
        if let Some(other) = request.fallbacks.iter().find(|model| !provider.takes(model)) {
            return Err(self.refuse_model(Some(other)));
        }
        let SkillPolicySpec { gateway: GatewayPolicy { conversation, rate_limits, .. }, .. } = &*policy;
        let upstream = self.providers.prepare(&provider, request, conversation, record.clone()).await?;
        match upstream.key_owner() {
            KeyOwner::Platform => self.authorize_use(caller, provider.name).await?,
            KeyOwner::Client => return Ok(upstream),
            KeyOwner::Nobody => {}
        }
        record.take(rate_limits).map_err(|wait| self.refuse_rate(caller, wait))?;
        Ok(upstream)
    }

    /// The refusal of a model that no provider takes.
    fn refuse_model(&self, model: Option<&str>) -> ApiError {
        let model = model.map_or_else(|| "without a name".to_owned(), |model| format!("{model:?}"));
        let message = format!("no provider of SkillPolicy default takes the model {model}");
        self.metrics.refused("ModelNotAllowed");
        ApiError::new(StatusCode::FORBIDDEN, "ModelNotAllowed", message)
    }

    /// The refusal of a namespace that has used its minute's worth.
    fn refuse_rate(&self, caller: &Caller, wait: Duration) -> ApiError {
        self.metrics.refused("RateLimited");
        let wait = Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0));
        let message = format!(
            "namespace {} has used the model requests or tokens of a minute; ask again in {wait:?}",
            caller.namespace
        );
        ApiError {
            retry_after: Some(wait),
            ..ApiError::new(StatusCode::TOO_MANY_REQUESTS, "RateLimited", message)
        }
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

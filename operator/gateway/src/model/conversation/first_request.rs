//! The first request of a conversation, and what a provider's refusal of it changes.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use skillet_api::gateway::ToolUse;
use tracing::warn;

use super::{
    Conversation, buffered, retry::Head as _, round_request::RoundRequest, stored_history::MAX_REPAIRS,
};
use crate::{
    error::ApiError,
    model::{
        offered_tools::OfferedTools,
        provider_choice::tool_use,
        tool_refusals,
        tools::PROVIDER_REFUSED,
        upstream::{ProviderResponse, Upstream},
    },
};

/// Statuses of a provider that does not take a request as it is.
const REFUSALS: [StatusCode; 3] =
    [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::UNPROCESSABLE_ENTITY];

/// The outcome of the first request.
pub(super) enum First {
    Response(ProviderResponse),
    /// An error of the provider's that has nothing to do with skills.
    Refused(buffered::Answer),
}

/// The first request as a refusal may change it.
pub(super) struct Refusable<'a> {
    pub(super) request: &'a mut RoundRequest,
    /// The provider keeps the turns before it.
    pub(super) is_stored: bool,
    /// It has results of confirmed calls.
    pub(super) is_resolved: bool,
}

impl Conversation {
    /// Sends the first request. A provider that refuses the history that it keeps gets it repaired; one that refuses the
    /// request because skills were added gets the client's own.
    pub(super) async fn ask_first(
        &mut self,
        upstream: &Upstream,
        body: Bytes,
        refusable: Refusable<'_>,
    ) -> Result<First, ApiError> {
        let Refusable { request, is_stored, is_resolved } = refusable;
        let mut response = upstream.send(body).await?;
        let mut repairs = 0;
        let refusal = loop {
            let may_repair = is_stored && repairs < MAX_REPAIRS;
            let is_refusal = REFUSALS.contains(&response.status());
            // The results of confirmed calls and the repairs are in the changed request alone.
            let may_withhold =
                !(is_resolved || repairs > 0 || self.offered.count() == 0 || self.keeps_tools());
            if !is_refusal || !(may_repair || may_withhold) {
                return Ok(First::Response(response));
            }
            let refusal = buffered::receive(self, response).await?;
            let mut repaired = if may_repair { request.document().await?.clone() } else { Value::Null };
            if may_repair && self.repair_stored_history(upstream, &mut repaired, &refusal.body).await {
                repairs += 1;
                response = upstream.send(request.replace(&repaired)).await?;
                continue;
            }
            if !may_withhold || !tool_refusals::names_tools(&refusal.body) {
                return Ok(First::Refused(refusal));
            }
            break refusal;
        };
        warn!(
            model = self.model,
            status = refusal.head().0.as_u16(),
            "Provider refused a request because skills were offered"
        );
        let response = upstream.send(self.without_skills()).await?;
        // The tools of a server are its author's, and say nothing of those of others.
        if response.status().is_success() && !self.offered.has_server_tools() {
            self.gateway.tool_refusals.add(self.dialect, &self.model, std::time::Instant::now());
        }
        let native: Vec<_> = self.offered.native.iter().map(|of| of.withdrawn(PROVIDER_REFUSED)).collect();
        upstream.record().set_native_tools(&native);
        self.offered = OfferedTools { native, ..OfferedTools::withheld(PROVIDER_REFUSED) };
        Ok(First::Response(response))
    }

    /// Returns true if the policy offers skills to the model also after a refusal.
    fn keeps_tools(&self) -> bool {
        let policy = self.gateway.catalog.policy();
        tool_use(&policy.gateway.providers, self.dialect, &self.model) == ToolUse::Always
    }

    /// The client's request without skills: its own bytes, unless turns were put back into it.
    pub(super) fn without_skills(&self) -> Bytes {
        self.restored.as_ref().unwrap_or(&self.original).clone()
    }
}

//! Shared state of all routes.

use std::sync::Arc;

use skillet_llm::confirmation::ConfirmationKey;
use tokio_util::sync::CancellationToken;

use axum::extract::FromRef;

use crate::{
    auth::Auth,
    catalog::SkillCatalog,
    executions::ExecutionClient,
    memory::MemoryPool,
    metrics::Metrics,
    model::{tool_refusals::ToolRefusals, upstream::ProviderKeys},
    service::SkillService,
};

/// Shared by all requests; cheap to clone.
#[derive(Clone)]
pub struct GatewayState {
    pub auth: Arc<Auth>,
    pub catalog: Arc<SkillCatalog>,
    pub executions: Arc<ExecutionClient>,
    pub metrics: Arc<Metrics>,
    /// Memory for requests.
    pub memory: Arc<MemoryPool>,
    pub upstream: reqwest::Client,
    /// The platform's keys for providers.
    pub provider_keys: Arc<ProviderKeys>,
    /// Models that take no tools.
    pub tool_refusals: Arc<ToolRefusals>,
    /// Namespace of the operator, where the platform's provider keys are.
    pub namespace: Arc<str>,
    /// Cancelled when the gateway is to stop: what only waits for news ends then.
    pub stop: CancellationToken,
    pub client: kube::Client,
    /// Of all gateways of the installation. Without it no hybrid skill is offered to models.
    pub confirmation: Option<Arc<ConfirmationKey>>,
}

impl GatewayState {
    /// Returns the services that REST and MCP share.
    pub fn service(&self) -> SkillService {
        let Self { auth, catalog, executions, memory, client, .. } = self.clone();
        SkillService { auth, catalog, executions, memory, client }
    }

    /// Returns true once the first list of every watch is complete.
    pub fn is_synced(&self) -> bool {
        self.catalog.is_synced() && self.auth.is_synced() && self.executions.is_synced()
    }
}

impl FromRef<GatewayState> for SkillService {
    fn from_ref(gateway: &GatewayState) -> Self {
        gateway.service()
    }
}

impl FromRef<GatewayState> for CancellationToken {
    fn from_ref(gateway: &GatewayState) -> Self {
        gateway.stop.clone()
    }
}

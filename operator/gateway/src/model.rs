//! The routes of the model providers: the proxy, the stateless routes for routers, and what both share.

mod access;
pub mod conversation;
mod count_tokens;
pub mod error_form;
pub mod inject;
mod instructions;
mod name_header;
mod native_tools;
mod offered_tools;
mod passthrough;
pub mod preferences;
mod provider_choice;
pub mod proxy;
mod question_vectors;
mod rate_limits;
mod request_record;
mod response_ids;
mod scoring;
mod search_tools;
mod server_tools;
mod shared_key;
mod threads;
pub mod tool_refusals;
pub mod tools;
mod turn;
pub mod upstream;
pub mod usage_meter;

pub(crate) use self::{
    instructions::direct as instruction_tools,
    offered_tools::{InstructionsAction, Target},
};

use std::sync::Arc;

use skillet_llm::{DialectName, confirmation::ConfirmationKey, openai_responses::bound_id::IdBinding};

use self::{
    rate_limits::RateLimiter, request_record::RequestRecord, tool_refusals::ToolRefusals,
    upstream::ProviderClient,
};
use crate::{
    auth::{Auth, Caller},
    bundles::BundleReader,
    catalog::SkillCatalog,
    commands::CommandRunner,
    executions::ExecutionClient,
    learning::Learning,
    mcp_servers::McpServers,
    memory::{BodyBudget, MemoryPool},
    metrics::Metrics,
    service::SkillService,
};

/// A request's body: images stand in it as text. It is held as it came or is sent, and as a document, of which the next
/// round's is made while the last is still there.
const BODY_BUDGET: BodyBudget = BodyBudget { max_bytes: 32 * 1024 * 1024, text_copies: 1, parsed_copies: 2 };

/// The services of the model routes. Clones share them.
#[derive(Clone)]
pub struct ModelState {
    pub(crate) auth: Arc<Auth>,
    pub(crate) bundles: Arc<BundleReader>,
    pub(crate) catalog: Arc<SkillCatalog>,
    pub(crate) commands: Arc<CommandRunner>,
    pub(crate) executions: Arc<ExecutionClient>,
    /// MCP servers of skills.
    pub(crate) mcp_servers: Arc<McpServers>,
    pub(crate) memory: Arc<MemoryPool>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) providers: Arc<ProviderClient>,
    /// Models that take no tools.
    pub(crate) tool_refusals: Arc<ToolRefusals>,
    /// Terms that the use of skills has taught.
    pub(crate) learning: Arc<Learning>,
    /// Requests and tokens per minute of each namespace.
    limiter: Arc<RateLimiter>,
    /// The key of all gateways of the installation. Without it no hybrid skill is offered to models.
    pub(crate) confirmation: Option<Arc<ConfirmationKey>>,
}

impl ModelState {
    /// Returns the model routes' share of the services, with parts of their own.
    pub fn new(
        service: &SkillService,
        metrics: Arc<Metrics>,
        providers: ProviderClient,
        confirmation: Option<ConfirmationKey>,
    ) -> Self {
        let SkillService { auth, catalog, commands, executions, memory, .. } = service.clone();
        let bundles = Arc::new(BundleReader::new(service.client()));
        let (providers, confirmation) = (Arc::new(providers), confirmation.map(Arc::new));
        let mcp_servers = Arc::new(McpServers::new(Arc::clone(&executions), Arc::clone(&metrics)));
        let (tool_refusals, learning, limiter) = (Arc::default(), Arc::default(), Arc::default());
        Self {
            auth,
            bundles,
            catalog,
            commands,
            executions,
            mcp_servers,
            memory,
            metrics,
            providers,
            tool_refusals,
            learning,
            limiter,
            confirmation,
        }
    }

    /// The signature of ids of what a provider stores for callers of a namespace, if the gateway has a key.
    fn id_binding(&self, namespace: &str) -> Option<IdBinding> {
        Some(self.confirmation.as_ref()?.continuation_key().bind_ids(namespace))
    }

    /// Starts the record of a model request.
    fn record(&self, caller: &Caller, dialect: DialectName, model: &str) -> Arc<RequestRecord> {
        RequestRecord::new(self.metrics.clone(), self.limiter.clone(), caller, dialect, model)
    }
}

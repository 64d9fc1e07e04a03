//! Handles and state that every part of the operator shares.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{Api, Client};
use skillet_api::policy::NodeStatus;
use skillet_kube::Leadership;
use skillet_workspace::WorkspaceClient;

use crate::{
    catalog::Catalog,
    checks::Checks,
    egress::Egress,
    execution::{KeptOutputs, McpSessions},
    health::Health,
    metrics::Metrics,
    pace::Pace,
    report::Reporter,
    revision::NewestRevision,
    sandbox::{PodWatch, Remover},
    settings::SandboxSettings,
    version_pins::VersionPins,
};

/// Shared handles; cheap to clone through its Arc.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) settings: SandboxSettings,
    /// The operator's own namespace.
    pub(crate) namespace: String,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) pods: PodWatch,
    pub(crate) remover: Remover,
    pub(crate) newest_version: NewestRevision,
    pub(crate) checks: Arc<Checks>,
    pub(crate) pace: Pace,
    /// Versions that queued and running executions use.
    pub(crate) version_pins: Arc<VersionPins>,
    /// MCP servers that executions keep running here.
    pub(crate) mcp_sessions: McpSessions,
    /// The way to hosts that skills name.
    pub(crate) egress: Egress,
    /// The store of the callers' files.
    pub(crate) workspaces: Option<WorkspaceClient>,
    /// Outputs of searches.
    pub(crate) kept_outputs: KeptOutputs,
    /// Proofs of all probed nodes, of which the policy's status shows some.
    pub(crate) probed: Mutex<Vec<NodeStatus>>,
    pub(crate) reporter: Reporter,
    pub(crate) metrics: Metrics,
    pub(crate) health: Health,
    /// The right to start runs. A sandbox obeys only the leader of the latest term that it has heard of.
    pub(crate) leadership: Leadership,
}

impl Context {
    /// Jobs of the sandbox namespace.
    pub(crate) fn sandbox_jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), &self.settings.namespace)
    }

    /// Pods of the sandbox namespace.
    pub(crate) fn sandbox_pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.settings.namespace)
    }
}

//! What every part of the operator shares.

use std::sync::Arc;

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{Api, Client};

use crate::{
    catalog::Catalog,
    in_use::InUse,
    metrics::Metrics,
    report::Reporter,
    sandbox::{PodHub, Remover},
    settings::SandboxSettings,
};

/// Shared handles; cheap to clone through its Arc.
pub struct Context {
    pub client: Client,
    pub settings: SandboxSettings,
    pub catalog: Arc<Catalog>,
    pub pods: PodHub,
    pub remover: Remover,
    /// Versions that queued and running executions use.
    pub in_use: Arc<InUse>,
    pub reporter: Reporter,
    pub metrics: Metrics,
    /// Grows with every start of an operator: a sandbox obeys only the newest it has heard of.
    pub epoch: u64,
}

impl Context {
    /// Jobs of the sandbox namespace.
    pub fn sandbox_jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), &self.settings.namespace)
    }

    /// Pods of the sandbox namespace.
    pub fn sandbox_pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.settings.namespace)
    }
}

//! What every route is given.

use std::sync::Arc;

use skillet_llm::confirmation::ConfirmationKey;
use tokio_util::sync::CancellationToken;

use crate::{
    executor::Executor, identity::Identity, metrics::Metrics, room::Room, skills::Skills, upstream::Keys,
};

/// Shared by all requests; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    pub identity: Arc<Identity>,
    pub skills: Arc<Skills>,
    pub executor: Arc<Executor>,
    pub metrics: Arc<Metrics>,
    /// Memory for requests.
    pub room: Arc<Room>,
    pub upstream: reqwest::Client,
    /// The platform's keys for providers.
    pub keys: Arc<Keys>,
    /// Namespace of the operator, where the platform's provider keys are.
    pub namespace: Arc<str>,
    /// Cancelled when the gateway is to stop: what only waits for news ends then.
    pub stop: CancellationToken,
    pub client: kube::Client,
    /// Of all gateways of the installation. Without it no hybrid skill is offered to models.
    pub confirmation: Option<Arc<ConfirmationKey>>,
}

impl Gateway {
    /// Whether every watch has seen the cluster as it is.
    pub fn is_synced(&self) -> bool {
        self.skills.is_synced() && self.identity.is_synced() && self.executor.is_synced()
    }
}

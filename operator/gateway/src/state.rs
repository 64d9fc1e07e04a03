//! What every route is given.

use std::sync::Arc;

use crate::{executor::Executor, identity::Identity, skills::Skills};

/// Shared by all requests; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    pub identity: Arc<Identity>,
    pub skills: Arc<Skills>,
    pub executor: Arc<Executor>,
    pub upstream: reqwest::Client,
    /// Namespace of the operator, where the platform's provider keys are.
    pub namespace: Arc<str>,
    pub client: kube::Client,
}

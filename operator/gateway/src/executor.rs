//! Runs a skill: makes a SkillExecution and waits for its end on the one watch that all requests share.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use skillet_api::SkillExecution;
use thiserror::Error;

use crate::identity::Caller;

/// What is to be run for whom.
#[derive(Clone, Debug)]
pub struct Order {
    pub caller: Caller,
    /// Namespace of the skill, where the execution is made.
    pub namespace: Arc<str>,
    pub skill: Arc<str>,
    /// Version constraint; the newest where none is given.
    pub version: Option<String>,
    pub input: Value,
    pub session: Option<String>,
    pub timeout: Option<Duration>,
    /// The same key is the same execution, whatever replica or restart lies between.
    pub idempotency: Option<String>,
}

#[derive(Debug, Error)]
pub enum ExecutorError {
    #[error("could not create a SkillExecution in namespace {namespace}")]
    Create { namespace: String, source: Box<kube::Error> },
    /// The same key was used with another skill or input.
    #[error("the idempotency key was used for another call")]
    Conflict,
    #[error("SkillExecution {namespace}/{name} was deleted before it ended")]
    Gone { namespace: String, name: String },
    #[error("SkillExecution {namespace}/{name} has not ended within {limit:?}")]
    TooLate { namespace: String, name: String, limit: Duration },
}

/// Makes executions and waits for them.
pub struct Executor {
    #[allow(dead_code)]
    client: kube::Client,
}

impl Executor {
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// Makes the execution, or finds the one that the same idempotency key made.
    pub async fn start(&self, order: &Order) -> Result<Arc<SkillExecution>, ExecutorError> {
        Err(ExecutorError::Gone { namespace: order.namespace.to_string(), name: String::new() })
    }

    /// Waits for the end of an execution.
    pub async fn ended(
        &self,
        execution: &SkillExecution,
        limit: Duration,
    ) -> Result<Arc<SkillExecution>, ExecutorError> {
        let name = execution.metadata.name.clone().unwrap_or_default();
        Err(ExecutorError::TooLate { namespace: String::new(), name, limit })
    }

    /// Asks for the end of an execution.
    pub async fn cancel(&self, _execution: &SkillExecution) -> Result<(), ExecutorError> {
        Ok(())
    }
}

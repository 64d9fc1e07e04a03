//! The services that the MCP server calls.

use std::{future::Future, sync::Arc};

use futures::stream::BoxStream;
use http::HeaderMap;
use serde::Serialize;
use skillet_api::{Skill, skill::Mode};
use tokio::sync::watch;

use crate::{
    auth::{AuthError, Caller},
    catalog::CachedSkill,
    executions::{Execution, ExecutionError, ExecutionRequest, Metadata},
    memory::MemoryPool,
    resolve::Shelves,
    service::ServiceError,
};

/// A change of a skill's mode or switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Switch {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// Executions, the newest first. They are read while they are taken: each may be as large as its output.
pub struct Runs<'a> {
    /// The number of all of them.
    pub total: usize,
    pub newest: BoxStream<'a, Result<Arc<Execution>, ExecutionError>>,
}

/// The gateway as the MCP server sees it.
pub trait Backend: Shelves + 'static {
    /// Authenticates the caller of a request by its headers.
    fn identify(&self, headers: &HeaderMap) -> impl Future<Output = Result<Caller, AuthError>> + Send;

    /// Memory for requests.
    fn memory(&self) -> &MemoryPool;

    /// A number that grows with each change of what the shelves show.
    fn changes(&self) -> watch::Receiver<u64>;

    /// The number of the last change in a namespace.
    fn last_change(&self, namespace: &str) -> u64;

    /// Makes the execution, or finds the one that the same idempotency key made.
    fn start(
        &self,
        order: &ExecutionRequest,
    ) -> impl Future<Output = Result<Arc<Execution>, ExecutionError>> + Send;

    /// The execution that the order's idempotency key has made in this namespace. Makes none.
    fn made(
        &self,
        order: &ExecutionRequest,
        namespace: &str,
    ) -> impl Future<Output = Result<Option<Arc<Execution>>, ExecutionError>> + Send;

    /// The states of an execution from now on; the end is among them.
    fn states(&self, execution: &Execution) -> BoxStream<'_, Result<Arc<Execution>, ExecutionError>>;

    /// Asks for the end of an execution, unless someone waits for it: follows its states, by whatever route.
    fn cancel_unless_wanted(&self, execution: &Metadata) -> impl Future<Output = ()> + Send;

    /// Changes this very skill, not one that was made again under its name. Rights are checked before.
    fn switch(
        &self,
        skill: &CachedSkill,
        switch: Switch,
    ) -> impl Future<Output = Result<Skill, ServiceError>> + Send;

    /// The caller's executions in these namespaces, of which at most `limit` are read.
    fn executions(
        &self,
        caller: &Caller,
        namespaces: &[Arc<str>],
        limit: usize,
    ) -> impl Future<Output = Result<Runs<'_>, ServiceError>> + Send;
}

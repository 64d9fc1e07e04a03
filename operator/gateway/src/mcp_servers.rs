//! MCP servers of skills: a session with each in a conversation, the list of its tools, and calls.
//!
//! A session is a SkillExecution with `mcpServer`, and each call another one with `mcpCall`. The name of a session follows from
//! caller, server and conversation, so every replica finds the same. One that has ended gets a successor. Lists of tools are
//! kept for each sealed version: what they depend on is sealed with it.

mod tools;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt as _, future::join_all};
use skillet_api::{Reason, mcp::McpCall};
use skillet_kube::lock;
use tokio::time::{Instant, timeout};
use tracing::warn;

use crate::{
    auth::Caller,
    executions::{Execution, ExecutionClient, ExecutionError, ExecutionRequest, McpPart},
    metrics::Metrics,
};

pub(crate) use self::tools::ServerTool;

/// Most time until all servers of a request have listed their tools.
const LIST_TIME: Duration = Duration::from_secs(20);
/// A server that listed no tools is asked again after this time.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Most lists, and numbers of sessions, in memory.
const MAX_KEPT: usize = 4096;
/// Sessions of one name that may have ended, one after the other, within a call.
const MAX_SUCCESSORS: u32 = 3;

/// A server of a sealed version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SkillServer {
    pub(crate) namespace: Arc<str>,
    pub(crate) skill: Arc<str>,
    pub(crate) version: Arc<str>,
    /// Stands for the digest of the version.
    pub(crate) seal: u128,
    pub(crate) name: String,
}

/// The conversation of a session.
#[derive(Clone, Copy)]
pub(crate) struct SessionCaller<'a> {
    pub(crate) caller: &'a Caller,
    /// Id of the conversation.
    pub(crate) session: &'a str,
    pub(crate) request_id: Option<&'a str>,
}

/// The client of all servers.
pub(crate) struct McpServers {
    executions: Arc<ExecutionClient>,
    lists: Mutex<HashMap<SkillServer, Listed>>,
    /// The number of the newest session, by its key.
    newest: Mutex<HashMap<String, u32>>,
    metrics: Arc<Metrics>,
}

#[derive(Clone)]
struct Listed {
    tools: Arc<[ServerTool]>,
    /// A failed list counts until then.
    until: Option<Instant>,
}

impl McpServers {
    pub(crate) fn new(executions: Arc<ExecutionClient>, metrics: Arc<Metrics>) -> Self {
        Self { executions, lists: Mutex::default(), newest: Mutex::default(), metrics }
    }

    /// Returns the tools of each server as far as they are known, and starts nothing.
    pub(crate) fn known(&self, servers: &[SkillServer]) -> Vec<Arc<[ServerTool]>> {
        let lists = lock(&self.lists);
        let tools = |server| lists.get(server).map(|listed| listed.tools.clone()).unwrap_or_default();
        servers.iter().map(tools).collect()
    }

    /// Returns the tools of each server. One that fails has none for a while, and its execution says why.
    pub(crate) async fn list_all(
        &self,
        caller: SessionCaller<'_>,
        servers: &[SkillServer],
        deadline: Instant,
    ) -> Vec<Arc<[ServerTool]>> {
        let limit = deadline.saturating_duration_since(Instant::now()).min(LIST_TIME);
        join_all(servers.iter().map(|server| self.list(caller, server, limit).boxed())).await
    }

    async fn list(
        &self,
        caller: SessionCaller<'_>,
        server: &SkillServer,
        limit: Duration,
    ) -> Arc<[ServerTool]> {
        let known = lock(&self.lists).get(server).cloned();
        if let Some(Listed { tools, until }) = known
            && until.is_none_or(|until| Instant::now() < until)
        {
            return tools;
        }
        let order = ExecutionRequest {
            version: Some(server.version.to_string()),
            request_id: caller.request_id.map(ToOwned::to_owned),
            mcp: Some(McpPart::Call(McpCall { session: String::new(), tool: None })),
            cancel_when_dropped: true,
            ..ExecutionRequest::new(caller.caller.clone(), server.namespace.clone(), server.skill.clone())
        };
        let ended = timeout(limit, self.call(&order, caller.session, &server.name, limit)).await;
        let listed = match ended {
            Ok(Ok(execution)) => tools::read(&execution),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("it listed no tools in time".to_owned()),
        };
        let (tools, until) = match listed {
            Ok(tools) => (tools, None),
            Err(why) => {
                self.metrics.server_called("list_failed");
                let SkillServer { namespace, skill, name, .. } = server;
                warn!(%namespace, %skill, server = name, why, "MCP server of a skill gives no tools");
                (Arc::default(), Some(Instant::now() + RETRY_AFTER))
            }
        };
        let mut lists = lock(&self.lists);
        if lists.len() >= MAX_KEPT {
            lists.clear();
        }
        lists.insert(server.clone(), Listed { tools: tools.clone(), until });
        tools
    }

    /// Runs a call of a server, whose session is started if none runs, and waits for its end.
    pub(crate) async fn call(
        &self,
        order: &ExecutionRequest,
        conversation: &str,
        server: &str,
        limit: Duration,
    ) -> Result<Arc<Execution>, ExecutionError> {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        let mut last = None;
        for attempt in 0..MAX_SUCCESSORS {
            let session = self.session(order, conversation, server).await?;
            let mut order = order.clone();
            if let Some(McpPart::Call(call)) = &mut order.mcp {
                call.session.clone_from(&session.metadata.name);
            }
            if attempt > 0 {
                order.idempotency = order.idempotency.map(|key| format!("{key}/{attempt}"));
            }
            let ended = self.executions.run(&order, left()).await?;
            if !was_too_late(&ended) {
                self.metrics.server_called(if is_success(&ended) { "succeeded" } else { "failed" });
                return Ok(self.explain(ended, &session).await);
            }
            // The session ended meanwhile, and the server did not get the call.
            last = Some(self.explain(ended, &session).await);
        }
        self.metrics.server_called("failed");
        last.ok_or(ExecutionError::Conflict)
    }

    /// Returns the session of this conversation that runs, or is about to.
    async fn session(
        &self,
        order: &ExecutionRequest,
        conversation: &str,
        server: &str,
    ) -> Result<Arc<Execution>, ExecutionError> {
        let ExecutionRequest { caller, namespace, skill, version, request_id, .. } = order;
        let key =
            serde_json::json!([caller.user, namespace, skill, version, server, conversation]).to_string();
        let mut number = lock(&self.newest).get(&key).copied().unwrap_or_default();
        loop {
            let order = ExecutionRequest {
                version: version.clone(),
                mcp: Some(McpPart::Server(server.to_owned())),
                session: order.session.clone(),
                request_id: request_id.clone(),
                idempotency: Some(format!("{key}/{number}")),
                ..ExecutionRequest::new(caller.clone(), namespace.clone(), skill.clone())
            };
            let session = self.executions.start(&order).await?;
            if !session.is_ended() {
                let mut newest = lock(&self.newest);
                if newest.len() >= MAX_KEPT {
                    newest.clear();
                }
                newest.insert(key, number);
                return Ok(session);
            }
            number += 1;
        }
    }

    /// Puts the session's own failure into a call whose server has ended.
    async fn explain(&self, call: Arc<Execution>, session: &Execution) -> Arc<Execution> {
        if call.status.as_ref().is_none_or(|status| status.reason != Some(Reason::SessionEnded)) {
            return call;
        }
        let found = self.executions.find(&session.metadata.namespace, &session.metadata.name).await;
        let Ok(Some(found)) = found else { return call };
        let Some(status) = found.status.as_ref().filter(|status| status.message.is_some()) else {
            return call;
        };
        let reason = status.reason.map_or("ApiError", Reason::as_str);
        let message = status.message.as_deref().unwrap_or_default();
        let mut explained = Execution::clone(&call);
        if let Some(status) = &mut explained.status {
            status.message = Some(format!("the MCP server does not run: {reason}: {message}"));
        }
        Arc::new(explained)
    }
}

/// Returns true for a call that its server never got.
fn was_too_late(execution: &Execution) -> bool {
    let Some(status) = &execution.status else { return false };
    status.reason == Some(Reason::SessionEnded) && status.attempts == 0
}

fn is_success(execution: &Execution) -> bool {
    execution.status.as_ref().is_some_and(|status| status.reason == Some(Reason::Succeeded))
}

#[cfg(test)]
mod tests;

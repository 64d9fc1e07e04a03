//! MCP servers of skills: a session with each in a conversation, the list of its tools, and calls.
//!
//! A session is a SkillExecution with `mcpServer`, and each call another one with `mcpCall`. The name of a session follows from
//! caller, server and conversation, so every replica finds the same. One that has ended gets a successor. Lists of tools are
//! kept for each sealed version and namespace of callers.

mod tools;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt as _, future::join_all};
use sha2::{Digest as _, Sha256};
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
/// Most sessions that are known, and bytes of all lists in memory.
const MAX_SESSIONS: usize = 4096;
const MAX_LISTS: usize = 16 << 20;
/// Bytes of a list beside its tools.
const LIST_BYTES: usize = 512;
/// Longest wait for the end of a session that takes no calls any more.
const CLOSING: Duration = Duration::from_secs(5);
/// Ended sessions of one conversation that are passed over.
const MAX_ENDED: u32 = 16;
/// Bytes of the digest of a session's key.
const KEY_BYTES: usize = 16;
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
    lists: Mutex<Lists>,
    /// The number of the newest session, by the digest of its key.
    newest: Mutex<HashMap<String, u32>>,
    metrics: Arc<Metrics>,
}

/// Lists by namespace of the caller and server: a server may list what its caller made of it.
#[derive(Default)]
struct Lists {
    lists: HashMap<(Arc<str>, SkillServer), Listed>,
    bytes: usize,
}

impl Lists {
    fn get(&self, namespace: &Arc<str>, server: &SkillServer) -> Option<&Listed> {
        self.lists.get(&(namespace.clone(), server.clone()))
    }

    /// Keeps a list. A failure takes the place of no success.
    fn put(&mut self, namespace: &Arc<str>, server: &SkillServer, listed: Listed) {
        let is_known = self.get(namespace, server).is_some_and(|known| known.until.is_none());
        if is_known && listed.until.is_some() {
            return;
        }
        let bytes = LIST_BYTES + listed.tools.iter().map(|tool| tool.bytes).sum::<usize>();
        if self.bytes + bytes > MAX_LISTS {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.lists.insert((namespace.clone(), server.clone()), listed);
    }
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
    pub(crate) fn known(&self, caller: &Caller, servers: &[SkillServer]) -> Vec<Arc<[ServerTool]>> {
        let lists = lock(&self.lists);
        let listed = |server| lists.get(&caller.namespace, server);
        let tools = |server| listed(server).map(|listed| listed.tools.clone()).unwrap_or_default();
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
        let namespace = &caller.caller.namespace;
        let known = lock(&self.lists).get(namespace, server).cloned();
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
        lock(&self.lists).put(namespace, server, Listed { tools: tools.clone(), until });
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
            // The session is about to end, and the server did not get the call.
            self.executions.wait(&session, left().min(CLOSING)).await.ok();
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
        let digest = hex_digest(&key);
        let known = lock(&self.newest).get(&digest).copied();
        let mut number = match known {
            Some(number) => number,
            // Another replica may have begun it, and retention may have removed the first of its sessions.
            None => self.executions.newest_session(namespace, &digest).await?.unwrap_or_default(),
        };
        for _ in 0..MAX_ENDED {
            let order = ExecutionRequest {
                version: version.clone(),
                mcp: Some(McpPart::Server { name: server.to_owned(), session: digest.clone(), number }),
                session: order.session.clone(),
                request_id: request_id.clone(),
                idempotency: Some(format!("{key}/{number}")),
                ..ExecutionRequest::new(caller.clone(), namespace.clone(), skill.clone())
            };
            let session = self.executions.start(&order).await?;
            if !session.is_ended() {
                let mut newest = lock(&self.newest);
                if newest.len() >= MAX_SESSIONS {
                    newest.clear();
                }
                newest.insert(digest, number);
                return Ok(session);
            }
            number += 1;
        }
        Err(ExecutionError::Conflict)
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

fn hex_digest(text: &str) -> String {
    Sha256::digest(text)
        .iter()
        .take(KEY_BYTES)
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
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

//! Tools of MCP servers of skills in a model request: their names, and the way from a call to its server.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use skillet_api::mcp::McpCall;
use skillet_llm::{
    DialectName, ToolDefinition,
    tool_names::{OfferTable, SkillIdentity},
};
use tokio::time::Instant;

use super::{
    ModelState,
    offered_tools::{OfferedTool, OfferedTools, Target},
};
use crate::mcp_servers::{ServerTool, SessionCaller, SkillServer};

/// Most servers whose tools one request gets.
const MAX_SERVERS: usize = 8;

/// A tool of a server, and the conversation in which it was offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerTarget {
    pub namespace: String,
    pub skill: String,
    pub version: String,
    pub mcp_server: String,
    pub mcp_tool: String,
    /// Id of the conversation's sessions.
    pub mcp_session: String,
}

impl ServerTarget {
    /// Returns the skill that the server belongs to.
    pub(super) fn skill(&self) -> Target {
        let Self { namespace, skill, version, .. } = self.clone();
        Target { namespace, skill, version, confirm: false }
    }

    /// Returns the call for an execution. Its session is known when it is made.
    pub(super) fn call(&self) -> McpCall {
        McpCall { session: String::new(), tool: Some(self.mcp_tool.clone()) }
    }

    fn is_of(&self, server: &SkillServer) -> bool {
        *self.namespace == *server.namespace
            && *self.skill == *server.skill
            && *self.version == *server.version
            && self.mcp_server == server.name
    }
}

/// Lists the tools of servers for a request, apart from servers whose tools it has. A server that has to be started first is
/// asked until this time, or left out.
pub(super) async fn list(
    gateway: &ModelState,
    caller: SessionCaller<'_>,
    (dialect, request): (DialectName, &Value),
    offered: &OfferedTools,
    servers: &[SkillServer],
    start_until: Option<Instant>,
) -> ListedTools {
    let is_new = |server: &&SkillServer| {
        !offered.any_target(|_, tool| matches!(tool, OfferedTool::Server(target) if target.is_of(server)))
    };
    let new: Vec<SkillServer> = servers.iter().filter(is_new).take(MAX_SERVERS).cloned().collect();
    if new.is_empty() || offered.withheld.is_some() {
        return ListedTools::default();
    }
    let lists = match start_until {
        Some(deadline) => gateway.mcp_servers.list_all(caller, &new, deadline).await,
        None => gateway.mcp_servers.known(caller.caller, &new),
    };
    let bytes = lists.iter().flat_map(|tools| tools.iter()).map(|tool| tool.bytes).sum();
    let tools = named(dialect, request, offered, new.iter().zip(&lists), caller.session);
    ListedTools { tools, bytes }
}

/// Tools of servers with their names in one request.
#[derive(Default)]
pub(super) struct ListedTools {
    tools: Vec<(ToolDefinition, OfferedTool)>,
    /// Bytes of memory that they take.
    pub(super) bytes: usize,
}

impl ListedTools {
    /// Adds the tools to the request and its offer.
    pub(super) fn add_to(self, dialect: DialectName, request: &mut Value, offered: &OfferedTools) {
        let definitions: Vec<ToolDefinition> =
            self.tools.iter().map(|(definition, _)| definition.clone()).collect();
        // A request whose tools have another shape was refused before.
        if !definitions.is_empty() && dialect.dialect().append_tools(request, &definitions).is_ok() {
            offered.attach(self.tools);
        }
    }
}

/// Names the tools unlike all that the request has, as many as it has room for.
fn named<'a>(
    dialect: DialectName,
    request: &Value,
    offered: &OfferedTools,
    servers: impl Iterator<Item = (&'a SkillServer, &'a Arc<[ServerTool]>)>,
    session: &str,
) -> Vec<(ToolDefinition, OfferedTool)> {
    let present = dialect.dialect().client_tool_names(request);
    let room = dialect.max_tools().map_or(usize::MAX, |most| most.saturating_sub(present.len()));
    let each: Vec<(String, String, &SkillServer, &ServerTool)> = servers
        .flat_map(|(server, tools)| tools.iter().map(move |tool| (server, tool)))
        .take(room)
        .map(|(server, tool)| {
            let owner = format!("{}/{}", server.namespace, server.skill);
            (owner, format!("mcp__{}__{}", server.name, tool.name), server, tool)
        })
        .collect();
    let identities = each.iter().map(|(owner, name, server, tool)| {
        (SkillIdentity { namespace: owner, name, version: &server.version }, (*server, *tool))
    });
    let taken = offered.target_names();
    let reserved = present.into_iter().chain(taken.iter().map(|name| &**name));
    let table = OfferTable::new(reserved, identities);
    let tool = |(name, (server, tool)): (&Arc<str>, &(&SkillServer, &ServerTool))| {
        let definition = ToolDefinition {
            name: name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        };
        let target = ServerTarget {
            namespace: server.namespace.to_string(),
            skill: server.skill.to_string(),
            version: server.version.to_string(),
            mcp_server: server.name.clone(),
            mcp_tool: tool.name.clone(),
            mcp_session: session.to_owned(),
        };
        (definition, OfferedTool::Server(target))
    };
    table.iter().map(tool).collect()
}

#[cfg(test)]
mod tests;

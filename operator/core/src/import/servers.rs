//! MCP servers that a file or its bundle names, as those of a Skill.

use serde_json::{Map, Value, json};
use skillet_api::mcp::McpServer;
use skillet_instructions::{collect::Collected, mcp, tree::FileTree};

use crate::skill::server_problem;

/// The file of a bundle that names servers.
const FILE: &str = ".mcp.json";

/// Returns the servers and the place that names them, or the reason why they cannot be read.
pub(super) fn named(
    tree: &FileTree,
    found: &Collected,
) -> (&'static str, Result<Map<String, Value>, String>) {
    let Some(real) = found.files.get(FILE) else {
        return ("mcp_tools", Ok(found.skill.document.mcp_servers.clone()));
    };
    let text = tree.content(real).unwrap_or_default();
    let config = serde_json::from_slice::<Value>(text).map_err(|error| error.to_string());
    (FILE, config.and_then(|config| mcp::servers(&config)))
}

/// Returns those of the servers that a sandbox can run, in the form of the API.
pub(super) fn of_skill(tree: &FileTree, found: &Collected) -> Map<String, Value> {
    let named = named(tree, found).1.unwrap_or_default();
    named.iter().filter_map(|(name, server)| Some((name.clone(), of_server(name, server)?))).collect()
}

fn of_server(name: &str, server: &Value) -> Option<Value> {
    let is_here = server["cwd"].as_str().is_none_or(|folder| matches!(folder, "." | "${SKILL_ROOT}"));
    let is_stdio = server["transport"].as_str().is_none_or(|transport| transport == "stdio");
    if !is_here || !is_stdio || server.get("url").is_some() || server["enabled"] == false {
        return None;
    }
    let mut fields = json!({ "command": server["command"] });
    for field in ["args", "env"] {
        if let Some(value) = server.get(field) {
            fields[field] = value.clone();
        }
    }
    let read: McpServer = serde_json::from_value(fields.clone()).ok()?;
    server_problem(name, &read).is_none().then_some(fields)
}

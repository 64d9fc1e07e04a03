//! The MCP server at `/mcp`: one tool for each skill that the caller may run, four to manage them, and those for instructions.
//!
//! A request goes through `http` (authentication and sessions), rmcp (the protocol) and `server`. Then `tools` lists
//! what the caller may call, `prompts` what its users may name, `resources` what it may read, `instruction_tools` reads for a model, `call` runs a skill, or `management` does what a person would do with kubectl.
//! `idempotent_calls` decides who may cancel a call with a key. `notifications` reports changes of the lists.
//!
//! Nothing here outlives a request except notifications. Clients of protocol 2026-07-28 send requests that stand for themselves,
//! and any replica answers them. Clients of earlier protocols open a session; its id names its owner, and a replica
//! that does not know the session opens it again under the same id, so that it may go from replica to replica. Only a
//! cancellation must reach the replica that runs the call; one that does not leaves the run to its own time limit.

mod call;
mod http;
mod idempotent_calls;
mod instruction_tools;
mod management;
mod management_tool;
mod notifications;
mod prompts;
mod resources;
mod server;
mod session;
#[cfg(test)]
mod tests;
mod tool_result;
mod tools;

use std::time::Duration;

use axum::Router;

use crate::service::SkillService;

/// The timeouts and intervals of the server.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Between two progress notices of a run.
    pub progress: Duration,
    /// The longest time that a call waits for its run. The run itself continues after that.
    pub call: Duration,
    /// From the first change to the notice of it: changes come in bursts.
    pub settle: Duration,
    /// A session that is not used is closed; it opens again when it is used.
    pub idle: Duration,
}

/// Returns the routes of the MCP server. When the gateway stops, streams of notifications end at once, and running calls
/// are answered.
pub fn routes(service: SkillService) -> Router {
    let call = Duration::from_secs(15 * 60);
    let timing = Timing {
        progress: Duration::from_secs(5),
        call,
        settle: Duration::from_millis(200),
        // Longer than a call, which a closed session would cancel.
        idle: call + Duration::from_secs(5 * 60),
    };
    http::routes(service, timing)
}

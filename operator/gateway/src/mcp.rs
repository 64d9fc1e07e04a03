//! The MCP server at `/mcp`: one tool for each skill that the caller may run, and four to manage them.
//!
//! A request goes `front` (who asks) -> rmcp (the protocol) -> `server` -> `catalogue` (what is listed), `call` (a
//! skill is run; with a key, `keyed` tells who may cancel that) or `manage` (the four tools). `notices` tells clients
//! that their list has changed. What the server needs of the gateway is `backend`, so that none of this knows the
//! cluster.
//!
//! Nothing here outlives a request but notices. Clients of protocol 2026-07-28 send requests that stand for themselves,
//! and any replica answers them. Clients of earlier protocols open a session; its id names its owner, and a replica
//! that does not know the session opens it again under the same id, so that it may go from replica to replica. Only a
//! cancellation must reach the replica that runs the call; one that does not leaves the run to its own time limit.

mod backend;
mod call;
mod gateway_backend;
mod http;
mod idempotent_calls;
mod management;
mod notifications;
mod server;
mod session;
#[cfg(test)]
mod tests;
mod tool_result;
mod tools;

use std::{sync::Arc, time::Duration};

use axum::Router;
use tokio_util::sync::CancellationToken;

pub use self::backend::{Backend, BackendError, Runs, Switch};

/// How long the server waits for what.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Between two progress notices of a run.
    pub progress: Duration,
    /// The longest a call waits for its run; the run itself goes on.
    pub call: Duration,
    /// From the first change to the notice of it: changes come in bursts.
    pub settle: Duration,
    /// A session that is not used is closed; it opens again when it is used.
    pub idle: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let call = Duration::from_secs(15 * 60);
        Self {
            progress: Duration::from_secs(5),
            call,
            settle: Duration::from_millis(200),
            // Longer than a call, which a closed session would cancel.
            idle: call + Duration::from_secs(5 * 60),
        }
    }
}

/// The routes of the MCP server. When `stop` is cancelled, clients that only wait for notices are let go, so that the
/// server can end; calls under way are answered.
pub fn routes<B: Backend, S: Clone + Send + Sync + 'static>(
    backend: Arc<B>,
    stop: &CancellationToken,
) -> Router<S> {
    http::routes(backend, stop, Timing::default())
}

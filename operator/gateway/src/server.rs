//! The list of routes, and the server around them.

use axum::{Router, routing::get};

use crate::state::Gateway;

/// All routes.
pub fn router(gateway: Gateway) -> Router {
    Router::new().route("/healthz", get(async || "ok")).with_state(gateway)
}

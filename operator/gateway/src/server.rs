//! The list of routes, and the server around them.

use axum::{Router, routing::get};

use crate::{rest, state::Gateway};

/// All routes.
pub fn router(gateway: Gateway) -> Router {
    Router::new().route("/healthz", get(async || "ok")).merge(rest::routes()).with_state(gateway)
}

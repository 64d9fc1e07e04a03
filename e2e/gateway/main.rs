//! The gateway's lane: real clients, unmodified, through the running gateway to a scripted model and back.
//!
//! A program of its own, since it changes where the gateway finds its model providers. Needs `SKILLET_E2E=1` and a
//! cluster with Skillet in it, like the others; further variables are in `src/lib.rs`.

mod clients;
mod commands;
mod conversations;
mod fixture;
mod graceful_shutdown;
mod keys;
mod mcp_servers;
mod openapi_conformance;
mod packages;
mod readme;
mod rollout;
mod sdks;
mod tenant_isolation;
mod update_latency;

//! The gateway: agents talk to it, and their models get the platform's skills as tools.
//!
//! A request passes `auth` (the caller), `catalog` (its skills), one of `model`, `rest` or `mcp` (the route) and
//! `executions` (the SkillExecution). `memory` bounds what a request may hold. The gateway keeps no state of its own: two
//! replicas give the same answers, and a restart loses nothing. `learning` counts for a minute, and keeps the rest in the
//! cluster.

pub mod admin;
pub mod auth;
mod bundles;
pub mod catalog;
mod commands;
mod compute;
pub mod embeddings;
pub mod error;
pub mod executions;
pub mod idempotency;
pub mod learning;
pub mod mcp;
mod mcp_servers;
pub mod memory;
pub mod metrics;
pub mod model;
pub mod process_metrics;
pub mod request_id;
pub mod resolve;
pub mod rest;
pub mod server;
mod service;
pub mod state_maps;
#[cfg(test)]
mod testing;
pub mod tls;
mod workspace;

pub use skillet_llm::confirmation::ConfirmationKey;

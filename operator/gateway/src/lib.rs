//! The gateway: agents talk to it, and models behind it get the platform's skills.
//!
//! A request goes one way: `identity` (who asks) -> `skills` (what that caller sees) -> `proxy` or `rest` or `mcp`
//! (what is asked) -> `executor` (runs it as a SkillExecution) -> answer. It keeps no state of its own: two replicas
//! give the same answers, and a restart loses nothing.

pub mod admin;
pub mod auth;
pub mod catalog;
pub mod error;
pub mod executions;
#[cfg(test)]
mod gateway_bed;
pub mod idempotency;
pub mod mcp;
pub mod memory;
pub mod metrics;
pub mod model;
pub mod request_id;
pub mod resolve;
pub mod rest;
pub mod server;
mod service;
pub mod state;
pub mod tls;

pub use skillet_llm::confirmation::ConfirmationKey;

//! The gateway: agents talk to it, and models behind it get the platform's skills.
//!
//! A request goes one way: `identity` (who asks) -> `skills` (what that caller sees) -> `proxy` or `rest` or `mcp`
//! (what is asked) -> `executor` (runs it as a SkillExecution) -> answer. It keeps no state of its own: two replicas
//! give the same answers, and a restart loses nothing.

pub mod admin;
pub mod conversation;
pub mod error;
pub mod executor;
#[cfg(test)]
mod fake_api;
#[cfg(test)]
mod gateway_bed;
pub mod idempotency;
pub mod identity;
pub mod look_up;
pub mod mcp;
pub mod metrics;
pub mod offering;
pub mod proxy;
pub mod request_id;
pub mod rest;
pub mod room;
pub mod server;
pub mod skills;
pub mod state;
pub mod stateless;
pub mod tls;
pub mod unread;
pub mod upstream;

pub use skillet_llm::confirmation::ConfirmationKey;

//! Keeps Skills in step with the repositories and artifacts of SkillSources.
//!
//! gather -> fetch -> plan -> apply -> status. The process has a network and parses what others wrote, so it has an identity of
//! its own with few rights: it writes Skills, and nothing else, under its own field manager.

mod allowed_hosts;
mod apply;
mod context;
mod due;
mod failure;
mod fetch;
mod gather;
mod git;
mod http_client;
mod metrics;
mod oci;
mod plan;
mod reconcile;
mod selection;
mod status;
#[cfg(feature = "testing")]
pub mod testing;

pub use context::Settings;
pub use metrics::Metrics;
pub use reconcile::run;

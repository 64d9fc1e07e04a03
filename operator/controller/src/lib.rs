//! The operator: reconcilers, the engine that runs executions, and the sandboxes they run in.
//!
//! `run` lists the parts. Each kind has a driver (`skill`, `execution`, `policy`) that reads as its own explanation.

pub mod applied;
pub mod catalog;
pub mod client;
pub mod context;
pub mod execution;
pub mod in_use;
mod isolation;
pub mod metrics;
pub mod policy;
pub mod report;
pub mod retention;
pub mod run;
pub mod sandbox;
pub mod settings;
pub mod skill;

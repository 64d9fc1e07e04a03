//! The operator: reconcilers, the engine that runs executions, and the sandboxes they run in.
//!
//! `run` lists the parts. Each kind has a driver (`skill`, `execution`, `policy`) that reads as its own explanation.

pub mod catalog;
pub mod context;
pub mod execution;
mod isolation;
pub mod metrics;
pub mod policy;
pub mod report;
pub mod retention;
mod revision;
pub mod run;
pub mod sandbox;
pub mod settings;
pub mod skill;
pub mod version_pins;

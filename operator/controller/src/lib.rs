//! The operator: reconcilers, the engine that runs executions, and the sandboxes they run in.
//!
//! `run` lists the parts. Each kind has a driver (`skill`, `execution`, `policy`) that reads as its own explanation.

mod catalog;
mod checks;
mod context;
pub mod egress;
mod execution;
pub mod health;
mod isolation;
pub mod metrics;
mod pace;
mod policy;
mod report;
mod retention;
mod revision;
pub mod run;
mod sandbox;
pub mod settings;
mod skill;
mod version_head;
mod version_pins;

//! The end-to-end lane: what the cluster itself must do, one file per subject.
//!
//! `SKILLET_E2E=1` and a cluster with Skillet (`make deploy`) are needed; without the variable every test says that
//! it is skipped. The harness is the library beside this folder.

mod browser;
mod cancelling;
mod confinement;
mod egress;
mod examples;
mod failures;
mod health;
mod images;
mod lost_sandboxes;
mod mcp_servers;
mod metrics;
mod outputs;
mod plugin;
mod policy;
mod programs;
mod refusals;
mod scripts;
mod secrets;
mod sources;
mod time_limits;
mod unparsable;
mod versions;
mod workspaces;

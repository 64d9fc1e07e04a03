//! Tests against a real kube-apiserver and etcd, started for this program alone.
//!
//! They check the API server's rules for the kinds, and the operator with exactly the rights that the chart grants. There
//! is no kubelet, so no program runs.
//!
//! `SKILLET_INTEGRATION=1 cargo test -p skillet-controller --test integration`; without the variable each test reports that
//! it was skipped. The control plane's programs come from PATH, KUBEBUILDER_ASSETS or the local cluster's cache.

// Helpers here are part of tests, too.
#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub)]

mod admission_rights;
mod api_key_rules;
mod audit;
mod cases;
mod chart;
mod content_cases;
mod defaults_and_writers;
mod eventually;
mod execution_rules;
mod idempotence;
mod leadership;
mod legacy_objects;
mod mcp_server_cases;
mod network_cases;
mod network_policy_cases;
mod objects;
mod oci_sources;
mod operator;
mod operator_rbac;
mod policy_rules;
mod refusals;
mod requests;
mod room;
mod seal_record;
mod sealing;
mod server;
mod skill_rules;
mod source_rules;
mod sources;
mod unparsable;
mod user_rbac;
mod version_rules;

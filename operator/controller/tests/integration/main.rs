//! Against a real kube-apiserver and etcd, started for this program alone: what the API server makes of the kinds,
//! and what the operator does with no other rights than the chart gives it. There is no kubelet: nothing runs.
//!
//! `SKILLET_INTEGRATION=1 cargo test -p skillet-controller --test integration`; without the variable each test says
//! that it was skipped. The programs of the control plane come from PATH, KUBEBUILDER_ASSETS or the local cluster's cache.

// What is not a test here is still part of one.
#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub)]

mod audit;
mod cases;
mod chart;
mod content_cases;
mod eventually;
mod execution_rules;
mod objects;
mod operator;
mod people;
mod planted;
mod policy_rules;
mod refusals;
mod requests;
mod rights;
mod sealing;
mod server;
mod skill_rules;
mod twice;
mod unreadable;
mod version_rules;
mod writing;

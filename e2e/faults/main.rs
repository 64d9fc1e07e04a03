//! The faults lane: parts of the cluster are killed, frozen or replaced, and objects come that are many or hostile.
//!
//! A program of its own, run after the journeys: it takes the whole cluster. Needs `SKILLET_E2E=1` and a cluster with
//! Skillet in it, like the other.

mod black_hole;
mod broker;
mod burst;
mod canary;
mod frozen;
mod hostile;
mod kills;
mod load;
mod operator_downtime;
mod released;
mod run_counter;
mod sessions;
mod swarm;

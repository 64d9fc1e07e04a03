//! The faults lane: the operator is killed or sent away, and a thousand executions come at once.
//!
//! A program of its own, run after the journeys: it takes the whole cluster. Needs `SKILLET_E2E=1` and a cluster with
//! Skillet in it, like the other.

mod burst;
mod kills;
mod load;
mod operator_downtime;
mod released;
mod run_counter;

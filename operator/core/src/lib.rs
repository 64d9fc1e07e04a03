//! Decisions of the product: what a skill says, which version runs, whether a run is admitted, what its end means.
//!
//! No cluster and no I/O: nothing here knows a client, a clock or a runtime. The operator, the gateway and the tools
//! call the same functions, so that a rule is written once.

pub mod admission;
pub mod api_key;
pub mod attempts;
pub mod cache;
pub mod content;
pub mod fold;
pub mod image;
pub mod js_number;
pub mod json_text;
mod limits;
pub mod outcome;
pub mod output;
mod problem;
pub mod quantity;
pub mod queue;
pub mod rest;
pub mod retention;
mod sandbox;
pub mod schema;
pub mod skill;
pub mod start_window;
#[cfg(any(test, feature = "testing"))]
pub mod test_rng;
pub mod text;
pub mod version;

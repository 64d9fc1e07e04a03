//! Decisions about skills and runs: validation, versions, admission, retries, outcome and retention.
//!
//! The functions are pure. Nothing here knows a client, a clock, an async runtime or a model provider; time and randomness
//! come in as parameters. The operator, the gateway and the command-line plugin call the same functions, so that each rule
//! is written once.

pub mod admission;
pub mod api_key;
pub mod builtin;
pub mod busiest;
pub mod case_fold;
pub mod content;
pub mod content_cache;
pub mod exact_json;
pub mod expectation;
pub mod glob;
pub mod http;
pub mod import;
pub mod js_number;
pub mod json_text;
pub mod lane;
pub mod mcp_client;
#[cfg(any(test, feature = "testing"))]
pub mod native_skills;
pub mod outcome;
pub mod output;
mod policy_warnings;
pub mod quantity;
pub mod queue;
pub mod rest;
pub mod retention;
pub mod retry;
pub mod schema;
pub mod seal_record;
pub mod skill;
pub mod start_window;
#[cfg(any(test, feature = "testing"))]
pub mod test_cost;
#[cfg(any(test, feature = "testing"))]
pub mod test_rng;
pub mod text;
pub mod token_bucket;
pub mod version;

pub use policy_warnings::policy_warnings;

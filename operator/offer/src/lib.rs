//! Which skills a model request is offered.
//!
//! A request is read into [`RequestFacts`], a [`Policy`] says how text is read and what a match is worth, one
//! [`Index`] per namespace finds the skills that fit, and [`pick`] chooses among several namespaces. [`explain`] tells
//! for every skill why it was or was not chosen.
//!
//! Pure: nothing here reads a request body of a provider (see [`crate::dialect`]), watches a cluster or knows a caller's
//! rights. Which indexes a caller may see, and in which order, is decided before.

pub mod background;
mod best;
mod candidate;
mod context;
mod explain;
mod index;
mod order;
mod pick;
mod policy;
mod profile;
mod provider;
mod query;
mod score;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;
pub mod tokens;
pub mod words;

pub use candidate::{Candidate, CandidateTool, Standing};
pub use context::{RequestFacts, context_text, reference_texts};
pub use explain::{Explanation, Verdict, explain};
pub use index::{Change, Index, Scratch};
pub use order::compare_names;
pub use pick::{Ask, Dropped, Offer, Offered, Reason, Switch, pick};
pub use policy::{Policy, Reading, Weights};
pub use provider::{Provider, detect_provider};
pub use query::Query;
pub use score::{Scorer, Signal, SignalKind};

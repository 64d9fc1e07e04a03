//! Which skills a model request is offered.
//!
//! A request is read into [`RequestFacts`], a [`Scoring`] says how text is read and what a match is worth, one
//! [`Index`] per namespace finds the skills that fit, and [`select`] chooses among several namespaces. [`explain`] tells
//! for every skill why it was or was not chosen.
//!
//! Pure: nothing here reads a request body of a provider (see [`crate::dialect`]), watches a cluster or knows a caller's
//! rights. Which indexes a caller may see, and in which order, is decided before.

pub mod ascii_words;
pub mod background;
mod candidate;
mod collation;
mod explain;
mod index;
mod provider_family;
mod query;
mod request;
mod score;
mod scoring;
mod select;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;
mod terms;
mod top_k;
pub mod unicode_words;

pub use candidate::{Candidate, CandidateTool, Eligibility};
pub use collation::compare_names;
pub use explain::{Explanation, OfferDecision, explain};
pub use index::{Change, Index, Scratch};
pub use provider_family::{ProviderFamily, provider_family};
pub use query::Query;
pub use request::{RequestFacts, context_text, reference_texts};
pub use score::{Scorer, Signal, SignalKind};
pub use scoring::{MatchMode, Scoring, Weights};
pub use select::{Offer, OfferedSkill, RejectReason, Rejected, Selection, SkillFilter, select};

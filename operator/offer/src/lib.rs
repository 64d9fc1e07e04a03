//! Selection of the skills that one model request is offered as tools.
//!
//! [`RequestFacts`] holds the parts of a request that selection reads. A [`Scoring`] says how text is matched and how many
//! points a match gives. One [`Index`] per namespace finds the skills that match, and [`select()`] chooses among the
//! namespaces. [`explain()`] returns the reason for every skill. The result depends on the arguments alone.
//!
//! Nothing here parses the request body of a provider, watches a cluster or checks a caller's rights. The caller passes the
//! indexes that it may see, the nearest namespace first.

pub mod ascii_words;
mod builtin;
mod candidate;
mod collation;
mod conversation;
mod explain;
mod extra_points;
mod index;
mod learned;
mod offer;
mod provider_family;
mod query;
mod ranked;
mod request;
mod score;
mod scoring;
mod select;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;
mod terms;
mod top_k;
mod unicode_words;
mod vectors;

pub use builtin::find_builtin;
pub use candidate::{Candidate, CandidateTool, Eligibility};
pub use explain::{Explanation, OfferDecision, QuestionTerm, explain, question_terms};
pub use index::{Change, Index, Scratch};
pub use learned::{Learned, LearnedUse, ObservedUse};
pub use offer::{Offer, OfferedSkill, RejectReason, Rejected};
pub use provider_family::ProviderFamily;
pub use query::Query;
pub use request::RequestFacts;
pub use score::{Scorer, Signal, SignalKind};
pub use scoring::{MatchMode, Scoring, Weights};
pub use select::{Selection, SkillFilter, select};
pub use vectors::{
    ModelError, QuestionVectors, StaticEmbeddings, Vector, VectorSpace, background_texts, skill_text,
};

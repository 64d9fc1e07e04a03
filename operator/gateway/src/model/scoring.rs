//! The scoring that the cluster's policy asks for, and the memory of a search.

use std::cell::RefCell;

use skillet_api::gateway::{OfferMatching, OfferPolicy};
use skillet_llm::DialectName;
use skillet_offer::{ProviderFamily, Scoring, Scratch};

thread_local! {
    /// Memory of a search, kept for the next one.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Runs a search with the memory of this thread.
pub(super) fn with_scratch<T>(search: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with_borrow_mut(search)
}

/// Returns the family of a model.
pub(super) fn provider_family(dialect: DialectName, model: &str) -> ProviderFamily {
    // A router behind the gateway may serve any family under one form: the model's name says more than the form.
    match ProviderFamily::of_model(model) {
        ProviderFamily::Other => dialect.into(),
        named => named,
    }
}

/// Returns the rules and numbers of the cluster's policy.
pub(super) fn scoring(spec: &OfferPolicy) -> Scoring {
    let OfferPolicy {
        mode: _,
        search_tools: _,
        matching,
        max_auto_skills,
        max_conversation_skills,
        min_auto_score,
        token_budget: _,
        learning: _,
        embeddings: _,
    } = spec;
    let base = match matching {
        OfferMatching::Ranked => Scoring::ranked(),
        OfferMatching::Words => Scoring::words(),
        OfferMatching::Substring => Scoring::default(),
    };
    Scoring {
        threshold: min_auto_score.map_or(base.threshold, |least| i32::try_from(least).unwrap_or(i32::MAX)),
        maximum: usize::try_from(*max_auto_skills).unwrap_or(usize::MAX),
        conversation_maximum: usize::try_from(*max_conversation_skills).unwrap_or(usize::MAX),
        ..base
    }
}

#[cfg(test)]
mod tests {
    use skillet_offer::MatchMode;

    use super::*;

    #[test]
    fn the_policys_numbers_are_those_of_the_cluster() {
        let spec = OfferPolicy {
            matching: OfferMatching::Words,
            max_auto_skills: 7,
            max_conversation_skills: 8,
            min_auto_score: Some(9),
            token_budget: 1,
            ..OfferPolicy::default()
        };
        let scoring = scoring(&spec);
        assert_eq!((scoring.matching, scoring.maximum, scoring.threshold), (MatchMode::Words, 7, 9));
        assert_eq!(super::scoring(&OfferPolicy::default()), Scoring::ranked());
        let reference = OfferPolicy { matching: OfferMatching::Substring, ..OfferPolicy::default() };
        assert_eq!(super::scoring(&reference), Scoring { conversation_maximum: 10, ..Scoring::default() });
    }
}

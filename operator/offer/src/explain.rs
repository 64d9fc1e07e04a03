//! The decision about each skill, for people. The time grows with the number of skills.

use std::{collections::HashMap, sync::Arc};

use super::{
    Candidate, Eligibility, Index, Offer, RejectReason, Scorer, Scoring, Scratch, Selection, Signal,
    SkillFilter,
    select::{rejection, select},
};

/// The score and the decision of one skill.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub skill: Arc<Candidate>,
    /// Sum of the signals. It decides for skills of mode `auto` only.
    pub score: i32,
    pub signals: Vec<Signal>,
    pub decision: OfferDecision,
}

/// The decision about a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferDecision {
    /// Offered, at this position by importance.
    Offered {
        rank: usize,
    },
    NotOffered(RejectReason),
}

/// Explains the result of [`select`] for every skill: the nearest namespace first, then by name.
pub fn explain(
    scoring: &Scoring,
    indexes: &[&Index],
    selection: &Selection<'_>,
    scratch: &mut Scratch,
) -> Vec<Explanation> {
    let selected = Selected::of(&select(scoring, indexes, selection, scratch));
    let scorer = Scorer::new(scoring.weights, selection.query);
    let mut explanations = Vec::new();
    for (distance, index) in indexes.iter().enumerate() {
        let mut candidates: Vec<&Arc<Candidate>> = index.candidates().collect();
        candidates.sort_by(|a, b| a.name.cmp(&b.name));
        for candidate in candidates {
            let signals = scorer.signals(candidate);
            let score = signals.iter().map(|signal| signal.points).sum();
            let decision = match selected.ranks.get(&key(candidate)) {
                Some(rank) => OfferDecision::Offered { rank: *rank },
                None => OfferDecision::NotOffered(
                    selected.reason(scoring, indexes, selection, candidate, distance, score),
                ),
            };
            explanations.push(Explanation { skill: candidate.clone(), score, signals, decision });
        }
    }
    explanations
}

type Key = (Arc<str>, Arc<str>);

fn key(candidate: &Candidate) -> Key {
    (candidate.namespace.clone(), candidate.name.clone())
}

/// Ranks and rejections of an offer, by namespace and name.
struct Selected {
    ranks: HashMap<Key, usize>,
    rejected: HashMap<Key, RejectReason>,
}

impl Selected {
    fn of(offer: &Offer) -> Self {
        let rejected = offer.rejected.iter().filter_map(|rejected| {
            Some(((rejected.namespace.clone()?, rejected.name.clone()), rejected.reason.clone()))
        });
        Self {
            ranks: offer.offered.iter().map(|offered| (key(&offered.skill), offered.rank)).collect(),
            rejected: rejected.collect(),
        }
    }

    /// Returns the reason why a skill is not offered.
    fn reason(
        &self,
        scoring: &Scoring,
        indexes: &[&Index],
        selection: &Selection<'_>,
        candidate: &Candidate,
        distance: usize,
        score: i32,
    ) -> RejectReason {
        let is_named = |names: &[String]| names.iter().any(|name| **name == *candidate.name);
        match selection.filter {
            SkillFilter::Off => return RejectReason::SwitchedOff,
            SkillFilter::Only(names) | SkillFilter::Exactly(names) if !is_named(names) => {
                return RejectReason::NotNamed;
            }
            SkillFilter::All | SkillFilter::Only(_) | SkillFilter::Exactly(_) => {}
        }
        if let Some(reason) = self.rejected.get(&key(candidate)) {
            return reason.clone();
        }
        if let Some(reason) = rejection(indexes, selection, candidate, distance) {
            return reason;
        }
        match candidate.eligibility() {
            Eligibility::OnMatch if score < scoring.threshold => RejectReason::BelowThreshold,
            Eligibility::OnMatch | Eligibility::Always | Eligibility::Never => RejectReason::OverMaximum,
        }
    }
}

#[cfg(test)]
mod tests;

//! Why each skill was or was not offered: for people, and as slow as there are skills.

use std::{collections::HashMap, sync::Arc};

use super::{
    Ask, Candidate, Index, Offer, Policy, Reason, Scorer, Scratch, Signal, Standing, Switch,
    pick::{objection, pick},
};

/// One skill that the caller can see.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub skill: Arc<Candidate>,
    /// The sum of the signals. It decides for skills of mode `auto` only.
    pub score: i32,
    pub signals: Vec<Signal>,
    pub verdict: Verdict,
}

/// What became of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Offered, at this place by importance.
    Offered {
        rank: usize,
    },
    NotOffered(Reason),
}

/// What [`pick`] does with the same arguments, told for every skill: the nearest namespace first, then by name.
pub fn explain(
    policy: &Policy,
    indexes: &[&Index],
    ask: &Ask<'_>,
    scratch: &mut Scratch,
) -> Vec<Explanation> {
    let outcome = Outcome::of(&pick(policy, indexes, ask, scratch));
    let scorer = Scorer::new(policy.weights, ask.query);
    let mut explanations = Vec::new();
    for (place, index) in indexes.iter().enumerate() {
        let mut candidates: Vec<&Arc<Candidate>> = index.candidates().collect();
        candidates.sort_by(|a, b| a.name.cmp(&b.name));
        for candidate in candidates {
            let signals = scorer.signals(candidate);
            let score = signals.iter().map(|signal| signal.points).sum();
            let verdict = match outcome.ranks.get(&key(candidate)) {
                Some(rank) => Verdict::Offered { rank: *rank },
                None => Verdict::NotOffered(outcome.reason(policy, indexes, ask, candidate, place, score)),
            };
            explanations.push(Explanation { skill: candidate.clone(), score, signals, verdict });
        }
    }
    explanations
}

type Key = (Arc<str>, Arc<str>);

fn key(candidate: &Candidate) -> Key {
    (candidate.namespace.clone(), candidate.name.clone())
}

/// What was picked and dropped, by namespace and name.
struct Outcome {
    ranks: HashMap<Key, usize>,
    dropped: HashMap<Key, Reason>,
}

impl Outcome {
    fn of(offer: &Offer) -> Self {
        let dropped = offer.dropped.iter().filter_map(|dropped| {
            Some(((dropped.namespace.clone()?, dropped.name.clone()), dropped.reason.clone()))
        });
        Self {
            ranks: offer.offered.iter().map(|offered| (key(&offered.skill), offered.rank)).collect(),
            dropped: dropped.collect(),
        }
    }

    /// Why a skill that is not offered is not.
    fn reason(
        &self,
        policy: &Policy,
        indexes: &[&Index],
        ask: &Ask<'_>,
        candidate: &Candidate,
        place: usize,
        score: i32,
    ) -> Reason {
        let is_named = |names: &[String]| names.iter().any(|name| **name == *candidate.name);
        match ask.switch {
            Switch::Off => return Reason::SwitchedOff,
            Switch::Only(names) | Switch::Exactly(names) if !is_named(names) => return Reason::NotNamed,
            Switch::All | Switch::Only(_) | Switch::Exactly(_) => {}
        }
        if let Some(reason) = self.dropped.get(&key(candidate)) {
            return reason.clone();
        }
        if let Some(reason) = objection(indexes, ask, candidate, place) {
            return reason;
        }
        match candidate.standing() {
            Standing::WhenItFits if score < policy.threshold => Reason::BelowThreshold,
            Standing::WhenItFits | Standing::Always | Standing::Never => Reason::OverMaximum,
        }
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;

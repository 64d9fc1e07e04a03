//! The decision about each skill, for people. The time grows with the number of skills.

use std::{collections::HashMap, sync::Arc};

use super::{
    Candidate, Eligibility, Index, Offer, Query, RejectReason, Scorer, Scoring, Scratch, Selection, Signal,
    SkillFilter,
    ranked::{IMPACT_ONE, TermWeight, term_weights},
    select::{rejection, select},
};

/// The score and the decision of one skill.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub skill: Arc<Candidate>,
    /// Sum of the signals. It decides for skills of mode `auto` only.
    pub score: i32,
    pub signals: Vec<Signal>,
    /// Fewest points with which a skill of mode `auto` is offered.
    pub threshold: i32,
    /// Number of the user's turn that added the skill to the offer, if turns count.
    pub turn: Option<usize>,
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
    let terms = last_terms(indexes, selection.query);
    let question = selection.query.questions.last();
    let extra = question.map(|question| question.extra_points(indexes));
    let mut explanations = Vec::new();
    for (distance, index) in indexes.iter().enumerate() {
        let terms = terms.get(distance).map(Vec::as_slice).unwrap_or_default();
        let scorer = Scorer::with_terms(scoring.weights, selection.query, terms, extra.as_deref());
        let mut candidates: Vec<&Arc<Candidate>> = index.candidates().collect();
        candidates.sort_by(|a, b| a.name.cmp(&b.name));
        for candidate in candidates {
            let signals = scorer.signals(candidate);
            let score = signals.iter().map(|signal| signal.points).sum();
            let offered = selected.ranks.get(&key(candidate)).copied();
            let decision = match offered {
                Some((rank, _)) => OfferDecision::Offered { rank },
                None => OfferDecision::NotOffered(
                    selected.reason(scoring, indexes, selection, candidate, distance, score),
                ),
            };
            explanations.push(Explanation {
                skill: candidate.clone(),
                score,
                signals,
                threshold: scoring.threshold,
                turn: offered.map(|(_, turn)| turn).filter(|turn| *turn > 0),
                decision,
            });
        }
    }
    explanations
}

/// A term that the last turn searches, with the points of a skill in which it counts 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionTerm {
    /// Word of the turn. It may differ from the term in more than its form if the term is only related to it.
    pub word: String,
    pub term: String,
    pub points: i32,
}

/// Returns the terms that the last turn of a request searches in the farthest of the namespaces, the heaviest first.
pub fn question_terms(indexes: &[&Index], query: &Query) -> Vec<QuestionTerm> {
    let terms = last_terms(indexes, query).pop().unwrap_or_default();
    let explained = |term: TermWeight| QuestionTerm {
        points: term.points(IMPACT_ONE),
        word: term.word.into(),
        term: term.term.to_string(),
    };
    terms.into_iter().map(explained).collect()
}

fn last_terms(indexes: &[&Index], query: &Query) -> Vec<Vec<TermWeight>> {
    query.questions.last().map(|question| term_weights(question, indexes)).unwrap_or_default()
}

type Key = (Arc<str>, Arc<str>);

fn key(candidate: &Candidate) -> Key {
    (candidate.namespace.clone(), candidate.name.clone())
}

/// Ranks and rejections of an offer, by namespace and name.
struct Selected {
    /// Position by importance, and the turn that added the skill.
    ranks: HashMap<Key, (usize, usize)>,
    rejected: HashMap<Key, RejectReason>,
}

impl Selected {
    fn of(offer: &Offer) -> Self {
        let rejected = offer.rejected.iter().filter_map(|rejected| {
            Some(((rejected.namespace.clone()?, rejected.name.clone()), rejected.reason.clone()))
        });
        Self {
            ranks: offer
                .offered
                .iter()
                .map(|offered| (key(&offered.skill), (offered.rank, offered.turn)))
                .collect(),
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

//! The score of one skill, signal by signal.
//!
//! This is the definition of a score. The index computes the same scores for many skills at once, and its tests compare
//! both.

use std::collections::HashSet;

use super::{
    Candidate, MatchMode, Query, Weights,
    extra_points::ExtraPoints,
    ranked::{SkillTerm, TermWeight, kinds},
    terms::SkillTerms,
};

/// Kind of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignalKind {
    Name,
    NameWord,
    Tag,
    DescriptionWord,
    SchemaWord,
    Example,
    Provider,
    /// A term that calls of the skill had before.
    Learned,
    /// Offers that led to no call.
    Unused,
    /// A vector near to that of the question.
    Vector,
}

/// A match and its points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    pub kind: SignalKind,
    /// Name, word or tag that matched; the provider's name for [`SignalKind::Provider`], the cosine for
    /// [`SignalKind::Vector`].
    pub text: String,
    pub points: i32,
}

/// Scores skills one at a time against one request.
#[derive(Debug)]
pub struct Scorer<'q> {
    weights: Weights,
    query: &'q Query,
    words: HashSet<&'q str>,
    /// Terms of the question, for [`MatchMode::Ranked`].
    terms: &'q [TermWeight],
    /// Points of the question beside those of texts.
    extra: Option<&'q ExtraPoints>,
}

impl<'q> Scorer<'q> {
    pub fn new(weights: Weights, query: &'q Query) -> Self {
        Self::with_terms(weights, query, &[], None)
    }

    pub(crate) fn with_terms(
        weights: Weights,
        query: &'q Query,
        terms: &'q [TermWeight],
        extra: Option<&'q ExtraPoints>,
    ) -> Self {
        Self { weights, query, words: query.words().collect(), terms, extra }
    }

    /// Returns the sum of all signals.
    pub fn score(&self, candidate: &Candidate) -> i32 {
        self.signals(candidate).iter().map(|signal| signal.points).sum()
    }

    /// Returns every match, in the order of the kinds.
    pub fn signals(&self, candidate: &Candidate) -> Vec<Signal> {
        let terms = SkillTerms::of(self.query.matching, candidate);
        let mut signals = match self.query.matching {
            MatchMode::Substring | MatchMode::Words => self.text_signals(&terms),
            MatchMode::Ranked => self.ranked_signals(&terms.weighted),
        };
        signals.extend(self.provider_signal(&terms));
        signals.extend(self.extra.into_iter().flat_map(|extra| extra.signals(candidate)).cloned());
        signals
    }

    fn text_signals(&self, terms: &SkillTerms) -> Vec<Signal> {
        let weights = &self.weights;
        let is_in_text = |pattern: &&String| self.query.text.contains(pattern.as_str());
        let is_word = |word: &&String| self.words.contains(word.as_str());
        let names = terms.name.iter().filter(is_in_text);
        let name_words = terms.name_words.iter().filter(is_word);
        let tags = terms.tags.iter().filter(is_in_text);
        let description = terms.description_words.iter().filter(is_word);
        names
            .map(|name| signal(SignalKind::Name, name, weights.name))
            .chain(name_words.map(|word| signal(SignalKind::NameWord, word, weights.name_word)))
            .chain(tags.map(|tag| signal(SignalKind::Tag, tag, weights.tag)))
            .chain(
                description.map(|word| signal(SignalKind::DescriptionWord, word, weights.description_word)),
            )
            .collect()
    }

    /// Returns a signal for each field of each term, by field.
    fn ranked_signals(&self, skill: &[SkillTerm]) -> Vec<Signal> {
        let mut signals = Vec::new();
        for question in self.terms {
            let Ok(at) = skill.binary_search_by(|term| term.term.cmp(&question.term)) else { continue };
            let Some(SkillTerm { term, impact, shares }) = skill.get(at) else { continue };
            let points = split(question.points(*impact), shares);
            let of_fields = kinds().zip(points).filter(|(_, points)| *points != 0);
            signals.extend(of_fields.map(|(kind, points)| signal(kind, term, points)));
        }
        signals.sort_by_key(|signal| kinds().position(|kind| kind == signal.kind));
        signals
    }

    fn provider_signal(&self, terms: &SkillTerms) -> Option<Signal> {
        let provider = self.query.provider;
        if terms.families.is_empty() {
            return None;
        }
        let is_match = terms.families.contains(provider);
        let points = if is_match { self.weights.provider_match } else { self.weights.provider_mismatch };
        Some(signal(SignalKind::Provider, provider.as_str(), points))
    }
}

/// Splits points by shares into whole numbers of the same sum.
#[expect(clippy::cast_possible_truncation, reason = "a part is no larger than the points")]
fn split<const N: usize>(points: i32, shares: &[f64; N]) -> [i32; N] {
    let mut sum = 0.0;
    let mut given = 0;
    shares.map(|share| {
        sum += share;
        let until = (f64::from(points) * sum).round() as i32;
        let part = until - given;
        given = until;
        part
    })
}

fn signal(kind: SignalKind, text: &str, points: i32) -> Signal {
    Signal { kind, text: text.trim().to_owned(), points }
}

#[cfg(test)]
mod tests;

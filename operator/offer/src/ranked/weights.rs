//! The weights of a question's terms: rare terms weigh, and terms related to the question's words weigh a little.
//!
//! Rarity is counted over the namespaces up to that of a skill. Skills of farther namespaces change no score of a nearer
//! one. A constant number of skills without any term is added to those that are there, so that rarity means the same in
//! a namespace of three skills as in one of thousands.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{
    analysis::{is_general, related},
    fields::IMPACT_ONE,
    question::{Question, QuestionWord},
    typing_errors::correct,
};
use crate::Index;

/// Skills without any term that are added to the real ones.
const BACKGROUND: f64 = 1000.0;

/// Background skills that have a word of everyday talk.
const GENERAL: f64 = 50.0;

/// No term is rarer than one in this many skills.
const RAREST: f64 = 1000.0;

/// Share of a word's weight for a term that is related to it, if a skill has the word itself, and if none has it.
const RELATED: f64 = 0.3;
const RELATED_TO_UNKNOWN: f64 = 0.5;

/// Share of a word's weight for the term that the word seems to be, mistyped.
const CORRECTED: f64 = 0.7;

/// Most words of a turn that is searched for typing errors, and most that are. A longer text says the same more than once.
const MAX_WORDS_CORRECTED_IN: usize = 24;
const MAX_CORRECTED: usize = 3;

/// Most words of a question whose related terms are searched: the words with the highest weight.
const MAX_EXPANDED: usize = 12;

/// Most terms that are searched: those with the highest weight. They bound the time of a search.
const MAX_TERMS: usize = 32;

/// Points of a term with impact 1 and the natural logarithm of its rarity 1. A threshold of 100 points is then 6.5.
const POINTS: f64 = 100.0 / 6.5;

/// Weights are whole numbers, so that a sum does not depend on its order.
const WEIGHT_ONE: u16 = 64;

/// A term of a question, for the skills of one namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TermWeight {
    pub(crate) term: Arc<str>,
    /// Word of the question that led to the term.
    pub(crate) word: Box<str>,
    /// In parts of [`WEIGHT_ONE`] points.
    weight: u16,
}

impl TermWeight {
    /// Returns the points for a skill that has the term with this impact.
    pub(crate) fn points(&self, impact: u16) -> i32 {
        const ONE: u32 = WEIGHT_ONE as u32 * IMPACT_ONE as u32;
        let product = u32::from(self.weight) * u32::from(impact);
        i32::try_from(product.saturating_add(ONE / 2) / ONE).unwrap_or(i32::MAX)
    }
}

/// Returns the terms of a question for each of the indexes, which are in the order of resolution.
pub(crate) fn term_weights(question: &Question, indexes: &[&Index]) -> Vec<Vec<TermWeight>> {
    let mut skills = 0.0;
    let weigh_for = |distance: usize| {
        skills += to_f64(indexes.get(distance).map_or(0, |index| index.searched()));
        weigh(question, Rarity { skills, indexes: indexes.get(..=distance).unwrap_or_default() })
    };
    (0..indexes.len()).map(weigh_for).collect()
}

/// Returns the points of a word by the rarity of its own term in these indexes. `others` more skills have the term.
pub(crate) fn word_points(word: &QuestionWord, others: usize, indexes: &[&Index]) -> f64 {
    let skills = to_f64(indexes.iter().map(|index| index.searched()).sum());
    let rarity = Rarity { skills, indexes };
    let frequency = rarity.frequency(&word.terms.main) + others;
    rarity.weight(frequency, word.terms.is_general) * word.weight * POINTS
}

/// The rarity of terms among the skills of several indexes.
#[derive(Clone, Copy)]
struct Rarity<'a> {
    skills: f64,
    indexes: &'a [&'a Index],
}

impl Rarity<'_> {
    /// Returns the number of skills with a term.
    fn frequency(self, term: &str) -> usize {
        self.indexes.iter().map(|index| index.frequency(term)).sum()
    }

    /// Returns the weight of a term that so many skills have.
    fn weight(self, frequency: usize, is_general: bool) -> f64 {
        let general = if is_general { GENERAL } else { 0.0 };
        ((self.skills + BACKGROUND) / (to_f64(frequency) + general)).min(RAREST).ln()
    }
}

/// A term with its weight and the word that led to it.
type Found<'q> = (f64, Arc<str>, &'q Box<str>);

/// An English word whose related terms are searched, with its weight and their share of it.
struct Expanded<'q> {
    weight: f64,
    share: f64,
    word: &'q QuestionWord,
}

fn weigh(question: &Question, rarity: Rarity<'_>) -> Vec<TermWeight> {
    let (mut found, expanded) = own_terms(question, rarity);
    found.extend(related_terms(question, expanded, rarity));
    let order =
        |a: &Found<'_>, b: &Found<'_>| -> Ordering { b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)) };
    found.sort_by(order);
    // Two words of different languages may have one stem.
    let mut seen = HashSet::new();
    found.retain(|(_, term, _)| seen.insert(term.clone()));
    found.truncate(MAX_TERMS);
    found
        .into_iter()
        .map(|(weight, term, word)| TermWeight { term, word: word.clone(), weight: to_weight(weight) })
        .collect()
}

/// Returns the terms of the words themselves, and the words whose related terms may be searched.
fn own_terms<'q>(question: &'q Question, rarity: Rarity<'_>) -> (Vec<Found<'q>>, Vec<Expanded<'q>>) {
    let (mut found, mut expanded) = (Vec::new(), Vec::new());
    let own_words = question.words.iter().filter(|word| word.weight >= 1.0).count();
    let mut corrections = if own_words <= MAX_WORDS_CORRECTED_IN { MAX_CORRECTED } else { 0 };
    for word in &question.words {
        // The English stem counts only if no skill has the word in its own language.
        let known = std::iter::once(&word.terms.main).chain(&word.terms.english);
        let known = known.map(|term| (term, rarity.frequency(term))).find(|(_, count)| *count > 0);
        let weight = rarity.weight(known.map_or(0, |(_, count)| count), word.terms.is_general) * word.weight;
        match known {
            Some((term, _)) => found.push((weight, term.clone(), &word.word)),
            None if corrections > 0 && word.weight >= 1.0 && !word.terms.is_general => {
                corrections -= 1;
                let correction = correct(&word.terms.main, |term| rarity.frequency(term));
                found.extend(correction.map(|(term, count)| {
                    let weight = rarity.weight(count, is_general(&term)) * word.weight;
                    (CORRECTED * weight, term.into(), &word.word)
                }));
            }
            None => {}
        }
        if word.terms.is_english {
            let share = if known.is_some() { RELATED } else { RELATED_TO_UNKNOWN };
            expanded.push(Expanded { weight, share, word });
        }
    }
    (found, expanded)
}

/// Returns the terms that are related to the words with the highest weight.
fn related_terms<'q>(
    question: &Question,
    mut expanded: Vec<Expanded<'q>>,
    rarity: Rarity<'_>,
) -> impl Iterator<Item = Found<'q>> {
    let own: HashSet<&str> = question.words.iter().map(|word| &*word.terms.main).collect();
    expanded.sort_by(|a, b| {
        b.weight.total_cmp(&a.weight).then_with(|| a.word.terms.main.cmp(&b.word.terms.main))
    });
    let mut best: HashMap<&Arc<str>, (f64, &'q Box<str>)> = HashMap::new();
    for Expanded { weight, share, word } in expanded.into_iter().take(MAX_EXPANDED) {
        for term in related(&word.terms.main).iter().filter(|term| !own.contains(&***term)) {
            let count = rarity.frequency(term);
            if count == 0 {
                continue;
            }
            let weight = share * weight.min(rarity.weight(count, is_general(term)));
            let entry = best.entry(term).or_insert((weight, &word.word));
            if weight > entry.0 {
                *entry = (weight, &word.word);
            }
        }
    }
    best.into_iter().map(|(term, (weight, word))| (weight, term.clone(), word))
}

#[expect(clippy::cast_possible_truncation, reason = "a weight is at most 65535")]
#[expect(clippy::cast_sign_loss, reason = "it is not negative")]
fn to_weight(weight: f64) -> u16 {
    (weight * POINTS * f64::from(WEIGHT_ONE)).round().clamp(0.0, f64::from(u16::MAX)) as u16
}

#[expect(clippy::cast_precision_loss, reason = "no cluster has so many skills")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

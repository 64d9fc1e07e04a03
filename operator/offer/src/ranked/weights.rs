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
    question::Question,
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
    weight: i32,
}

impl TermWeight {
    /// Returns the points for a skill that has the term with this impact.
    pub(crate) fn points(&self, impact: u16) -> i32 {
        // At most 10^6 times 2300, and rounded.
        let one = i64::from(WEIGHT_ONE) * i64::from(IMPACT_ONE);
        let product = i64::from(self.weight) * i64::from(impact);
        i32::try_from((product + one / 2) / one).unwrap_or(i32::MAX)
    }
}

/// Returns the terms of a question for each of the indexes, which are in the order of resolution.
pub(crate) fn term_weights(question: &Question, indexes: &[&Index]) -> Vec<Vec<TermWeight>> {
    let mut skills = 0.0;
    let mut frequencies = Frequencies { indexes: &[], counts: HashMap::new() };
    (0..indexes.len())
        .map(|distance| {
            skills += to_f64(indexes.get(distance).map_or(0, |index| index.searched()));
            frequencies =
                Frequencies { indexes: indexes.get(..=distance).unwrap_or_default(), counts: HashMap::new() };
            weigh(question, skills, &mut frequencies)
        })
        .collect()
}

/// Number of skills with a term, over several indexes.
struct Frequencies<'a> {
    indexes: &'a [&'a Index],
    counts: HashMap<Arc<str>, usize>,
}

impl Frequencies<'_> {
    fn of(&mut self, term: &Arc<str>) -> usize {
        if let Some(count) = self.counts.get(term) {
            return *count;
        }
        let count = self.indexes.iter().map(|index| index.frequency(term)).sum();
        self.counts.insert(term.clone(), count);
        count
    }
}

fn weigh(question: &Question, skills: f64, frequencies: &mut Frequencies<'_>) -> Vec<TermWeight> {
    let rarity = |count: usize, is_general: bool| {
        let general = if is_general { GENERAL } else { 0.0 };
        ((skills + BACKGROUND) / (to_f64(count) + general)).min(RAREST).ln()
    };
    let own: HashSet<&str> = question.words.iter().map(|word| &*word.terms.main).collect();
    let mut found = Vec::new();
    let mut expanded = Vec::new();
    for word in &question.words {
        // The English stem counts only if no skill has the word in its own language.
        let known = std::iter::once(&word.terms.main).chain(&word.terms.english);
        let known = known.map(|term| (term, frequencies.of(term))).find(|(_, count)| *count > 0);
        let rare = rarity(known.map_or(0, |(_, count)| count), word.terms.is_general) * word.weight;
        if let Some((term, _)) = known {
            found.push((rare, term.clone(), &word.word));
        }
        if word.terms.is_english {
            let share = if known.is_some() { RELATED } else { RELATED_TO_UNKNOWN };
            expanded.push((rare, share, word));
        }
    }
    expanded.sort_by(|(a, _, left), (b, _, right)| {
        b.total_cmp(a).then_with(|| left.terms.main.cmp(&right.terms.main))
    });
    let mut best: HashMap<&Arc<str>, (f64, &Box<str>)> = HashMap::new();
    for (rare, share, word) in expanded.into_iter().take(MAX_EXPANDED) {
        for term in related(&word.terms.main).iter().filter(|term| !own.contains(&***term)) {
            let count = frequencies.of(term);
            if count == 0 {
                continue;
            }
            let weight = share * rare.min(rarity(count, is_general(term)));
            let entry = best.entry(term).or_insert((weight, &word.word));
            if weight > entry.0 {
                *entry = (weight, &word.word);
            }
        }
    }
    found.extend(best.into_iter().map(|(term, (weight, word))| (weight, term.clone(), word)));
    let order = |a: &(f64, Arc<str>, _), b: &(f64, Arc<str>, _)| -> Ordering {
        b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1))
    };
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

#[expect(clippy::cast_possible_truncation, reason = "a weight is at most some thousands")]
fn to_weight(weight: f64) -> i32 {
    (weight * POINTS * f64::from(WEIGHT_ONE)).round().clamp(0.0, 1e6) as i32
}

#[expect(clippy::cast_precision_loss, reason = "no cluster has so many skills")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

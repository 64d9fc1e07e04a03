//! Learning from the use of skills in one namespace: words of questions that led to calls, and offers that led to none.
//!
//! A term counts once two calls have had it, and only if it is a word of letters. Weights halve in thirty days. No text of
//! a user is kept, and nothing of one namespace changes the offers of another.

mod observed;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    Index, Query, Signal, SignalKind,
    extra_points::{ExtraPoints, SkillKey},
    ranked::{Question, word_points},
};

pub use self::observed::ObservedUse;

/// Most skills that a namespace learns about, and most terms of each.
const MAX_SKILLS: usize = 256;
const MAX_TERMS: usize = 32;

/// Days after which a weight has halved.
const HALF_LIFE: f64 = 30.0;

/// Weights and counts below this are dropped.
const LEAST: f64 = 0.1;

/// Highest weight of a term, and highest count of unused offers.
const MAX_WEIGHT: f64 = 16.0;
const MAX_UNUSED: f64 = 10_000.0;

/// The weight with which a term gives a quarter of its points. It never gives more than half.
const MIDDLE_WEIGHT: f64 = 2.0;

/// Most points that one skill gets. A threshold has 100, so that learned terms alone offer no skill.
const MAX_POINTS: i32 = 60;

/// Offers without a call from which on a skill gets less, the points for each doubling, and the most that it loses.
const MANY_UNUSED: f64 = 20.0;
const UNUSED_POINTS: f64 = 10.0;
const MOST_LOST: f64 = 40.0;

/// The learned state of one namespace of callers, in the form in which the cluster keeps it: by `<namespace>/<name>`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LearnedUse(BTreeMap<String, LearnedSkill>);

/// The learned state of one skill.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LearnedSkill {
    /// Day of the last change, counted from 1970-01-01.
    day: u32,
    /// Offers since the last call.
    #[serde(skip_serializing_if = "is_zero")]
    unused: f64,
    /// Weight of each term.
    terms: BTreeMap<Box<str>, f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &f64) -> bool {
    *number <= 0.0
}

impl LearnedSkill {
    /// Lets weights fade until this day.
    fn age(&mut self, day: u32) {
        let days = f64::from(day.saturating_sub(self.day));
        let rest = 0.5_f64.powf(days / HALF_LIFE);
        self.day = day.max(self.day);
        self.unused = rounded((self.unused * rest).clamp(0.0, MAX_UNUSED));
        self.terms.values_mut().for_each(|weight| *weight = rounded((*weight * rest).clamp(0.0, MAX_WEIGHT)));
        self.terms.retain(|_, weight| *weight >= LEAST);
    }

    fn keep_heaviest_terms(&mut self) {
        while self.terms.len() > MAX_TERMS {
            let lightest = self.terms.iter().min_by(|a, b| a.1.total_cmp(b.1)).map(|(term, _)| term.clone());
            lightest.map(|term| self.terms.remove(&term));
        }
    }

    fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.unused < 1.0
    }

    fn weight(&self) -> f64 {
        self.terms.values().sum::<f64>() + self.unused / MAX_UNUSED
    }
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

impl LearnedUse {
    /// Returns true if nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops what has faded, and the skills with the lowest weight above the maximum.
    fn keep_heaviest_skills(&mut self, day: u32) {
        self.0.values_mut().for_each(|skill| skill.age(day));
        self.0.retain(|_, skill| !skill.is_empty());
        while self.0.len() > MAX_SKILLS {
            let lightest = self.0.iter().min_by(|a, b| a.1.weight().total_cmp(&b.1.weight()));
            let Some(name) = lightest.map(|(name, _)| name.clone()) else { return };
            self.0.remove(&name);
        }
    }
}

/// The learned state of one namespace of callers, prepared for searches.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    skills: Vec<SkillKey>,
    /// Position of the skills with each term, with its weight.
    terms: HashMap<Box<str>, Vec<(usize, f64)>>,
    /// Position and offers of skills that were offered often since their last call.
    unused: Vec<(usize, f64)>,
}

impl Learned {
    /// Prepares the state as it is on a day, counted from 1970-01-01.
    pub fn new(learned: &LearnedUse, day: u32) -> Self {
        let mut prepared = Self::default();
        for (name, skill) in &learned.0 {
            let Some((namespace, name)) = name.split_once('/') else { continue };
            let mut skill = skill.clone();
            skill.age(day);
            let at = prepared.skills.len();
            prepared.skills.push((namespace.into(), name.into()));
            for (term, weight) in skill.terms {
                prepared.terms.entry(term).or_default().push((at, weight));
            }
            if skill.unused >= MANY_UNUSED {
                prepared.unused.push((at, skill.unused));
            }
        }
        prepared
    }

    fn extra_points(&self, question: &Question, indexes: &[&Index]) -> ExtraPoints {
        let mut found: BTreeMap<usize, Vec<Signal>> = BTreeMap::new();
        for word in &question.words {
            let Some(skills) = self.terms.get(&*word.terms.main) else { continue };
            let points = word_points(word, skills.len(), indexes);
            for (at, weight) in skills {
                let share = 0.5 * weight / (weight + MIDDLE_WEIGHT);
                let points = to_points(points * share);
                let text = word.terms.main.to_string();
                found.entry(*at).or_default().push(Signal { kind: SignalKind::Learned, text, points });
            }
        }
        found.values_mut().for_each(keep_most);
        for (at, unused) in &self.unused {
            let lost = (UNUSED_POINTS * (2.0 * unused / MANY_UNUSED).log2()).min(MOST_LOST);
            let text = format!("{unused:.0} offers");
            let signal = Signal { kind: SignalKind::Unused, text, points: -to_points(lost) };
            found.entry(*at).or_default().push(signal);
        }
        let mut extra = ExtraPoints::default();
        for (at, signals) in found {
            let Some(skill) = self.skills.get(at) else { continue };
            signals.into_iter().for_each(|signal| extra.add(skill.clone(), signal));
        }
        extra
    }
}

/// Keeps the signals with the most points, up to the maximum of a skill.
fn keep_most(signals: &mut Vec<Signal>) {
    signals.sort_by(|a, b| b.points.cmp(&a.points).then_with(|| a.text.cmp(&b.text)));
    let mut left = MAX_POINTS;
    for signal in signals.iter_mut() {
        signal.points = signal.points.min(left);
        left -= signal.points;
    }
    signals.retain(|signal| signal.points > 0);
}

#[expect(clippy::cast_possible_truncation, reason = "points are at most some thousands")]
fn to_points(points: f64) -> i32 {
    points.round() as i32
}

impl Query {
    /// Adds what the caller's namespace has learned to each question of [`super::MatchMode::Ranked`].
    #[must_use]
    pub fn with_learned(mut self, learned: &Learned, indexes: &[&Index]) -> Self {
        for question in &mut self.questions {
            question.extra = learned.extra_points(question, indexes);
        }
        self
    }

    /// Returns the terms of a turn that may be learned: words of letters that are not of everyday talk. `turn` is that of
    /// an [`super::OfferedSkill`].
    pub fn learnable_terms(&self, turn: usize) -> Vec<Arc<str>> {
        const MAX_LEARNED: usize = 12;
        const MAX_LETTERS: usize = 24;
        let words = self.questions.iter().filter(|question| question.turn == turn && turn > 0);
        let own = words.flat_map(|question| &question.words).filter(|word| word.weight >= 1.0);
        let terms = own.filter(|word| !word.terms.is_general).map(|word| word.terms.main.clone());
        let is_word =
            |term: &Arc<str>| term.chars().count() <= MAX_LETTERS && term.chars().all(char::is_alphabetic);
        terms.filter(is_word).take(MAX_LEARNED).collect()
    }

    /// Returns the number of the last turn; 0 if turns do not count.
    pub fn last_turn(&self) -> usize {
        self.questions.last().map_or(0, |question| question.turn)
    }
}

#[cfg(test)]
mod tests;

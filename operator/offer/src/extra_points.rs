//! Points that skills get for one question beside those of their texts.
//!
//! A search adds them before it compares skills with the threshold, so that it finds exactly the best skills.

use std::{collections::HashMap, sync::Arc};

use super::{Candidate, Signal};

/// Namespace and name of a skill.
pub(crate) type SkillKey = (Arc<str>, Arc<str>);

/// The signals of each skill that has some.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExtraPoints(HashMap<SkillKey, Vec<Signal>>);

impl ExtraPoints {
    pub(crate) fn add(&mut self, skill: SkillKey, signal: Signal) {
        self.0.entry(skill).or_default().push(signal);
    }

    /// Returns the signals of a skill.
    pub(crate) fn signals(&self, candidate: &Candidate) -> &[Signal] {
        if self.0.is_empty() {
            return &[];
        }
        let key = (candidate.namespace.clone(), candidate.name.clone());
        self.0.get(&key).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the sum of each skill that has signals, in no order.
    pub(crate) fn sums(&self) -> impl Iterator<Item = (&SkillKey, i32)> {
        self.0.iter().map(|(skill, signals)| (skill, signals.iter().map(|signal| signal.points).sum()))
    }
}

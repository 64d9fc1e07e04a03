//! Offers and calls that one gateway has seen since it last wrote the learned state.

use std::{collections::BTreeMap, sync::Arc};

use super::{LearnedUse, MAX_SKILLS, MAX_TERMS};

/// Calls with a term after which the term is learned. One call may be of a secret or a name.
const CALLS_OF_A_TERM: u32 = 2;

/// Offers and calls of one namespace of callers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedUse(BTreeMap<String, ObservedSkill>);

#[derive(Clone, Debug, Default, PartialEq)]
struct ObservedSkill {
    offered: u32,
    called: u32,
    /// Number of calls with each term.
    terms: BTreeMap<Box<str>, u32>,
}

impl ObservedUse {
    /// Counts an offer of a skill.
    pub fn offer(&mut self, namespace: &str, name: &str) {
        if let Some(skill) = self.skill(namespace, name) {
            skill.offered = skill.offered.saturating_add(1);
        }
    }

    /// Counts a call that succeeded, with the terms of its question.
    pub fn call(&mut self, namespace: &str, name: &str, terms: &[Arc<str>]) {
        let Some(skill) = self.skill(namespace, name) else { return };
        skill.called = skill.called.saturating_add(1);
        for term in terms {
            let is_known = skill.terms.contains_key(&**term);
            if is_known || skill.terms.len() < 2 * MAX_TERMS {
                *skill.terms.entry((&**term).into()).or_default() += 1;
            }
        }
    }

    fn skill(&mut self, namespace: &str, name: &str) -> Option<&mut ObservedSkill> {
        let key = format!("{namespace}/{name}");
        let has_room = self.0.contains_key(&key) || self.0.len() < 2 * MAX_SKILLS;
        has_room.then(|| self.0.entry(key).or_default())
    }

    /// Returns true if there is something to write.
    pub fn is_new(&self) -> bool {
        self.0.values().any(|skill| skill.offered > 0 || skill.called > 0)
    }

    /// Moves everything into the learned state, on a day counted from 1970-01-01. What stays are terms of a single call.
    pub fn teach(&mut self, learned: &mut LearnedUse, day: u32) {
        for (name, seen) in &mut self.0 {
            let skill = learned.0.entry(name.clone()).or_default();
            skill.age(day);
            skill.day = day;
            skill.unused = if seen.called > 0 { 0.0 } else { skill.unused + f64::from(seen.offered) };
            seen.terms.retain(|term, calls| {
                let is_learned = *calls >= CALLS_OF_A_TERM || skill.terms.contains_key(term);
                if is_learned {
                    *skill.terms.entry(term.clone()).or_default() += f64::from(*calls);
                }
                !is_learned
            });
            skill.keep_heaviest_terms();
            (seen.offered, seen.called) = (0, 0);
        }
        self.0.retain(|_, seen| !seen.terms.is_empty());
        learned.keep_heaviest_skills(day);
    }

    /// Adds what was seen meanwhile.
    pub fn add(&mut self, later: Self) {
        for (name, seen) in later.0 {
            let Some((namespace, name)) = name.split_once('/') else { continue };
            let Some(skill) = self.skill(namespace, name) else { continue };
            skill.offered = skill.offered.saturating_add(seen.offered);
            skill.called = skill.called.saturating_add(seen.called);
            for (term, calls) in seen.terms {
                *skill.terms.entry(term).or_default() += calls;
            }
        }
    }
}

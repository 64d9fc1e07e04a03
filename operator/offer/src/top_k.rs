//! The best few skills of a search.

use std::{cmp::Ordering, sync::Arc};

use super::{Candidate, Scoring, collation::compare_names, index::IndexedSkill};

/// A matching skill, with the facts that decide its rank.
#[derive(Clone, Debug)]
pub(crate) struct Ranked {
    pub(crate) candidate: Arc<Candidate>,
    pub(crate) score: i32,
    pub(crate) tokens: u32,
    /// Position of its namespace in the order of resolution.
    pub(crate) distance: usize,
}

impl Ranked {
    pub(crate) fn new(entry: &IndexedSkill, score: i32, distance: usize) -> Self {
        Self { candidate: entry.candidate.clone(), score, tokens: entry.tokens, distance }
    }

    pub(crate) fn is_same_skill(&self, other: &Self) -> bool {
        self.candidate.name == other.candidate.name && self.candidate.namespace == other.candidate.namespace
    }

    /// Orders better skills first: by points, installs, name, namespace and age.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let (a, b) = (&self.candidate, &other.candidate);
        other
            .score
            .cmp(&self.score)
            .then_with(|| b.install_count.cmp(&a.install_count))
            .then_with(|| compare_names(&a.name, &b.name))
            .then_with(|| self.distance.cmp(&other.distance))
            .then_with(|| a.registered.cmp(&b.registered))
            .then_with(|| a.name.cmp(&b.name))
    }
}

/// Keeps the best `maximum` skills in their order, each with a note.
#[derive(Clone, Debug)]
pub(crate) struct TopK<T> {
    min_score: i32,
    maximum: usize,
    items: Vec<(Ranked, T)>,
}

impl<T> TopK<T> {
    pub(crate) fn new(scoring: &Scoring) -> Self {
        Self { min_score: scoring.threshold, maximum: scoring.maximum, items: Vec::new() }
    }

    /// Returns the lowest score that is still accepted.
    pub(crate) fn threshold(&self) -> i32 {
        match self.items.last() {
            _ if self.maximum == 0 => i32::MAX,
            Some((worst, _)) if self.is_full() => worst.score,
            Some(_) | None => self.min_score,
        }
    }

    fn is_full(&self) -> bool {
        self.items.len() >= self.maximum
    }

    /// True if the skill would be among the best.
    pub(crate) fn accepts(&self, ranked: &Ranked) -> bool {
        ranked.score >= self.threshold()
            && (!self.is_full()
                || self.items.last().is_some_and(|(worst, _)| ranked.compare(worst) == Ordering::Less))
    }

    pub(crate) fn push(&mut self, ranked: Ranked, note: T) {
        if !self.accepts(&ranked) {
            return;
        }
        let at = self.items.partition_point(|(other, _)| other.compare(&ranked) == Ordering::Less);
        self.items.insert(at, (ranked, note));
        self.items.truncate(self.maximum);
    }

    pub(crate) fn ranked(&self) -> impl Iterator<Item = &Ranked> {
        self.items.iter().map(|(ranked, _)| ranked)
    }

    pub(crate) fn into_items(self) -> Vec<(Ranked, T)> {
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::candidate;

    fn ranked(name: &str, score: i32, install_count: u64, distance: usize) -> Ranked {
        let candidate = Arc::new(Candidate { install_count, ..candidate(name, "", &[]) });
        Ranked { candidate, score, tokens: 1, distance }
    }

    fn names(maximum: usize, found: &[Ranked]) -> Vec<String> {
        let mut best = TopK::new(&Scoring { maximum, ..Scoring::default() });
        found.iter().for_each(|ranked| best.push(ranked.clone(), ()));
        best.into_items()
            .iter()
            .map(|(ranked, ())| format!("{}{}", ranked.candidate.name, ranked.distance))
            .collect()
    }

    #[test]
    fn points_rank_before_installs_and_installs_before_names() {
        let found = [
            ranked("few", 4, 9, 0),
            ranked("b", 5, 1, 0),
            ranked("A", 5, 1, 1),
            ranked("A", 5, 1, 0),
            ranked("z", 5, 2, 0),
            ranked("none", 2, 99, 0),
        ];
        assert_eq!(names(9, &found), ["z0", "A0", "A1", "b0", "few0"]);
        let mut turned = found.to_vec();
        turned.reverse();
        assert_eq!(names(3, &turned), ["z0", "A0", "A1"]);
        assert_eq!(names(0, &found), [""; 0]);
    }

    #[test]
    fn the_bar_rises_once_all_places_are_taken() {
        let mut best = TopK::new(&Scoring { maximum: 2, ..Scoring::default() });
        for (score, threshold) in [(4, 3), (9, 4), (3, 4), (7, 7), (7, 7)] {
            best.push(ranked("a", score, 0, 0), ());
            assert_eq!(best.threshold(), threshold, "after {score}");
        }
        assert_eq!(TopK::<()>::new(&Scoring { maximum: 0, ..Scoring::default() }).threshold(), i32::MAX);
    }
}

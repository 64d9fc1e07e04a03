//! The skills that a conversation keeps.
//!
//! Nothing is remembered between requests: each request has the turns before it, and they lead to the same skills again.
//! A turn only adds skills, and only a few turns do. The tools before those of the last turn stay as they are, and so
//! does the provider's prompt cache.

use super::{Scoring, top_k::Ranked};

/// Most turns of one conversation that add skills.
const MAX_ADDITIONS: usize = 3;

/// The skills of the turns so far.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    maximum: usize,
    additions: usize,
    kept: Vec<Kept>,
}

/// A skill, and the turn that added it.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) ranked: Ranked,
    /// Number of the user's turn, from 1; 0 if turns do not count.
    pub(crate) turn: usize,
}

impl Conversation {
    pub(crate) fn new(scoring: &Scoring) -> Self {
        let maximum = scoring.conversation_maximum.max(scoring.maximum);
        Self { maximum, additions: 0, kept: Vec::new() }
    }

    /// True if no turn can add skills any more.
    pub(crate) fn is_complete(&self) -> bool {
        self.kept.len() >= self.maximum || self.additions >= MAX_ADDITIONS
    }

    /// Adds the best skills of a turn that are not there yet.
    pub(crate) fn add(&mut self, turn: usize, best: Vec<Ranked>) {
        if self.is_complete() {
            return;
        }
        let before = self.kept.len();
        for ranked in best {
            let is_known = self.kept.iter().any(|kept| kept.ranked.is_same_skill(&ranked));
            if !is_known && self.kept.len() < self.maximum {
                self.kept.push(Kept { ranked, turn });
            }
        }
        self.additions += usize::from(self.kept.len() > before);
    }

    pub(crate) fn into_kept(self) -> Vec<Kept> {
        self.kept
    }
}

/// Gives the best skills of the nearest namespace up to half of the places, rounded up. Skills of farther namespaces
/// cannot take these, whatever their texts say.
pub(crate) fn keep_nearest(best: Vec<Ranked>, nearest: Vec<Ranked>, maximum: usize) -> Vec<Ranked> {
    let reserved: Vec<Ranked> = nearest.into_iter().take(maximum.div_ceil(2)).collect();
    let is_in = |list: &[Ranked], ranked: &Ranked| list.iter().any(|other| other.is_same_skill(ranked));
    let rest = best.into_iter().filter(|ranked| !is_in(&reserved, ranked)).collect::<Vec<_>>();
    let room = maximum.saturating_sub(reserved.len());
    let mut kept: Vec<Ranked> = rest.into_iter().take(room).chain(reserved.iter().cloned()).collect();
    kept.sort_by(Ranked::compare);
    kept
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Candidate, synthetic::candidate};

    fn ranked(name: &str, score: i32, distance: usize) -> Ranked {
        let namespace = format!("n{distance}").into();
        let candidate = Arc::new(Candidate { namespace, ..candidate(name, "", &[]) });
        Ranked { candidate, score, tokens: 1, distance }
    }

    fn names(list: &[Ranked]) -> Vec<&str> {
        list.iter().map(|ranked| &*ranked.candidate.name).collect()
    }

    #[test]
    fn a_conversation_only_grows_and_at_most_three_times() {
        let scoring = Scoring { maximum: 2, conversation_maximum: 9, ..Scoring::ranked() };
        let mut conversation = Conversation::new(&scoring);
        for (turn, best) in
            [(1, vec![]), (2, vec!["b", "a"]), (3, vec!["a"]), (4, vec!["c", "b"]), (5, vec!["d"])]
        {
            assert!(!conversation.is_complete());
            conversation.add(turn, best.into_iter().map(|name| ranked(name, 100, 0)).collect());
        }
        assert!(conversation.is_complete());
        conversation.add(6, vec![ranked("e", 900, 0)]);
        let kept = conversation.into_kept();
        let kept: Vec<(&str, usize)> =
            kept.iter().map(|kept| (&*kept.ranked.candidate.name, kept.turn)).collect();
        assert_eq!(kept, [("b", 2), ("a", 2), ("c", 4), ("d", 5)]);
    }

    #[test]
    fn a_conversation_has_no_more_skills_than_its_maximum() {
        let scoring = Scoring { maximum: 2, conversation_maximum: 3, ..Scoring::ranked() };
        let mut conversation = Conversation::new(&scoring);
        conversation.add(1, vec![ranked("a", 3, 0), ranked("b", 2, 0)]);
        conversation.add(2, vec![ranked("c", 3, 0), ranked("d", 2, 0)]);
        assert!(conversation.is_complete());
        assert_eq!(conversation.into_kept().len(), 3);
    }

    #[test]
    fn half_of_the_places_are_the_nearest_namespaces() {
        let far = || (0..5).map(|at| ranked(&format!("far{at}"), 500 - at, 1)).collect::<Vec<_>>();
        let near =
            |number| (0..number).map(|at| ranked(&format!("near{at}"), 200 - at, 0)).collect::<Vec<_>>();
        let kept = |near| keep_nearest(far(), near, 5);
        assert_eq!(names(&kept(near(4))), ["far0", "far1", "near0", "near1", "near2"]);
        assert_eq!(names(&kept(near(1))), ["far0", "far1", "far2", "far3", "near0"]);
        assert_eq!(names(&kept(near(0))).len(), 5);
        let own = keep_nearest(near(5), near(5), 5);
        assert_eq!(names(&own), ["near0", "near1", "near2", "near3", "near4"]);
    }
}

//! The vectors of the last questions, by the digests of their texts. No text is kept.

use std::collections::HashMap;

use skillet_offer::Vector;

use super::text_digest::TextDigest;

/// Most questions of one generation. There are two.
const MAX_QUESTIONS: usize = 1024;

/// The vector of a known question, if its text has a direction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QuestionVector(pub(super) Option<Vector>);

/// Vectors of questions. A question that was added or found stays for the next 1024 questions at least.
#[derive(Debug, Default)]
pub(super) struct QuestionCache {
    new: HashMap<TextDigest, QuestionVector>,
    old: HashMap<TextDigest, QuestionVector>,
}

impl QuestionCache {
    /// Returns the vector of a question that is known.
    pub(super) fn get(&mut self, question: TextDigest) -> Option<QuestionVector> {
        if let Some(known) = self.new.get(&question) {
            return Some(known.clone());
        }
        let known = self.old.remove(&question)?;
        self.insert(question, known.0.clone());
        Some(known)
    }

    pub(super) fn insert(&mut self, question: TextDigest, vector: Option<Vector>) {
        if self.new.len() >= MAX_QUESTIONS {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(question, QuestionVector(vector));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_that_come_back_stay_and_the_others_go() {
        let mut cache = QuestionCache::default();
        let digest = |text: &str| TextDigest::of(text);
        let vector = Vector::from_bytes(&[1, 2]);
        cache.insert(digest("often"), vector.clone());
        cache.insert(digest("once"), None);
        assert_eq!(
            (cache.get(digest("once")), cache.get(digest("never"))),
            (Some(QuestionVector(None)), None)
        );
        for at in 0..3 * MAX_QUESTIONS {
            cache.insert(digest(&format!("q{at}")), None);
            assert_eq!(cache.get(digest("often")), Some(QuestionVector(vector.clone())));
            assert!(cache.new.len() + cache.old.len() <= 2 * MAX_QUESTIONS);
        }
        assert_eq!(cache.get(digest("once")), None);
    }
}

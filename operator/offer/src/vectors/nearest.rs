//! The skills whose vectors are nearest to that of a question, and their points.

use std::borrow::Cow;

use super::{Vector, VectorSpace};
use crate::{Index, Signal, SignalKind, extra_points::ExtraPoints, ranked::Question};

/// Most skills of a namespace that get points for one question.
const MAX_NEAREST: usize = 64;

impl Index {
    /// Adds the points of the skills that are nearest to a vector. The skills do not depend on their order in the index.
    fn add_nearest(&self, space: &VectorSpace, question: &Vector, extra: &mut ExtraPoints) {
        let question = question.widened();
        let (mut least, mut nearest) = (space.least_cosine(), Vec::new());
        for (slot, cosine) in self.vectors().cosines(&question) {
            if cosine >= least {
                nearest.push((cosine, slot));
            }
            // Rarely, so that most skills are only compared with the least cosine so far.
            if nearest.len() == 4 * MAX_NEAREST {
                least = self.keep_nearest(&mut nearest);
            }
        }
        if nearest.len() > MAX_NEAREST {
            self.keep_nearest(&mut nearest);
        }
        for (cosine, slot) in nearest {
            let points = space.points(cosine);
            if let Some(key) = self.key(slot).filter(|_| points > 0) {
                let text = format!("cosine {cosine:.2}");
                extra.add(key, Signal { kind: SignalKind::Vector, text, points });
            }
        }
    }
}

impl Index {
    /// Keeps the nearest skills, and returns the least of their cosines. Equal ones are in the order of their names.
    fn keep_nearest(&self, nearest: &mut Vec<(f32, u32)>) -> f32 {
        let (_, (lowest_kept, _), _) = nearest.select_nth_unstable_by(MAX_NEAREST - 1, |a, b| {
            b.0.total_cmp(&a.0).then_with(|| self.key(a.1).cmp(&self.key(b.1)))
        });
        let lowest_kept = *lowest_kept;
        nearest.truncate(MAX_NEAREST);
        lowest_kept
    }
}

impl Question {
    /// Returns the points of skills beside those of their texts.
    pub(crate) fn extra_points(&self, indexes: &[&Index]) -> Cow<'_, ExtraPoints> {
        let model = indexes.iter().find_map(|index| index.model());
        let Some((model, vector)) = model.and_then(|model| Some((model, model.vector(self.text.as_ref()?)?)))
        else {
            return Cow::Borrowed(&self.extra);
        };
        let mut extra = self.extra.clone();
        indexes.iter().for_each(|index| index.add_nearest(model.space(), &vector, &mut extra));
        Cow::Owned(extra)
    }
}

#[cfg(test)]
mod tests;

//! The skills whose vectors are nearest to that of a question, and their points.

use std::borrow::Cow;

use super::{Vector, VectorSpace};
use crate::{Index, Signal, SignalKind, extra_points::ExtraPoints, ranked::Question};

/// Most skills of a namespace that get points for one question.
const MAX_NEAREST: usize = 64;

impl Index {
    /// Adds the points of the skills that are nearest to a vector. The skills do not depend on their order in the index.
    fn add_nearest(&self, space: &VectorSpace, question: &Vector, extra: &mut ExtraPoints) {
        let least = space.least_cosine();
        let found = self.vectors().map(|(slot, vector)| (vector.cosine(question), slot));
        let mut nearest: Vec<(f32, u32)> = found.filter(|(cosine, _)| *cosine >= least).collect();
        if nearest.len() > MAX_NEAREST {
            nearest.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| self.key(a.1).cmp(&self.key(b.1))));
            nearest.truncate(MAX_NEAREST);
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

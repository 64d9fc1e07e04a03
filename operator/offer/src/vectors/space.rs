//! The usual cosines of a model, measured on built-in texts.
//!
//! Everyday messages and questions are compared with descriptions of skills that do not answer them. Their cosines are what
//! is usual without a common meaning. Points begin two deviations above their mean. The direction that everyday messages
//! have in common says nothing, so it is removed from every vector.

use super::Vector;

/// The built-in texts.
const BACKGROUND: &str = include_str!("data/background.txt");

/// Deviations above the usual cosine from which on a skill gets points, the points for each, and the most points.
const LEAST_DEVIATIONS: f32 = 2.0;
const POINTS: f32 = 30.0;
const MOST_POINTS: f32 = 150.0;

/// The smallest deviation that is believed. A model that gives all texts one vector has none.
const LEAST_DEVIATION: f32 = 0.01;

/// The largest value of a vector that is only rounding.
const LEAST_REST: f32 = 1e-3;

/// The space of a model's vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorSpace {
    /// The direction that everyday messages have in common, of length 1.
    common: Vec<f32>,
    mean: f32,
    deviation: f32,
}

/// A built-in text, with the number of the skill that it describes or asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackgroundText {
    Everyday,
    Description(usize),
    Question(usize),
}

fn background() -> impl Iterator<Item = (BackgroundText, &'static str)> {
    let lines = BACKGROUND.lines().filter(|line| !line.starts_with('#'));
    lines.enumerate().flat_map(|(at, line)| match line.split_once(" | ") {
        None => vec![(BackgroundText::Everyday, line)],
        Some((description, question)) => {
            vec![(BackgroundText::Description(at), description), (BackgroundText::Question(at), question)]
        }
    })
}

/// Returns the built-in texts that measure a model.
pub fn background_texts() -> Vec<&'static str> {
    background().map(|(_, text)| text).collect()
}

impl VectorSpace {
    /// Returns the space as bytes, the form in which it is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { common, mean, deviation } = self;
        [mean, deviation].into_iter().chain(common).flat_map(|value| value.to_le_bytes()).collect()
    }

    /// Reads the bytes of a stored space.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (values, rest) = bytes.as_chunks::<4>();
        let values: Vec<f32> = values.iter().map(|value| f32::from_le_bytes(*value)).collect();
        let [mean, deviation, common @ ..] = &values[..] else { return None };
        let length = common.iter().map(|value| value * value).sum::<f32>().sqrt();
        let is_unit = (length - 1.0).abs() < LEAST_REST;
        let is_sound = rest.is_empty() && is_unit && mean.is_finite() && *deviation >= LEAST_DEVIATION;
        is_sound.then(|| Self { common: common.to_vec(), mean: *mean, deviation: *deviation })
    }

    /// Measures a model. `embed` returns the model's vector of a text. `None` if the model gives too few texts a vector.
    pub fn measure(mut embed: impl FnMut(&str) -> Option<Vec<f32>>) -> Option<Self> {
        let texts: Vec<(BackgroundText, Vec<f32>)> =
            background().filter_map(|(kind, text)| Some((kind, unit(&embed(text)?)?))).collect();
        let everyday = texts.iter().filter(|(kind, _)| *kind == BackgroundText::Everyday);
        let common = sum(everyday.map(|(_, vector)| vector.as_slice())).and_then(|sum| unit(&sum))?;
        let mut space = Self { common, mean: 0.0, deviation: 1.0 };
        let texts: Vec<(BackgroundText, Vector)> =
            texts.iter().filter_map(|(kind, vector)| Some((*kind, space.vector(vector)?))).collect();
        let mut cosines = Vec::new();
        for (described, description) in &texts {
            let BackgroundText::Description(skill) = *described else { continue };
            let others = texts.iter().filter(|(kind, _)| match kind {
                BackgroundText::Everyday => true,
                BackgroundText::Question(asked) => *asked != skill,
                BackgroundText::Description(_) => false,
            });
            cosines.extend(others.map(|(_, text)| description.cosine(text)));
        }
        if cosines.len() < background().count() {
            return None;
        }
        space.mean = mean(cosines.iter().copied());
        let variance = mean(cosines.iter().map(|cosine| (cosine - space.mean).powi(2)));
        space.deviation = variance.sqrt().max(LEAST_DEVIATION);
        Some(space)
    }

    /// Returns a model's vector in this space. `None` if it has no direction, or is of another model.
    pub fn vector(&self, values: &[f32]) -> Option<Vector> {
        if values.len() != self.common.len() {
            return None;
        }
        let values = unit(values)?;
        let along: f32 = values.iter().zip(&self.common).map(|(value, common)| value * common).sum();
        let rest: Vec<f32> =
            values.iter().zip(&self.common).map(|(value, common)| value - along * common).collect();
        // A text that says nothing more than everyday messages is near to nothing.
        let is_everyday = rest.iter().all(|value| value.abs() < LEAST_REST);
        if is_everyday { None } else { Vector::of(&rest) }
    }

    /// Returns the number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.common.len()
    }

    /// Returns the cosine from which on a skill gets points.
    pub(super) fn least_cosine(&self) -> f32 {
        self.mean + LEAST_DEVIATIONS * self.deviation
    }

    /// Returns the points for a cosine.
    #[expect(clippy::cast_possible_truncation, reason = "the points are bounded")]
    pub(super) fn points(&self, cosine: f32) -> i32 {
        let deviations = (cosine - self.mean) / self.deviation;
        ((deviations - LEAST_DEVIATIONS) * POINTS).clamp(0.0, MOST_POINTS).round() as i32
    }
}

/// Returns the vector with length 1.
fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    (length > 0.0 && length.is_finite()).then(|| vector.iter().map(|value| value / length).collect())
}

fn sum<'a>(mut vectors: impl Iterator<Item = &'a [f32]>) -> Option<Vec<f32>> {
    let mut sum = vectors.next()?.to_vec();
    for vector in vectors {
        sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
    }
    Some(sum)
}

#[expect(clippy::cast_precision_loss, reason = "there are some thousands")]
fn mean(values: impl ExactSizeIterator<Item = f32>) -> f32 {
    let number = values.len().max(1) as f32;
    values.sum::<f32>() / number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::embed;

    #[test]
    fn points_are_counted_in_deviations_of_the_model_and_bounded() {
        let space = VectorSpace::measure(|text| Some(embed(text, 64))).unwrap();
        assert_eq!(space.dimensions(), 64);
        let at = |deviations: f32| space.points(space.mean + deviations * space.deviation);
        assert_eq!([at(-3.0), at(1.9), at(3.0), at(5.0), at(30.0)], [0, 0, 30, 90, 150]);
        assert!(space.least_cosine() > space.mean);
        // A model with cosines closer together gives the same points.
        let narrow = |text: &str| {
            let mut vector = embed(text, 64);
            vector.iter_mut().zip([1.0; 16]).for_each(|(value, more)| *value += more);
            Some(vector)
        };
        let other = VectorSpace::measure(narrow).unwrap();
        assert_eq!(other.points(other.mean + 3.0 * other.deviation), 30);
    }

    #[test]
    fn a_stored_space_reads_back_and_a_damaged_one_does_not() {
        let space = VectorSpace::measure(|text| Some(embed(text, 64))).unwrap();
        let bytes = space.to_bytes();
        assert_eq!(VectorSpace::from_bytes(&bytes), Some(space));
        let mut infinite = bytes.clone();
        infinite[..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
        for damaged in [&[][..], &bytes[..8], &bytes[..bytes.len() - 1], &[0; 40], &infinite] {
            assert_eq!(VectorSpace::from_bytes(damaged), None);
        }
        assert!(background_texts().len() > 100);
    }

    #[test]
    fn what_all_everyday_messages_have_in_common_counts_nothing() {
        let everyday = |text: &str| {
            let mut vector = embed(text, 64);
            vector.push(5.0);
            Some(vector)
        };
        let space = VectorSpace::measure(everyday).unwrap();
        let vector = |text: &str| space.vector(&everyday(text).unwrap()).unwrap();
        let cosine = vector("first of all").cosine(&vector("something else"));
        assert!(cosine.abs() < 0.5, "{cosine}");
        let mut common = vec![0.0; 65];
        common[64] = 5.0;
        let rest = space.vector(&common).map(|rest| rest.cosine(&vector("first of all")).abs());
        assert!(rest.is_none_or(|cosine| cosine < 0.5), "{rest:?}");
    }

    #[test]
    fn a_model_without_vectors_has_no_space_and_one_vector_for_all_gives_no_points() {
        assert_eq!(VectorSpace::measure(|_| None), None);
        assert_eq!(VectorSpace::measure(|_| Some(vec![0.0; 8])), None);
        assert_eq!(VectorSpace::measure(|_| Some(vec![1.0; 8])), None);
        let space = VectorSpace::measure(|text| Some(embed(text, 64))).unwrap();
        assert_eq!(space.vector(&[1.0; 8]), None, "another model");
    }
}

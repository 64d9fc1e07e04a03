//! A vector with eight bits for each dimension: a quarter of the memory, and whole numbers to compare.

use std::sync::Arc;

/// The direction of a text in a [`super::VectorSpace`]. Clones share the memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    values: Arc<[i8]>,
    /// One over the length of `values`.
    scale: f32,
}

impl Vector {
    /// Rounds a vector. A vector without length has no direction.
    pub(super) fn of(values: &[f32]) -> Option<Self> {
        const MOST: f32 = 127.0;
        let most = values.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        if most <= 0.0 || !most.is_finite() {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "a rounded value is from -127 to 127")]
        let rounded = |value: &f32| (value / most * MOST).round() as i8;
        let values: Arc<[i8]> = values.iter().map(rounded).collect();
        let square: i32 = values.iter().map(|value| i32::from(*value).pow(2)).sum();
        Some(Self { values, scale: to_f32(square).sqrt().recip() })
    }

    /// Returns the values as bytes, the form in which a vector is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.values.iter().map(|value| value.cast_unsigned()).collect()
    }

    /// Reads the bytes of a stored vector.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let values: Arc<[i8]> = bytes.iter().map(|byte| byte.cast_signed()).collect();
        let square: i32 = values.iter().map(|value| i32::from(*value).pow(2)).sum();
        (square > 0).then(|| Self { values, scale: to_f32(square).sqrt().recip() })
    }

    /// Returns the number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.values.len()
    }

    /// Returns the cosine; 0 for vectors of different models.
    pub(super) fn cosine(&self, other: &Self) -> f32 {
        self.widened().cosine(&other.values, other.scale)
    }

    pub(super) fn values(&self) -> &[i8] {
        &self.values
    }

    pub(super) fn scale(&self) -> f32 {
        self.scale
    }

    /// Prepares the vector for comparisons with many others.
    pub(super) fn widened(&self) -> WideVector {
        let values = self.values.iter().map(|value| i16::from(*value)).collect();
        WideVector { values, scale: self.scale }
    }
}

/// A vector with sixteen bits for each dimension, since processors multiply these pair by pair.
#[derive(Clone, Debug)]
pub(super) struct WideVector {
    values: Vec<i16>,
    scale: f32,
}

impl WideVector {
    pub(super) fn dimensions(&self) -> usize {
        self.values.len()
    }

    /// Returns the cosine with a vector of these values and this scale; 0 for vectors of different models.
    pub(super) fn cosine(&self, values: &[i8], scale: f32) -> f32 {
        if self.values.len() != values.len() {
            return 0.0;
        }
        to_f32(dot(values, &self.values)) * self.scale * scale
    }
}

/// A sum of whole numbers: it does not depend on its order.
fn dot(a: &[i8], b: &[i16]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(i16::from(*a)) * i32::from(*b)).sum()
}

#[expect(clippy::cast_precision_loss, reason = "the cosine needs no more than three digits")]
fn to_f32(sum: i32) -> f32 {
    sum as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cosine_is_that_of_the_exact_vectors_within_a_hundredth() {
        let a: Vec<f32> = (0..=255_u8).map(|at| (f32::from(at) * 0.7).sin()).collect();
        let b: Vec<f32> = (0..=255_u8).map(|at| (f32::from(at) * 0.7 + 0.9).sin()).collect();
        let exact = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let expected = exact(&a, &b) / (exact(&a, &a) * exact(&b, &b)).sqrt();
        let (a, b) = (Vector::of(&a).unwrap(), Vector::of(&b).unwrap());
        assert!((a.cosine(&b) - expected).abs() < 0.01, "{} {expected}", a.cosine(&b));
        assert!((a.cosine(&a) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn a_stored_vector_reads_back() {
        let vector = Vector::of(&[0.5, -1.0, 0.0]).unwrap();
        assert_eq!((vector.to_bytes(), vector.dimensions()), (vec![64, 129, 0], 3));
        assert_eq!(Vector::from_bytes(&vector.to_bytes()), Some(vector));
        assert_eq!((Vector::from_bytes(&[]), Vector::from_bytes(&[0, 0])), (None, None));
    }

    #[test]
    fn nothing_and_infinity_have_no_direction_and_another_model_is_not_near() {
        for values in [&[][..], &[0.0, 0.0], &[f32::INFINITY, 1.0], &[f32::NAN, 0.0]] {
            assert_eq!(Vector::of(values), None, "{values:?}");
        }
        let (two, three) = (Vector::of(&[1.0, 0.0]).unwrap(), Vector::of(&[1.0, 0.0, 0.0]).unwrap());
        assert!(two.cosine(&three).abs() < 1e-9);
    }
}

//! The vectors of an index, one behind the other: a search reads them all, so they must lie together in memory.

use super::{Vector, vector::WideVector};

/// Vectors by slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct VectorTable {
    dimensions: usize,
    /// The values of each slot.
    values: Vec<i8>,
    /// One over the length of each slot's vector; 0 if the slot has none.
    scales: Vec<f32>,
}

impl VectorTable {
    /// Sets or removes the vector of a slot. All vectors are of one model.
    pub(crate) fn set(&mut self, slot: u32, vector: Option<&Vector>) {
        let slot = slot as usize;
        let Some(vector) = vector else {
            if let Some(scale) = self.scales.get_mut(slot) {
                *scale = 0.0;
            }
            return;
        };
        if self.dimensions != vector.values().len() && self.scales.iter().all(|scale| *scale <= 0.0) {
            *self = Self { dimensions: vector.values().len(), ..Self::default() };
        }
        if self.scales.len() <= slot {
            self.scales.resize(slot + 1, 0.0);
            self.values.resize((slot + 1) * self.dimensions, 0);
        }
        let start = slot * self.dimensions;
        let place = self.values.get_mut(start..start + self.dimensions);
        if let Some((place, scale)) = place.zip(self.scales.get_mut(slot))
            && vector.values().len() == self.dimensions
        {
            place.copy_from_slice(vector.values());
            *scale = vector.scale();
        }
    }

    /// Returns each slot that has a vector, with the cosine of its vector and another. Vectors of another model are near to
    /// none.
    pub(super) fn cosines(&self, question: &WideVector) -> impl Iterator<Item = (u32, f32)> {
        // Without a dimension there is nothing to compare.
        let is_same_model = question.dimensions() == self.dimensions;
        let values = self.values.chunks_exact(self.dimensions.max(1));
        let vectors = (0..).zip(values.zip(&self.scales)).filter(move |_| is_same_model);
        vectors
            .filter(|(_, (_, scale))| **scale > 0.0)
            .map(|(slot, (values, scale))| (slot, question.cosine(values, *scale)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(values: &[f32]) -> Vector {
        Vector::of(values).unwrap()
    }

    fn cosines(table: &VectorTable, question: &[f32]) -> Vec<(u32, f32)> {
        table.cosines(&vector(question).widened()).collect()
    }

    #[test]
    fn slots_are_set_replaced_and_removed() {
        let mut table = VectorTable::default();
        assert_eq!(cosines(&table, &[1.0, 0.0]), []);
        table.set(2, Some(&vector(&[1.0, 0.0])));
        table.set(0, Some(&vector(&[0.0, 3.0])));
        assert_eq!(cosines(&table, &[1.0, 0.0]), [(0, 0.0), (2, 1.0)]);
        table.set(2, Some(&vector(&[-1.0, 0.0])));
        table.set(0, None);
        table.set(9, None);
        assert_eq!(cosines(&table, &[1.0, 0.0]), [(2, -1.0)]);
    }

    #[test]
    fn a_vector_of_another_model_is_not_compared() {
        let mut table = VectorTable::default();
        table.set(0, Some(&vector(&[1.0, 0.0])));
        assert_eq!(cosines(&table, &[1.0, 0.0, 0.0]), []);
        table.set(1, Some(&vector(&[1.0, 0.0, 0.0])));
        assert_eq!(cosines(&table, &[1.0, 0.0]), [(0, 1.0)]);
        table.set(0, None);
        table.set(1, Some(&vector(&[1.0, 0.0, 0.0])));
        assert_eq!(cosines(&table, &[1.0, 0.0, 0.0]), [(1, 1.0)]);
    }
}

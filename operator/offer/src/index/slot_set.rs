//! The skills with one name, one tag, or one word in the name: a sorted set of slots.
//!
//! Most sets have one slot only, which needs no allocation. With thousands of sets that is a good part of the index.

use super::postings::{insert_sorted, remove_sorted};

/// A sorted multiset: it may hold a slot more than once.
#[derive(Clone, Debug)]
pub(super) enum SlotSet {
    One(u32),
    /// No slot, or several.
    Several(Vec<u32>),
}

impl Default for SlotSet {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl SlotSet {
    pub(super) fn as_slice(&self) -> &[u32] {
        match self {
            Self::One(slot) => std::slice::from_ref(slot),
            Self::Several(slots) => slots,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    /// Inserts a slot, also if the set has it.
    pub(super) fn insert(&mut self, slot: u32) {
        match self {
            Self::One(first) => {
                let mut slots = vec![*first];
                insert_sorted(&mut slots, slot);
                *self = Self::Several(slots);
            }
            Self::Several(slots) if slots.is_empty() => *self = Self::One(slot),
            Self::Several(slots) => insert_sorted(slots, slot),
        }
    }

    /// Removes a slot once.
    pub(super) fn remove(&mut self, slot: u32) {
        match self {
            Self::One(only) if *only == slot => *self = Self::default(),
            Self::One(_) => {}
            Self::Several(slots) => {
                remove_sorted(slots, slot);
                if let [only] = slots[..] {
                    *self = Self::One(only);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skillet_core::test_rng::TestRng;

    #[test]
    fn a_set_holds_each_slot_as_often_as_it_was_inserted() {
        let mut rng = TestRng::new(3);
        let (mut slots, mut expected) = (SlotSet::default(), Vec::new());
        for round in 0..3_000 {
            let slot = rng.below(4);
            if rng.below(2) == 0 && expected.len() < 4 {
                slots.insert(slot);
                insert_sorted(&mut expected, slot);
            } else {
                slots.remove(slot);
                remove_sorted(&mut expected, slot);
            }
            assert_eq!(slots.as_slice(), expected, "{round}");
            assert_eq!(slots.is_empty(), expected.is_empty());
            assert_eq!(matches!(slots, SlotSet::One(_)), expected.len() == 1);
        }
    }
}

//! The skills with one term, each with the impact of the term: a list sorted by slot.
//!
//! Most terms are of one skill, which needs no allocation.

/// A slot and the impact of a term in its skill.
pub(super) type WeightedSlot = (u32, u16);

/// A sorted list that holds each slot at most once.
#[derive(Clone, Debug)]
pub(super) enum WeightedSlots {
    One(WeightedSlot),
    /// No slot, or several.
    Several(Vec<WeightedSlot>),
}

impl Default for WeightedSlots {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl WeightedSlots {
    pub(super) fn as_slice(&self) -> &[WeightedSlot] {
        match self {
            Self::One(slot) => std::slice::from_ref(slot),
            Self::Several(slots) => slots,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    pub(super) fn insert(&mut self, slot: WeightedSlot) {
        match self {
            Self::Several(slots) if slots.is_empty() => *self = Self::One(slot),
            Self::One(first) if first.0 == slot.0 => *first = slot,
            Self::One(first) => {
                let mut slots = vec![*first];
                put(&mut slots, slot);
                *self = Self::Several(slots);
            }
            Self::Several(slots) => put(slots, slot),
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        match self {
            Self::One((only, _)) if *only == slot => *self = Self::default(),
            Self::One(_) => {}
            Self::Several(slots) => {
                if let Ok(at) = slots.binary_search_by_key(&slot, |(slot, _)| *slot) {
                    slots.remove(at);
                }
                if let [only] = slots[..] {
                    *self = Self::One(only);
                }
            }
        }
    }
}

fn put(slots: &mut Vec<WeightedSlot>, new: WeightedSlot) {
    match slots.binary_search_by_key(&new.0, |(slot, _)| *slot) {
        Ok(at) => slots.get_mut(at).into_iter().for_each(|known| *known = new),
        Err(at) => slots.insert(at, new),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use skillet_core::test_rng::TestRng;

    #[test]
    fn a_list_holds_each_slot_once_in_order() {
        let mut rng = TestRng::new(4);
        let (mut slots, mut expected) = (WeightedSlots::default(), BTreeMap::new());
        for round in 0..3_000 {
            let slot = rng.below(5);
            if rng.below(2) == 0 {
                let impact = u16::try_from(rng.below(100)).unwrap();
                slots.insert((slot, impact));
                expected.insert(slot, impact);
            } else {
                slots.remove(slot);
                expected.remove(&slot);
            }
            assert!(slots.as_slice().iter().copied().eq(expected.clone()), "{round}");
            assert_eq!(slots.is_empty(), expected.is_empty());
            assert_eq!(matches!(slots, WeightedSlots::One(_)), expected.len() == 1);
        }
    }
}

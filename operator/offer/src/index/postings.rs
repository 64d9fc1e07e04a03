//! The skills with one word in their description: a sorted list of slots, or bits if the word is common.
//!
//! A list costs a step for each skill. Bits cost one step for 64 skills, and `block_counts` adds up many words at once.

/// Number of 64-bit words in a block.
pub(super) const BLOCK_WORDS: usize = 8;

/// Number of slots in a block.
pub(super) const BLOCK_SLOTS: usize = BLOCK_WORDS * 64;

/// A list with more than one slot in this many becomes bits. It becomes a list again below half of that.
const COMMON_ONE_IN: usize = 32;

/// Shorter lists never become bits.
const MIN_COMMON: usize = 64;

#[derive(Clone, Debug)]
pub(super) enum Postings {
    Few(Vec<u32>),
    Many {
        /// Whole blocks.
        bits: Vec<u64>,
        count: usize,
    },
}

impl Default for Postings {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Postings {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Few(slots) => slots.is_empty(),
            Self::Many { count, .. } => *count == 0,
        }
    }

    /// Inserts a slot; `total` is the number of slots of the index.
    pub(super) fn insert(&mut self, slot: u32, total: usize) {
        match self {
            Self::Few(slots) => {
                insert_sorted(slots, slot);
                if slots.len() >= MIN_COMMON && slots.len() > total / COMMON_ONE_IN {
                    let slots = std::mem::take(slots);
                    *self = Self::Many { bits: Vec::new(), count: 0 };
                    for slot in slots {
                        self.insert(slot, total);
                    }
                }
            }
            Self::Many { bits, count } => {
                let (word, bit) = place(slot);
                if word >= bits.len() {
                    bits.resize((word / BLOCK_WORDS + 1) * BLOCK_WORDS, 0);
                }
                if let Some(word) = bits.get_mut(word) {
                    *count += usize::from(*word & bit == 0);
                    *word |= bit;
                }
            }
        }
    }

    /// Removes a slot.
    pub(super) fn remove(&mut self, slot: u32, total: usize) {
        match self {
            Self::Few(slots) => remove_sorted(slots, slot),
            Self::Many { bits, count } => {
                let (word, bit) = place(slot);
                if let Some(word) = bits.get_mut(word) {
                    *count -= usize::from(*word & bit != 0);
                    *word &= !bit;
                }
                if *count < MIN_COMMON / 2 || *count < total / COMMON_ONE_IN / 2 {
                    *self = Self::Few(slots_of(bits));
                }
            }
        }
    }
}

/// Inserts a slot into a sorted list, also if the list has it.
pub(super) fn insert_sorted(slots: &mut Vec<u32>, slot: u32) {
    // Most insertions are of the newest slot.
    if slots.last().is_none_or(|last| *last <= slot) {
        slots.push(slot);
    } else {
        let at = slots.partition_point(|other| *other < slot);
        slots.insert(at, slot);
    }
}

/// Removes a slot from a sorted list once.
pub(super) fn remove_sorted(slots: &mut Vec<u32>, slot: u32) {
    if let Ok(at) = slots.binary_search(&slot) {
        slots.remove(at);
    }
}

fn place(slot: u32) -> (usize, u64) {
    ((slot / 64) as usize, 1 << (slot % 64))
}

fn slots_of(bits: &[u64]) -> Vec<u32> {
    let in_word = |(at, word): (usize, &u64)| {
        let (first, word) = (u32::try_from(at * 64).unwrap_or(u32::MAX), *word);
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
    };
    bits.iter().enumerate().flat_map(in_word).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use skillet_core::test_rng::TestRng;

    fn slots(postings: &Postings) -> Vec<u32> {
        match postings {
            Postings::Few(slots) => slots.clone(),
            Postings::Many { bits, count } => {
                assert_eq!(bits.len() % BLOCK_WORDS, 0);
                assert_eq!(slots_of(bits).len(), *count);
                slots_of(bits)
            }
        }
    }

    #[test]
    fn list_and_bits_hold_the_same_slots() {
        let mut rng = TestRng::new(2);
        let (mut postings, mut expected) = (Postings::default(), BTreeSet::new());
        let mut changes = 0;
        for round in 0..12_000 {
            let was_few = matches!(postings, Postings::Few(_));
            let slot = rng.below(2_000);
            // First it grows, then it shrinks.
            if round < 2_000 && expected.insert(slot) {
                postings.insert(slot, 2_000);
            } else if expected.remove(&slot) {
                postings.remove(slot, 2_000);
            }
            changes += usize::from(was_few != matches!(postings, Postings::Few(_)));
            assert!(slots(&postings).iter().eq(&expected), "{round}");
        }
        assert!(changes >= 2, "{changes}");
        assert_eq!(postings.is_empty(), expected.is_empty());
    }

    #[test]
    fn a_list_can_hold_a_slot_twice() {
        let mut slots = vec![1, 5];
        for slot in [5, 3, 9] {
            insert_sorted(&mut slots, slot);
        }
        assert_eq!(slots, [1, 3, 5, 5, 9]);
        remove_sorted(&mut slots, 5);
        remove_sorted(&mut slots, 4);
        assert_eq!(slots, [1, 3, 5, 9]);
    }
}

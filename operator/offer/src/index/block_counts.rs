//! Counts for each of 512 slots how many of several bit sets contain it.
//!
//! The counts are bit-sliced: one word of bits holds the ones of 64 slots, one the twos, and so on. Adding a set is then a
//! few logical operations for 64 slots at a time.

use super::postings::BLOCK_WORDS;

/// Most sets that are counted at once, so that a count fits one byte.
const MAX_SETS: usize = 255;

const PLANES: usize = 8;

type Block = [u64; BLOCK_WORDS];

/// Adds `weight` to each of the 512 `points` for each of the `sets` that contains its slot. `block` is the block's number.
pub(super) fn add_counts(sets: &[&[u64]], block: usize, weight: i32, points: &mut [i32]) {
    let start = block * BLOCK_WORDS;
    for sets in sets.chunks(MAX_SETS) {
        let mut counter = Counter::default();
        for set in sets {
            if let Some(bits) = set.get(start..start + BLOCK_WORDS).and_then(|bits| bits.try_into().ok()) {
                counter.add(bits);
            }
        }
        let planes = counter.finish();
        let used = planes.get(..=sets.len().ilog2() as usize).unwrap_or(&planes);
        for (word, points) in points.chunks_exact_mut(64).enumerate().take(BLOCK_WORDS) {
            add_word(used, word, weight, points);
        }
    }
}

/// Adds up bits of the same value two at a time: a full adder takes a sum and two more, and passes on one carry. `waiting`
/// holds the bits that have no second yet.
#[derive(Default)]
struct Counter {
    /// Plane `p` holds the bits of value 2^p.
    sums: [Block; PLANES],
    waiting: [Option<Block>; PLANES],
}

impl Counter {
    fn add(&mut self, mut bits: Block) {
        for (sum, waiting) in self.sums.iter_mut().zip(&mut self.waiting) {
            let Some(first) = waiting.take() else {
                *waiting = Some(bits);
                return;
            };
            for ((sum, first), second) in sum.iter_mut().zip(first).zip(&mut bits) {
                let either = *sum ^ first;
                let carry = (*sum & first) | (either & *second);
                *sum = either ^ *second;
                *second = carry;
            }
        }
    }

    fn finish(mut self) -> [Block; PLANES] {
        for (value, waiting) in self.waiting.iter().enumerate() {
            let Some(mut carry) = *waiting else { continue };
            for plane in self.sums.iter_mut().skip(value) {
                for (sum, carry) in plane.iter_mut().zip(&mut carry) {
                    let both = *sum & *carry;
                    *sum ^= *carry;
                    *carry = both;
                }
            }
        }
        self.sums
    }
}

/// Adds the counts of the 64 slots of one word of each plane.
fn add_word(planes: &[Block], word: usize, weight: i32, points: &mut [i32]) {
    for (eight, points) in points.chunks_exact_mut(8).enumerate() {
        let byte = |plane: &Block| plane.get(word).map_or(0, |bits| (bits >> (eight * 8) & 0xff) as usize);
        let spread = |plane: &Block| SPREAD.get(byte(plane)).copied().unwrap_or_default();
        let counts = (0..).zip(planes).fold(0, |counts, (value, plane)| counts + (spread(plane) << value));
        for (point, count) in points.iter_mut().zip(counts.to_le_bytes()) {
            *point += weight * i32::from(count);
        }
    }
}

/// For each byte its eight bits as the lowest bits of eight bytes, the first in the lowest.
static SPREAD: [u64; 256] = {
    let mut table = [0; 256];
    let mut bits = 0;
    while bits < 256 {
        let mut at = 0;
        while at < 8 {
            table[bits] |= (bits as u64 >> at & 1) << (8 * at);
            at += 1;
        }
        bits += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::{super::postings::BLOCK_SLOTS, *};
    use skillet_core::test_rng::TestRng;

    #[test]
    fn eight_bits_become_eight_bytes() {
        for bits in 0..=255_u8 {
            let expected: Vec<u8> = (0..8).map(|at| bits >> at & 1).collect();
            assert_eq!(SPREAD[usize::from(bits)].to_le_bytes().to_vec(), expected, "{bits:08b}");
        }
    }

    #[test]
    fn counts_equal_a_count_slot_by_slot() {
        let mut rng = TestRng::new(11);
        for number in [0, 1, 2, 3, 7, 8, 64, 255, 256, 300] {
            let mut sets: Vec<Vec<u64>> = (0..number)
                .map(|_| (0..16).map(|_| u64::from(rng.below(u32::MAX)) * 0x1_0000_0001).collect())
                .collect();
            if let Some(first) = sets.first_mut() {
                first.truncate(8);
            }
            if let Some(last) = sets.last_mut() {
                last.fill(u64::MAX);
            }
            let sets: Vec<&[u64]> = sets.iter().map(Vec::as_slice).collect();
            for block in 0..3 {
                let mut points = vec![1; BLOCK_SLOTS];
                add_counts(&sets, block, 2, &mut points);
                let has = |set: &&&[u64], slot: usize| {
                    set.get(slot / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
                };
                for (at, point) in points.iter().enumerate() {
                    let count = sets.iter().filter(|set| has(set, block * BLOCK_SLOTS + at)).count();
                    assert_eq!(*point, 1 + 2 * i32::try_from(count).unwrap(), "{number} {block} {at}");
                }
            }
        }
    }
}

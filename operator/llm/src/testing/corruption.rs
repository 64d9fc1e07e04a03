//! Bytes cut and damaged at random, for tests of stream filters.

use crate::{RoundEnd, StreamError, StreamFilter, sse::EventSplitter};
use skillet_core::test_rng::TestRng;

/// Feeds one round, cut anywhere, and ends it.
pub(crate) fn feed_cut(
    filter: &mut dyn StreamFilter,
    bytes: &[u8],
    rng: &mut TestRng,
    out: &mut Vec<u8>,
) -> Result<RoundEnd, StreamError> {
    let mut rest = bytes;
    let longest = [1, 7, 60, 4000][rng.below(4) as usize];
    while !rest.is_empty() {
        let length = (1 + rng.below(longest) as usize).min(rest.len());
        filter.feed(&rest[..length], out)?;
        rest = &rest[length..];
    }
    filter.end_round(out)
}

/// Damages bytes in one to four ways.
pub(crate) fn damage(bytes: &mut Vec<u8>, rng: &mut TestRng) {
    for _ in 0..=rng.below(4) {
        let place =
            |rng: &mut TestRng, bytes: &Vec<u8>| rng.below(u32::try_from(bytes.len()).unwrap() + 1) as usize;
        let (one, other) = (place(rng, bytes), place(rng, bytes));
        let (from, to) = (one.min(other), one.max(other));
        match rng.below(8) {
            0 => bytes.truncate(from),
            1 => {
                let part = bytes[from..to].to_vec();
                bytes.splice(from..from, part);
            }
            2 => drop(bytes.drain(from..to)),
            3 => bytes.splice(from..from, [0xff, 0xc3, 0x28]).for_each(drop),
            4 => {
                let nested = "{\"a\":[".repeat(2000);
                bytes.splice(from..from, nested.into_bytes());
            }
            5 => bytes.splice(from..from, *b"\n\n").for_each(drop),
            _ => {
                for _ in 0..=rng.below(6) {
                    let at = place(rng, bytes);
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << rng.below(8);
                    }
                }
            }
        }
    }
}

/// Repeats, removes or swaps whole events. Returns false if there is none.
pub(crate) fn shuffle_events(bytes: &mut Vec<u8>, rng: &mut TestRng) -> bool {
    let mut events = EventSplitter::default().feed(bytes).unwrap();
    if events.is_empty() {
        return false;
    }
    for _ in 0..=rng.below(3) {
        let count = u32::try_from(events.len()).unwrap();
        let (one, other) = (rng.below(count) as usize, rng.below(count) as usize);
        match rng.below(3) {
            0 => events.swap(one, other),
            1 => events.insert(one, events[other].clone()),
            _ if count > 1 => drop(events.remove(one)),
            _ => {}
        }
    }
    *bytes = events.into_iter().flat_map(|event| event.0).collect();
    true
}

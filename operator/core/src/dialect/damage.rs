//! Bytes cut and damaged at random, for tests of stream filters.

use super::{RoundEnd, StreamError, StreamFilter};
use crate::dice::Dice;

/// Feeds one round, cut anywhere, and ends it.
pub(crate) fn feed_cut(
    filter: &mut dyn StreamFilter,
    bytes: &[u8],
    dice: &mut Dice,
    out: &mut Vec<u8>,
) -> Result<RoundEnd, StreamError> {
    let mut rest = bytes;
    let longest = [1, 7, 60, 4000][dice.below(4) as usize];
    while !rest.is_empty() {
        let length = (1 + dice.below(longest) as usize).min(rest.len());
        filter.feed(&rest[..length], out)?;
        rest = &rest[length..];
    }
    filter.end_round(out)
}

/// Damages bytes in one to four ways.
pub(crate) fn damage(bytes: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..=dice.below(4) {
        let place =
            |dice: &mut Dice, bytes: &Vec<u8>| dice.below(u32::try_from(bytes.len()).unwrap() + 1) as usize;
        let (one, other) = (place(dice, bytes), place(dice, bytes));
        let (from, to) = (one.min(other), one.max(other));
        match dice.below(8) {
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
                for _ in 0..=dice.below(6) {
                    let at = place(dice, bytes);
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << dice.below(8);
                    }
                }
            }
        }
    }
}

//! API keys of the gateway: their text and their hash. The cluster stores the hash only.
//!
//! Storage and owners of keys are elsewhere. The caller passes the random bytes.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// Prefix of every key, by which scanners for leaked secrets find it.
pub const PREFIX: &str = "skillet_";
/// Random bytes of a key. Nobody can guess that many, so a plain hash is enough.
pub const RANDOM_BYTES: usize = 32;
/// Bytes of the checksum that follows the random bytes.
const CHECKSUM_BYTES: usize = 4;

/// The text of a key: the prefix, then random bytes and their CRC-32 in base64url. With the checksum a mistyped or cut key
/// is known without a look-up. It has no `Debug`, so that it does not get into a log.
pub struct KeyText(String);

impl KeyText {
    pub fn of_random(bytes: [u8; RANDOM_BYTES]) -> Self {
        let mut all = bytes.to_vec();
        all.extend(checksum(&bytes));
        Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(all)))
    }

    /// Parses a key. Returns `None` for another form or a wrong checksum.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        let (random, written) = bytes.split_at_checked(RANDOM_BYTES)?;
        (written == checksum(random)).then(|| Self(text.to_owned()))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    pub fn hash(&self) -> KeyHash {
        KeyHash(Sha256::digest(&self.0).into())
    }
}

fn checksum(random: &[u8]) -> [u8; CHECKSUM_BYTES] {
    crc32fast::hash(random).to_be_bytes()
}

/// The sha256 of a key's text. Written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let pairs = text.as_bytes().as_chunks::<2>();
        let bytes: Option<Vec<u8>> =
            pairs.0.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
        if !pairs.1.is_empty() {
            return None;
        }
        Some(Self(bytes?.try_into().ok()?))
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_prefix_and_its_random_bytes_with_a_checksum_and_reads_back() {
        let key = KeyText::of_random([0xff; 32]);
        // python3 -c 'import base64, zlib; b = b"\xff" * 32; print(base64.urlsafe_b64encode(b + zlib.crc32(b).to_bytes(4)))'
        assert_eq!(key.text(), "skillet_____________________________________________bKsL");
        assert_eq!(KeyText::parse(key.text()).unwrap().hash(), key.hash());
    }

    #[test]
    fn what_has_not_the_form_of_a_key_is_none() {
        let good = KeyText::of_random([7; 32]);
        assert!(KeyText::parse(good.text()).is_some());
        let (longer, shorter) = (format!("{}AAAA", good.text()), &good.text()[..52]);
        let without = PREFIX.to_owned() + &URL_SAFE_NO_PAD.encode([7; 32]);
        for text in ["", PREFIX, "sk-abc", &good.text()[8..], shorter, &longer, &without, "skillet_ü"] {
            assert!(KeyText::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn a_key_with_one_wrong_character_or_two_exchanged_is_none() {
        let good = KeyText::of_random(std::array::from_fn(|n| u8::try_from(n).unwrap()));
        for at in PREFIX.len()..good.text().len() {
            let mut wrong = good.text().as_bytes().to_vec();
            wrong[at] = if wrong[at] == b'x' { b'y' } else { b'x' };
            assert!(KeyText::parse(str::from_utf8(&wrong).unwrap()).is_none(), "{at}");
            let mut exchanged = good.text().as_bytes().to_vec();
            exchanged.swap(at - 1, at);
            let is_same = exchanged == good.text().as_bytes();
            assert_eq!(KeyText::parse(str::from_utf8(&exchanged).unwrap()).is_some(), is_same, "{at}");
        }
    }

    #[test]
    fn the_hash_is_of_the_whole_text_in_lower_case_digits_and_reads_back() {
        let key = KeyText::of_random([0; 32]);
        let written = key.hash().to_string();
        // printf %s skillet_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAZClWt | sha256sum
        assert_eq!(written, "84ab1dffa90a6f71e160fceff46920e463a855d210bcf180334839213bb97835");
        assert_eq!(KeyHash::parse(&written), Some(key.hash()));
        let (upper, long) = (written.to_uppercase(), format!("{written}0"));
        for text in ["", "00", &upper, &long, &written[..62], &written[..63], &"é".repeat(32)] {
            assert_eq!(KeyHash::parse(text), None, "{text:?}");
        }
    }
}

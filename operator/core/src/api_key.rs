//! API keys of the gateway: their text and their hash. The cluster stores the hash only.
//!
//! Storage and owners of keys are elsewhere. The caller passes the random bytes.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// Prefix of every key.
pub const PREFIX: &str = "sk_";
/// Random bytes of a key. Nobody can guess that many, so a plain hash is enough.
pub const RANDOM_BYTES: usize = 32;

/// The text of a key. It has no `Debug`, so that it does not get into a log.
pub struct ApiKey(String);

impl ApiKey {
    pub fn of_random(bytes: [u8; RANDOM_BYTES]) -> Self {
        Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Parses a key.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (bytes.len() == RANDOM_BYTES).then(|| Self(text.to_owned()))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    pub fn hash(&self) -> KeyHash {
        KeyHash(Sha256::digest(&self.0).into())
    }
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
    fn a_key_is_a_prefix_and_its_random_bytes_and_reads_back() {
        let key = ApiKey::of_random([0xff; 32]);
        assert_eq!(key.text(), "sk___________________________________________8");
        assert_eq!(ApiKey::parse(key.text()).unwrap().hash(), key.hash());
    }

    #[test]
    fn what_has_not_the_form_of_a_key_is_none() {
        let good = ApiKey::of_random([7; 32]);
        assert!(ApiKey::parse(good.text()).is_some());
        let longer = format!("{}A", good.text());
        let other_end = format!("{}9", &good.text()[..45]);
        for text in ["", "sk_", "sk-abc", &good.text()[3..], &good.text()[..45], &longer, &other_end, "sk_ü"]
        {
            assert!(ApiKey::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn the_hash_is_of_the_whole_text_in_lower_case_digits_and_reads_back() {
        let key = ApiKey::of_random([0; 32]);
        let written = key.hash().to_string();
        // printf %s sk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA | sha256sum
        assert_eq!(written, "12576e7a680e2c3225b7d080cd3e1484262cfd95d5596652e4649a8325ac8ea8");
        assert_eq!(KeyHash::parse(&written), Some(key.hash()));
        let (upper, long) = (written.to_uppercase(), format!("{written}0"));
        for text in ["", "00", &upper, &long, &written[..62], &written[..63], &"é".repeat(32)] {
            assert_eq!(KeyHash::parse(text), None, "{text:?}");
        }
    }
}

//! The digest of a text, by which its vector is kept.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The first half of a text's SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TextDigest([u8; 16]);

impl TextDigest {
    pub(super) fn of(text: &str) -> Self {
        let digest = Sha256::digest(text);
        let mut half = [0; 16];
        half.iter_mut().zip(digest).for_each(|(byte, of)| *byte = of);
        Self(half)
    }

    /// Reads the written form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        // Leading zeros count, and a sign is none of the digits.
        let is_digest = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_digest {
            return None;
        }
        Some(Self(u128::from_str_radix(text, 16).ok()?.to_be_bytes()))
    }

    pub(super) fn first_byte(self) -> u8 {
        let [first, ..] = self.0;
        first
    }
}

impl fmt::Display for TextDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_32_hexadecimal_digits() {
        for text in ["", "a", "grün"] {
            let digest = TextDigest::of(text);
            assert_eq!(
                (digest.to_string().len(), TextDigest::parse(&digest.to_string())),
                (32, Some(digest))
            );
        }
        assert_eq!(TextDigest::of("a").to_string(), "ca978112ca1bbdcafac231b39a23dc4d");
        for text in ["", "space", "+a978112ca1bbdcafac231b39a23dc4d", "ca978112ca1bbdcafac231b39a23dc4dd"] {
            assert_eq!(TextDigest::parse(text), None, "{text}");
        }
    }
}

//! Encodes bytes for a container log, which must keep every byte of the stream.
//!
//! A log drops a carriage return before a line feed, and has some forty bytes of its own for each line. DLE, CR and LF
//! become two bytes: DLE, then the byte with bit 5 flipped. A line feed as it is carries nothing: it only makes the container
//! runtime write what it has to the log, which it otherwise does after 16 KiB or at the end.

use memchr::{memchr2, memchr3, memchr3_iter};

const DLE: u8 = 0x10;
const CR: u8 = b'\r';
const LF: u8 = b'\n';
const FLIP: u8 = 0x20;

/// Encodes bytes for the wire.
pub(crate) fn escape(bytes: Vec<u8>) -> Vec<u8> {
    let special = memchr3_iter(DLE, CR, LF, &bytes).count();
    if special == 0 {
        return bytes;
    }
    let mut encoded = Vec::with_capacity(bytes.len() + special);
    let mut rest = bytes.as_slice();
    while let Some(place) = memchr3(DLE, CR, LF, rest) {
        encoded.extend_from_slice(&rest[..place]);
        encoded.extend([DLE, rest[place] ^ FLIP]);
        rest = &rest[place + 1..];
    }
    encoded.extend_from_slice(rest);
    encoded
}

/// Encodes bytes that the log must have at once.
pub(crate) fn escape_line(bytes: Vec<u8>) -> Vec<u8> {
    let mut encoded = escape(bytes);
    encoded.push(LF);
    encoded
}

/// Decodes bytes from the wire, wherever they are cut.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unescape {
    is_escaped: bool,
}

impl Unescape {
    /// Decodes `encoded`. Bytes that no runner sends decode to something that fails the framing or the digest.
    pub(crate) fn push(&mut self, encoded: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(encoded.len());
        let mut rest = encoded;
        loop {
            if self.is_escaped {
                let Some((first, after)) = rest.split_first() else { return bytes };
                bytes.push(first ^ FLIP);
                self.is_escaped = false;
                rest = after;
            }
            let Some(place) = memchr2(DLE, LF, rest) else {
                bytes.extend_from_slice(rest);
                return bytes;
            };
            bytes.extend_from_slice(&rest[..place]);
            self.is_escaped = rest[place] == DLE;
            rest = &rest[place + 1..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_bytes_have_no_line_ends_and_decode_wherever_they_are_cut() {
        let all: Vec<u8> = (0..=255).chain(*b"a\r\nb\x10\r\r\n\x10\n\n").collect();
        let sent = escape(all.clone());
        assert!(!sent.contains(&CR) && !sent.contains(&LF));
        for cut in 0..=sent.len() {
            let mut unescape = Unescape::default();
            let mut back = unescape.push(&sent[..cut]);
            back.extend(unescape.push(&sent[cut..]));
            assert_eq!(back, all, "cut at {cut}");
        }
    }

    #[test]
    fn a_line_ends_with_a_line_feed_that_carries_nothing() {
        let sent = [escape_line(b"a\n".to_vec()), escape(b"b".to_vec())].concat();
        assert_eq!(sent, b"a\x10*\nb");
        assert_eq!(Unescape::default().push(&sent), b"a\nb");
    }

    #[test]
    fn bytes_without_dle_and_line_ends_stay_unchanged() {
        assert_eq!(escape(b"plain\0\xff".to_vec()), b"plain\0\xff");
    }
}

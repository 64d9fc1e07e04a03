//! Encodes bytes without carriage returns: a container log drops the one before a line feed, and must keep every byte.
//!
//! DLE and CR become two bytes: DLE, then the byte with bit 5 flipped.

const DLE: u8 = 0x10;
const CR: u8 = b'\r';
const FLIP: u8 = 0x20;

/// Encodes bytes for the wire.
pub(crate) fn escape(bytes: Vec<u8>) -> Vec<u8> {
    let special = bytes.iter().filter(|byte| is_special(**byte)).count();
    if special == 0 {
        return bytes;
    }
    let mut encoded = Vec::with_capacity(bytes.len() + special);
    for byte in bytes {
        if is_special(byte) {
            encoded.extend([DLE, byte ^ FLIP]);
        } else {
            encoded.push(byte);
        }
    }
    encoded
}

fn is_special(byte: u8) -> bool {
    byte == DLE || byte == CR
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
        for byte in encoded {
            match (self.is_escaped, *byte) {
                (true, byte) => {
                    bytes.push(byte ^ FLIP);
                    self.is_escaped = false;
                }
                (false, DLE) => self.is_escaped = true,
                (false, byte) => bytes.push(byte),
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_bytes_have_no_carriage_return_and_decode_wherever_they_are_cut() {
        let all: Vec<u8> = (0..=255).chain(*b"a\r\nb\x10\r\r\n\x10").collect();
        let sent = escape(all.clone());
        assert!(!sent.contains(&CR));
        for cut in 0..=sent.len() {
            let mut unescape = Unescape::default();
            let mut back = unescape.push(&sent[..cut]);
            back.extend(unescape.push(&sent[cut..]));
            assert_eq!(back, all, "cut at {cut}");
        }
    }

    #[test]
    fn bytes_without_dle_and_cr_stay_unchanged() {
        assert_eq!(escape(b"plain\n\0\xff".to_vec()), b"plain\n\0\xff");
    }
}

//! Frames without carriage returns: a container log drops the one before a line feed, and the log must keep every byte.
//!
//! DLE stands before a byte that was changed: DLE and CR are sent as DLE and themselves with bit 5 turned.

const DLE: u8 = 0x10;
const CR: u8 = b'\r';
const TURN: u8 = 0x20;

/// The bytes as they are sent.
pub(crate) fn escape(bytes: Vec<u8>) -> Vec<u8> {
    let special = bytes.iter().filter(|byte| is_special(**byte)).count();
    if special == 0 {
        return bytes;
    }
    let mut sent = Vec::with_capacity(bytes.len() + special);
    for byte in bytes {
        if is_special(byte) {
            sent.extend([DLE, byte ^ TURN]);
        } else {
            sent.push(byte);
        }
    }
    sent
}

fn is_special(byte: u8) -> bool {
    byte == DLE || byte == CR
}

/// Turns sent bytes back, wherever they are cut.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unescape {
    is_turned: bool,
}

impl Unescape {
    /// The bytes as they were. What no runner sends comes out as something, and fails the framing or the digest.
    pub(crate) fn push(&mut self, sent: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(sent.len());
        for byte in sent {
            match (self.is_turned, *byte) {
                (true, byte) => {
                    bytes.push(byte ^ TURN);
                    self.is_turned = false;
                }
                (false, DLE) => self.is_turned = true,
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
    fn nothing_sent_holds_a_carriage_return_and_all_comes_back_however_it_is_cut() {
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
    fn what_needs_no_change_is_sent_as_it_is() {
        assert_eq!(escape(b"plain\n\0\xff".to_vec()), b"plain\n\0\xff");
    }
}

//! Replaces secret values in output as it streams by.
//!
//! Pure: bytes in, bytes out. The masker delays only bytes that could still become a secret. It guards against accidents,
//! not intent: a program that encodes a secret (base64, one character a line) gets it through.

/// The text that replaces a secret in output.
pub const MASK: &[u8] = b"***";

/// Shorter values are not masked: replacing every `1` or `no` would ruin the output and hide nothing.
pub const MIN_MASKED_BYTES: usize = 4;

/// Masks one stream. One masker per stream, since each holds back its own beginning of a match.
#[derive(Clone)]
pub struct Masker {
    patterns: Vec<Vec<u8>>,
    is_first: Box<[bool; 256]>,
    pending: Vec<u8>,
    /// Number of bytes at the front of `pending` that belong to a match whose mask has already been written.
    covered: usize,
}

impl std::fmt::Debug for Masker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Masker").field("patterns", &self.patterns.len()).finish_non_exhaustive()
    }
}

impl Masker {
    /// Masks these values without the white space around them, both as they are and as JSON writes them.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns: Vec<Vec<u8>> = secrets
            .into_iter()
            // Secrets often end in a newline that the program strips before it prints them.
            .map(str::trim)
            .filter(|value| value.len() >= MIN_MASKED_BYTES)
            .flat_map(|value| [value.to_owned(), json_escaped(value, false), json_escaped(value, true)])
            .map(String::into_bytes)
            .collect();
        patterns.sort();
        patterns.dedup();
        let mut is_first = Box::new([false; 256]);
        for pattern in &patterns {
            is_first[usize::from(pattern[0])] = true;
        }
        Self { patterns, is_first, pending: Vec::new(), covered: 0 }
    }

    /// Adds `bytes` to the stream and returns the masked bytes that are certain by now.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.patterns.is_empty() {
            return bytes.to_vec();
        }
        self.pending.extend_from_slice(bytes);
        self.scan(false)
    }

    /// Ends the stream and returns the rest.
    pub fn finish(&mut self) -> Vec<u8> {
        self.scan(true)
    }

    fn scan(&mut self, at_end: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.pending.len());
        let (mut at, mut covered_to) = (0, self.covered);
        while at < self.pending.len() {
            let rest = &self.pending[at..];
            if self.is_first[usize::from(rest[0])] {
                let longest = self.patterns.iter().filter(|p| rest.starts_with(p)).map(Vec::len).max();
                // Decided only once no longer secret can begin here, else its end would follow the mask.
                if !at_end && self.patterns.iter().any(|p| p.len() > rest.len() && p.starts_with(rest)) {
                    break;
                }
                if let Some(length) = longest {
                    if at >= covered_to {
                        out.extend_from_slice(MASK);
                    }
                    // Matches that overlap are one: the end of the second must not stay visible.
                    covered_to = covered_to.max(at + length);
                }
            }
            if at >= covered_to {
                out.push(rest[0]);
            }
            at += 1;
        }
        self.pending.drain(..at);
        self.covered = covered_to.saturating_sub(at);
        out
    }
}

/// The value as it stands between the quotes of a JSON string; `ascii` as Python writes it by default.
fn json_escaped(value: &str, ascii: bool) -> String {
    use std::fmt::Write as _;
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            '\u{8}' => escaped.push_str("\\b"),
            '\u{c}' => escaped.push_str("\\f"),
            c if c < ' ' || (ascii && c > '~') => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The masked text must be the same however the stream is cut.
    fn check(secrets: &[&str], input: &str, expected: &str) {
        let masker = Masker::new(secrets.iter().copied());
        let bytes = input.as_bytes();
        for cut in 0..=bytes.len() {
            let mut masker = masker.clone();
            let mut out = masker.push(&bytes[..cut]);
            out.extend(masker.push(&bytes[cut..]));
            out.extend(masker.finish());
            assert_eq!(String::from_utf8_lossy(&out), expected, "cut at {cut}");
        }
        let mut bytewise = masker.clone();
        let mut out: Vec<u8> = bytes.iter().flat_map(|byte| bytewise.push(&[*byte])).collect();
        out.extend(bytewise.finish());
        assert_eq!(String::from_utf8_lossy(&out), expected, "byte by byte");
    }

    #[test]
    fn a_secret_is_masked_wherever_it_stands() {
        check(&["hunter2!"], "hunter2!", "***");
        check(&["hunter2!"], "a hunter2! b hunter2!\n", "a *** b ***\n");
        check(&["hunter2!"], "hunter2!hunter2!", "******");
        check(&["hunter2!"], "hunter2 hunter", "hunter2 hunter");
        check(&["aabaab"], "aaabaab", "a***");
    }

    #[test]
    fn a_secret_inside_another_leaves_no_end_visible() {
        check(&["abcd", "abcdef"], "xabcdefx abcdx", "x***x ***x");
        check(&["abcd", "cdef"], "abcdef", "***");
        check(&["aaaa"], "aaaaaa", "***");
    }

    #[test]
    fn short_values_are_left_alone() {
        check(&["", "1", "abc", " ab "], "1 abc ab", "1 abc ab");
        check(&["abcd"], "abcd", "***");
    }

    #[test]
    fn white_space_around_a_value_is_not_part_of_it() {
        check(&["hunter2\n"], "hunter2", "***");
        check(&["hunter2\n"], "hunter2\nnext", "***\nnext");
    }

    #[test]
    fn the_json_form_is_masked_too() {
        check(&["a\"b\\c\nd"], r#"{"k":"a\"b\\c\nd"}"#, r#"{"k":"***"}"#);
        check(&["pässwört🔑"], "pässwört🔑", "***");
        check(&["pässwört🔑"], r#""p\u00e4ssw\u00f6rt\ud83d\udd11""#, r#""***""#);
        check(&["tab\u{1}\t\u{8}\u{c}\rx"], r"tab\u0001\t\b\f\rx", "***");
    }

    #[test]
    fn an_unfinished_match_is_given_at_the_end() {
        let mut masker = Masker::new(["hunter2!"]);
        assert_eq!(masker.push(b"ok hunt"), b"ok ");
        assert_eq!(masker.finish(), b"hunt");
    }

    #[test]
    fn without_secrets_bytes_pass_at_once() {
        let mut masker = Masker::new([]);
        assert_eq!(masker.push(&[0xff, 0x00]), [0xff, 0x00]);
        assert!(masker.finish().is_empty());
    }

    #[test]
    fn debug_shows_no_secret() {
        assert_eq!(format!("{:?}", Masker::new(["hunter2!"])), "Masker { patterns: 1, .. }");
    }
}

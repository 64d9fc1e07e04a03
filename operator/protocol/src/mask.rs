//! Replaces secret values in output as it streams by.
//!
//! Pure: bytes in, bytes out. The masker delays only bytes that could still become a secret. It guards against accidents,
//! not intent: a program that encodes a secret (base64, one character a line) gets it through. Each line of a secret of
//! several lines is masked by itself too, since programs print such a secret line by line.

/// The text that replaces a secret in output.
pub const MASK: &[u8] = b"***";

/// Shorter values are not masked: replacing every `1` or `no` would ruin the output and hide nothing.
pub const MIN_MASKED_BYTES: usize = 4;

/// Shorter lines of a secret of several lines are not masked by themselves: `}` and `true` stand in any output.
const MIN_MASKED_LINE_BYTES: usize = 8;
/// Most lines of one secret that are masked by themselves.
const MAX_MASKED_LINES: usize = 1024;

/// Masks one stream. One masker per stream, since each holds back its own beginning of a match.
#[derive(Clone)]
pub struct Masker {
    /// Sorted, so that one of thousands is found in a few steps.
    patterns: Vec<Vec<u8>>,
    /// For each pattern the longest other one that it begins with.
    shorter: Vec<Option<usize>>,
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
    /// Masks these values without the white space around them, and as JSON and URLs write them.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns: Vec<Vec<u8>> = secrets
            .into_iter()
            // Secrets often end in a newline that the program strips before it prints them.
            .map(str::trim)
            .filter(|value| value.len() >= MIN_MASKED_BYTES)
            .flat_map(|value| [value].into_iter().chain(lines(value)))
            .flat_map(written_forms)
            .map(String::into_bytes)
            .collect();
        patterns.sort();
        patterns.dedup();
        let mut is_first = Box::new([false; 256]);
        for pattern in &patterns {
            is_first[usize::from(pattern[0])] = true;
        }
        let shorter = shorter_patterns(&patterns);
        Self { patterns, shorter, is_first, pending: Vec::new(), covered: 0 }
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

    /// The length of the longest pattern with which `rest` begins.
    fn longest_match(&self, rest: &[u8]) -> Option<usize> {
        // Every pattern between a beginning of `rest` and `rest` itself has this beginning too.
        let mut at = self.patterns.partition_point(|pattern| pattern.as_slice() <= rest).checked_sub(1);
        while let Some(index) = at {
            if rest.starts_with(&self.patterns[index]) {
                return Some(self.patterns[index].len());
            }
            at = self.shorter[index];
        }
        None
    }

    /// Returns true if more bytes may make `rest` the beginning of a longer pattern.
    fn may_grow(&self, rest: &[u8]) -> bool {
        let after = self.patterns.partition_point(|pattern| pattern.as_slice() <= rest);
        self.patterns.get(after).is_some_and(|pattern| pattern.starts_with(rest))
    }

    fn scan(&mut self, at_end: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.pending.len());
        let (mut at, mut covered_to) = (0, self.covered);
        while at < self.pending.len() {
            let rest = &self.pending[at..];
            if self.is_first[usize::from(rest[0])] {
                // Decided only once no longer secret can begin here, else its end would follow the mask.
                if !at_end && self.may_grow(rest) {
                    break;
                }
                if let Some(length) = self.longest_match(rest) {
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

/// For each of the sorted patterns the longest other one that it begins with.
fn shorter_patterns(patterns: &[Vec<u8>]) -> Vec<Option<usize>> {
    let mut shorter: Vec<Option<usize>> = Vec::with_capacity(patterns.len());
    for (index, pattern) in patterns.iter().enumerate() {
        let mut at = index.checked_sub(1);
        while let Some(other) = at {
            if pattern.starts_with(&patterns[other]) {
                break;
            }
            at = shorter[other];
        }
        shorter.push(at);
    }
    shorter
}

/// The lines of a secret of several lines, without the white space around them.
fn lines(value: &str) -> impl Iterator<Item = &str> {
    let lines = value.lines().map(str::trim).filter(move |line| line.len() < value.len());
    lines.filter(|line| line.len() >= MIN_MASKED_LINE_BYTES).take(MAX_MASKED_LINES)
}

/// The value as programs write it: as it is, in JSON by common libraries, and in a URL.
fn written_forms(value: &str) -> [String; 6] {
    // Go escapes what HTML would read, and PHP the slash.
    let go = |c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
    [
        value.to_owned(),
        json_escaped(value, |_| false),
        json_escaped(value, |c| c > '~'),
        json_escaped(value, go),
        json_escaped(value, |c| c > '~').replace('/', "\\/"),
        percent_encoded(value),
    ]
}

/// The value as it stands between the quotes of a JSON string. Escapes control characters and those of `also` by number.
fn json_escaped(value: &str, also: impl Fn(char) -> bool) -> String {
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
            c if c < ' ' || also(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// The value as a component of a URL, with the characters that RFC 3986 leaves as they are.
fn percent_encoded(value: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
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
    fn the_forms_of_other_writers_are_masked_too() {
        check(&["a&b<c>d/é"], r"go a\u0026b\u003cc\u003ed/é", "go ***");
        check(&["a&b/cé"], r"php a&b\/c\u00e9", "php ***");
        check(&["a&b/c é"], "url ?key=a%26b%2Fc%20%C3%A9&x=1", "url ?key=***&x=1");
    }

    #[test]
    fn each_line_of_a_secret_of_several_lines_is_masked() {
        let key = "-----BEGIN KEY-----\n  c2VjcmV0\r\nQUJDREVG\n}\n-----END KEY-----\n";
        check(&[key], "c2VjcmV0 then QUJDREVG, and } stays", "*** then ***, and } stays");
        check(&[key], key, "***\n");
        check(&["onelinevalue"], "onelinevalu", "onelinevalu");
    }

    #[test]
    fn many_lines_are_masked_at_the_speed_of_few() {
        let lines: Vec<String> = (0..1000).map(|number| format!("line-{number:06}-secret")).collect();
        let mut masker = Masker::new([lines.join("\n").as_str()]);
        let output = "line-xline-y".repeat(100_000);
        let before = std::time::Instant::now();
        assert_eq!(masker.push(output.as_bytes()).len() + masker.finish().len(), output.len());
        assert!(before.elapsed().as_secs() < 20, "{:?}", before.elapsed());
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
        assert_eq!(format!("{:?}", Masker::new(["hunter22"])), "Masker { patterns: 1, .. }");
    }
}

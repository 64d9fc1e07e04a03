//! Truncation of text and bytes for people: never inside a character, never longer than the limit.

/// Returns the longest prefix of `text` of at most `limit` bytes, and true if that is not all.
pub fn truncate(text: &str, limit: usize) -> (&str, bool) {
    if text.len() <= limit {
        return (text, false);
    }
    let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    (&text[..end], true)
}

/// Returns the first `limit` bytes as text; bytes that are not UTF-8 become U+FFFD.
pub fn text_head(bytes: &[u8], limit: usize) -> String {
    let head = &bytes[..limit.min(bytes.len())];
    // A character that the limit cuts is left out; the same bytes at the real end become U+FFFD.
    let whole = if head.len() < bytes.len() { without_cut_character(head) } else { head };
    String::from_utf8_lossy(whole).into_owned()
}

/// Returns the last `limit` bytes as text; bytes that are not UTF-8 become U+FFFD.
pub fn text_tail(bytes: &[u8], limit: usize) -> String {
    let start = bytes.len().saturating_sub(limit);
    // A character takes at most four bytes, so a cut character began at most three bytes earlier.
    let cut_character = (start.saturating_sub(3)..start).find_map(|first| {
        (start + 1..=bytes.len().min(first + 4)).find(|end| is_character(&bytes[first..*end]))
    });
    String::from_utf8_lossy(&bytes[cut_character.unwrap_or(start)..]).into_owned()
}

fn is_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().count() == 1)
}

/// Removes a cut character from the end of `head`.
pub(crate) fn without_cut_character(head: &[u8]) -> &[u8] {
    let is_cut = |rest: &[u8]| {
        std::str::from_utf8(rest).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    let cut = (1..=head.len().min(3)).map(|back| head.len() - back).find(|start| is_cut(&head[*start..]));
    &head[..cut.unwrap_or(head.len())]
}

/// Trims Unicode white space, and the byte-order mark that some tools print first.
pub fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rng::TestRng;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(truncate("hello", 5), ("hello", false));
        assert_eq!(truncate("hello", 4), ("hell", true));
        assert_eq!(truncate("aé", 2), ("a", true));
        assert_eq!(truncate("é", 0), ("", true));
        assert_eq!(truncate("", 0), ("", false));
        assert_eq!(truncate("🙂🙂", 7), ("🙂", true));
    }

    #[test]
    fn a_head_leaves_out_the_character_it_would_cut() {
        assert_eq!(text_head("aéb".as_bytes(), 2), "a");
        assert_eq!(text_head("aéb".as_bytes(), 3), "aé");
        assert_eq!(text_head("a🙂b".as_bytes(), 4), "a");
        assert_eq!(text_head(b"abc", 10), "abc");
        assert_eq!(text_head(b"", 10), "");
    }

    #[test]
    fn a_tail_leaves_out_the_character_it_would_cut() {
        assert_eq!(text_tail("aéb".as_bytes(), 2), "b");
        assert_eq!(text_tail("aéb".as_bytes(), 3), "éb");
        assert_eq!(text_tail("a🙂b".as_bytes(), 4), "b");
        assert_eq!(text_tail(b"abc", 10), "abc");
        assert_eq!(text_tail("é".as_bytes(), 1), "");
        assert_eq!(text_tail(b"abc", 0), "");
    }

    #[test]
    fn damaged_bytes_are_shown_as_such() {
        assert_eq!(text_head(b"a\xffb\xc3", 10), "a\u{fffd}b\u{fffd}");
        assert_eq!(text_head(b"\xff\xc3\xa9x", 2), "\u{fffd}");
        assert_eq!(text_head(b"\xffab", 2), "\u{fffd}a");
        assert_eq!(text_tail(b"\xffab\xff", 3), "ab\u{fffd}");
        assert_eq!(text_tail(&[0x80; 9], 4), "\u{fffd}".repeat(4));
    }

    #[test]
    fn a_cut_of_good_text_shows_no_damage_at_any_limit() {
        let mut rng = TestRng::new(3);
        for _ in 0..2_000 {
            let text = rng.text("aé中🙂", 12);
            for limit in 0..=text.len() {
                let (head, tail) = (text_head(text.as_bytes(), limit), text_tail(text.as_bytes(), limit));
                assert!(text.starts_with(&head) && text.ends_with(&tail), "{text} at {limit}");
                assert!(head.len() + 3 >= limit && head.len() <= limit, "{text} at {limit}");
                assert!(tail.len() + 3 >= limit && tail.len() <= limit, "{text} at {limit}");
                assert_eq!(truncate(&text, limit).0, head);
            }
        }
    }
}

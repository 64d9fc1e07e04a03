//! The order of names that breaks ties between equal scores.
//!
//! For ASCII it is the order of ICU's root collation, which JavaScript's `localeCompare` also gives. Accented letters
//! follow ICU too. Other scripts follow Latin by code point.

use std::cmp::Ordering;

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// White space, punctuation and symbols in their order. Digits and letters follow.
const SIGNS: &str = "\t\n\u{b}\u{c}\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// Compares two names: by letters, then by accents, then small letters before capitals.
pub(crate) fn compare_names(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        let letters = letters(a.chars()).cmp(letters(b.chars()));
        return letters.then_with(|| capitals(a.chars()).cmp(capitals(b.chars())));
    }
    let accents = |text: &str| text.nfd().filter(|c| is_combining_mark(*c)).collect::<Vec<char>>();
    letters(a.nfd())
        .cmp(letters(b.nfd()))
        .then_with(|| accents(a).cmp(&accents(b)))
        .then_with(|| capitals(a.nfd()).cmp(capitals(b.nfd())))
}

/// Returns the sort keys of the characters without regard to case. Accents and control characters have none.
fn letters(text: impl Iterator<Item = char>) -> impl Iterator<Item = (u8, u32)> {
    text.filter_map(|c| {
        let lower = c.to_lowercase().next().unwrap_or(c);
        if let Some(at) = SIGNS.find(c) {
            Some((0, u32::try_from(at).unwrap_or(u32::MAX)))
        } else if c.is_control() || is_combining_mark(c) {
            None
        } else if lower.is_numeric() {
            Some((2, u32::from(lower)))
        } else if lower.is_alphabetic() {
            Some((3, u32::from(lower)))
        } else {
            Some((1, u32::from(lower)))
        }
    })
}

fn capitals(text: impl Iterator<Item = char>) -> impl Iterator<Item = bool> {
    text.filter(|c| !c.is_control() && !is_combining_mark(*c)).map(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_characters_sort_as_in_icu() {
        let order = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ";
        let mut characters: Vec<String> = (' '..='~').map(String::from).collect();
        characters.sort_by(|a, b| compare_names(a, b));
        assert_eq!(characters.concat(), order);
    }

    #[test]
    fn letters_count_before_accents_and_accents_before_capitals() {
        for (less, more) in [
            ("a-b", "ab"),
            ("a b", "ab"),
            ("a_b", "a-b"),
            ("ab", "Ab"),
            ("aB", "Ab"),
            ("Ab", "ac"),
            ("ab", "abc"),
            ("a10", "a9"),
            ("1", "a"),
            ("e", "é"),
            ("é", "f"),
            ("éa", "eb"),
            ("é", "É"),
            ("É", "ea"),
            ("z", "α"),
            ("α", "я"),
            ("я", "中"),
            ("😀", "a"),
            ("$", "€"),
            ("€", "1"),
        ] {
            assert_eq!(compare_names(less, more), Ordering::Less, "{less} {more}");
            assert_eq!(compare_names(more, less), Ordering::Greater, "{more} {less}");
        }
        assert_eq!(compare_names("a\u{1}", "a"), Ordering::Equal);
    }
}

//! Case folding for search: case and accents do not count.
//!
//! It is neither a collation nor a stemmer.

use unicode_normalization::UnicodeNormalization;

/// Returns the text in lower case, without accents, and with one `i`. Turkish pairs `I` with `ı` and `İ` with `i`; without
/// one `i`, a search for `istanbul` would miss `İstanbul`.
///
/// The result is decomposed (NFD).
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let is_kept = |c: &char| !('\u{300}'..='\u{36f}').contains(c);
    let one_i = |c: char| if c == 'ı' { 'i' } else { c };
    text.to_lowercase().nfd().filter(is_kept).map(one_i).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_accents_do_not_count() {
        for (text, folded) in [
            ("Issue", "issue"),
            ("Şarj", "sarj"),
            ("Übergrößen", "ubergroßen"),
            ("cafe\u{301}", "cafe"),
            ("ẞ", "ß"),
            ("网页", "网页"),
            ("", ""),
        ] {
            assert_eq!(fold(text), folded);
        }
    }

    #[test]
    fn the_four_turkish_letters_i_are_one() {
        for word in ["ISPARTA", "ısparta", "İSPARTA", "isparta"] {
            assert_eq!(fold(word), "isparta");
        }
    }
}

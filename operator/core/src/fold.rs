//! Text folded for search: neither case nor accents count.
//!
//! Not a collation and not a stemmer: only letters are made alike.

use unicode_normalization::UnicodeNormalization;

/// Lower case, without accents, and with one `i`: Turkish writes `I` and `ı`, `İ` and `i` in pairs, so that telling
/// them apart would hide `İstanbul` from whoever types `istanbul`.
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
    fn the_four_turkish_letters_are_one() {
        for word in ["ISPARTA", "ısparta", "İSPARTA", "isparta"] {
            assert_eq!(fold(word), "isparta");
        }
    }
}

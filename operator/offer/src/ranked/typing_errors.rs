//! Typing errors: the term of a skill that is one edit away from a word that no skill has.
//!
//! Only words of ASCII letters are corrected, and the first letter is taken as it is: people seldom miss it.

/// Shortest term whose letters may be swapped, missing or too many, and shortest with one wrong letter. Short words have too
/// many neighbors that mean something else.
const MIN_LETTERS: usize = 5;
const MIN_LETTERS_REPLACED: usize = 7;

/// Longer words are no words of a language.
const MAX_LETTERS: usize = 24;

/// Returns the term that most skills have among those one edit away from `term`; the first in the alphabet if several do.
pub(super) fn correct(term: &str, frequency: impl Fn(&str) -> usize) -> Option<(String, usize)> {
    let letters = term.as_bytes();
    let is_word = letters.iter().all(u8::is_ascii_lowercase);
    if !is_word || !(MIN_LETTERS..=MAX_LETTERS).contains(&letters.len()) {
        return None;
    }
    let mut best: Option<(String, usize)> = None;
    let mut try_term = |edited: &[u8]| {
        let Ok(edited) = std::str::from_utf8(edited) else { return };
        let count = frequency(edited);
        let is_better = best
            .as_ref()
            .is_none_or(|(known, most)| count > *most || (count == *most && edited < known.as_str()));
        if count > 0 && is_better {
            best = Some((edited.to_owned(), count));
        }
    };
    let mut edited = Vec::with_capacity(letters.len() + 1);
    for at in 1..letters.len() {
        edited.clear();
        edited.extend_from_slice(letters);
        edited.swap(at, (at + 1).min(letters.len() - 1));
        try_term(&edited);
        edited.clear();
        edited.extend_from_slice(letters);
        edited.remove(at);
        if edited.len() >= MIN_LETTERS {
            try_term(&edited);
        }
        if letters.len() >= MIN_LETTERS_REPLACED {
            edited.insert(at, b'a');
            try_letters(&mut edited, at, &mut try_term);
        }
    }
    for at in 1..=letters.len() {
        edited.clear();
        edited.extend_from_slice(letters);
        edited.insert(at, b'a');
        try_letters(&mut edited, at, &mut try_term);
    }
    best
}

/// Tries each letter at one place.
fn try_letters(edited: &mut [u8], at: usize, try_term: &mut impl FnMut(&[u8])) {
    for letter in b'a'..=b'z' {
        if let Some(place) = edited.get_mut(at) {
            *place = letter;
        }
        try_term(edited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(term: &str, expected: Option<&str>) {
        let skills = ["translat", "invoic", "weather", "calendar", "plan", "imag", "image"];
        let found = correct(term, |term| usize::from(skills.contains(&term)));
        assert_eq!(found.map(|(found, _)| found).as_deref(), expected, "{term}");
    }

    #[test]
    fn one_edit_leads_to_the_term_of_a_skill() {
        check("trnaslat", Some("translat"));
        check("transalt", Some("translat"));
        check("trasnalt", None);
        check("transslat", Some("translat"));
        check("tranlat", Some("translat"));
        check("tramslat", Some("translat"));
        check("invoicc", Some("invoic"));
        check("weathe", Some("weather"));
    }

    #[test]
    fn short_words_other_scripts_and_first_letters_are_taken_as_they_are() {
        check("plam", None);
        check("plane", None);
        check("eather", None);
        check("jeather", None);
        // Replaced letters need a longer word.
        check("imbge", None);
        check("погода", None);
        check("weather2", None);
        check(&"a".repeat(30), None);
    }

    #[test]
    fn the_term_of_most_skills_wins_and_the_alphabet_decides_a_tie() {
        let skills = [("trains", 2), ("train", 5), ("traint", 5)];
        let frequency =
            |term: &str| skills.iter().find(|(name, _)| *name == term).map_or(0, |(_, count)| *count);
        assert_eq!(correct("trainx", frequency), Some(("train".to_owned(), 5)));
        assert_eq!(correct("trainn", frequency), Some(("train".to_owned(), 5)));
    }
}

//! Words of a text as terms of the index: without case, accents and stop words, reduced to stems.
//!
//! Scripts without blanks give each two neighboring characters. A word of a text that is not English has an English stem
//! too, because technical words are English in every language.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    sync::{Arc, LazyLock},
};

use super::language::Language;
use crate::{ascii_words::split_capitals, unicode_words};

/// Longer words are no words of a language. They are compared as they are.
const MAX_STEMMED: usize = 40;

/// Most words whose terms one thread keeps.
const MAX_KEPT: usize = 4096;

/// The terms of one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) main: Arc<str>,
    /// The English stem of a word in another language, if it differs.
    pub(super) english: Option<Arc<str>>,
    /// True for words of everyday talk, which tell little about what a person wants.
    pub(crate) is_general: bool,
    /// True if the word is English, so that English words related to it are known.
    pub(super) is_english: bool,
}

/// Calls `visit` with each distinct word of a text, its terms and its number of occurrences, in the order of the text.
pub(super) fn analyze<'t>(line: &'t str, mut visit: impl FnMut(&'t str, &Terms, u32)) {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    let mut order: Vec<&str> = Vec::new();
    for word in line.split(' ').filter(|word| is_word(word)) {
        let count = counts.entry(word).or_default();
        *count += 1;
        if *count == 1 {
            order.push(word);
        }
    }
    let language = Language::of_words(order.iter().copied());
    KEPT.with_borrow_mut(|kept| {
        for word in order {
            if let Some(terms) = kept.terms(language, word) {
                visit(word, terms, counts.get(word).copied().unwrap_or_default());
            }
        }
    });
}

/// Returns the words of a text in one line. A name in capitals and small letters is several words.
pub(super) fn line(text: &str) -> String {
    unicode_words::line([text])
}

/// Returns the words of a name in one line: `getURLParser` is get, url and parser.
pub(super) fn name_line(name: &str) -> String {
    line(&split_capitals(name))
}

/// Returns the term of a whole name of several words, such as `once-only`, however it is written. No word of a text is equal
/// to it.
pub(super) fn whole_name(name: &str) -> Option<Arc<str>> {
    let words: Vec<&str> = name.split(['-', '_']).filter(|word| !word.is_empty()).collect();
    let has_several = words.len() > 1 && words.iter().all(|word| word.chars().all(char::is_alphanumeric));
    has_several.then(|| format!("={}", words.join("-").to_lowercase()).into())
}

/// Returns the words of a text that may be names of several words, in its order.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| !c.is_alphanumeric() && c != '-' && c != '_';
    text.split(is_end).filter(|name| name.contains(['-', '_']))
}

fn is_word(word: &str) -> bool {
    !word.is_empty() && !unicode_words::is_single_letter(word)
}

/// English terms of everyday talk.
static GENERAL: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let words = include_str!("data/general_words.txt").split_whitespace();
    words.map(|word| Language::English.stem(word)).collect()
});

/// English terms, each with the terms of the same field of life.
static RELATED: LazyLock<HashMap<String, Vec<Arc<str>>>> = LazyLock::new(|| {
    let mut related: HashMap<String, Vec<Arc<str>>> = HashMap::new();
    for line in include_str!("data/related_words.txt").lines() {
        let terms: Vec<String> = line.split(' ').map(|word| Language::English.stem(word)).collect();
        for term in &terms {
            let known = related.entry(term.clone()).or_default();
            for other in terms.iter().filter(|other| *other != term) {
                if !known.iter().any(|known| **known == **other) {
                    known.push(other.as_str().into());
                }
            }
        }
    }
    related
});

/// Returns the English terms that are related to an English term, in a fixed order.
pub(super) fn related(term: &str) -> &'static [Arc<str>] {
    RELATED.get(term).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn is_general(term: &str) -> bool {
    GENERAL.contains(term)
}

thread_local! {
    static KEPT: RefCell<KeptTerms> = RefCell::default();
}

/// Terms of words by language, since stemming takes longer than all other steps. `None` is a stop word.
#[derive(Default)]
struct KeptTerms([HashMap<Box<str>, Option<Terms>>; Language::COUNT]);

impl KeptTerms {
    fn terms(&mut self, language: Language, word: &str) -> Option<&Terms> {
        let language = language.of_word(word);
        let kept = self.0.get_mut(language.number())?;
        if !kept.contains_key(word) {
            if kept.len() >= MAX_KEPT {
                kept.clear();
            }
            kept.insert(word.into(), terms(language, word));
        }
        kept.get(word)?.as_ref()
    }
}

fn terms(language: Language, word: &str) -> Option<Terms> {
    if language.is_stop_word(word) {
        return None;
    }
    let can_stem = word.len() <= MAX_STEMMED && word.chars().all(char::is_alphabetic);
    let stem = |language: Language| if can_stem { language.stem(word) } else { word.to_owned() };
    let main = stem(language);
    let is_english = language == Language::English;
    let english = (!is_english && word.is_ascii()).then(|| stem(Language::English));
    Some(Terms {
        english: english.filter(|english| *english != main).map(Into::into),
        is_general: is_english && is_general(&main),
        is_english,
        main: main.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use skillet_core::test_rng::TestRng;

    fn check(text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        analyze(&line(text), |_, terms, count| {
            let english = terms.english.as_ref().map(|english| format!("/{english}")).unwrap_or_default();
            found.push(format!("{}{english}*{count}", terms.main));
        });
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn words_become_stems_without_stop_words() {
        check("Please resize the images, an image a day", &["resiz*1", "imag*1", "imag*1", "day*1"]);
        check(
            "Bitte die Deployments für den Server prüfen",
            &["deployment/deploy*1", "serv/server*1", "pruf/prufen*1"],
        );
        check("Покажи отчеты за май", &["покаж*1", "отчет*1", "ма*1"]);
        check("请用网页搜索", &["请用*1", "用网*1", "网页*1", "页搜*1", "搜索*1"]);
        check("e e e x 7", &[]);
        check("", &[]);
    }

    #[test]
    fn a_name_is_split_at_capitals_and_signs() {
        for (name, expected) in [
            ("getURLParser", " get url parser "),
            ("image_resize-v2", " image resize v2 "),
            ("PDF&URLTool", " pdf url tool "),
        ] {
            assert_eq!(name_line(name), expected, "{name}");
        }
    }

    #[test]
    fn related_words_are_of_one_field_and_not_the_word_itself() {
        let related: Vec<&str> = related("hotel").iter().map(|term| &**term).collect();
        assert!(related.contains(&"accommod") && !related.contains(&"hotel"), "{related:?}");
        assert!(super::related("qzx").is_empty());
    }

    #[test]
    fn no_text_makes_a_stemmer_panic() {
        let mut rng = TestRng::new(5);
        let letters = "aeiouyszxnemtgjß'éüñçıığабвёьйщαβγςهوية搜1";
        for language in 0..Language::COUNT {
            for _ in 0..500 {
                let text = rng.text(letters, 12);
                let stopped = ["the", "der", "le", "el", "o", "il", "het", "это"].get(language).copied();
                analyze(&line(&format!("{text} {}", stopped.unwrap_or_default())), |_, _, _| {});
                for language in [Language::Arabic, Language::Greek, Language::Dutch, Language::Italian] {
                    language.stem(&text);
                }
            }
        }
    }
}

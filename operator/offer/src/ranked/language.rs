//! Languages of texts: their stop words and their stemmers.
//!
//! The script of a word decides if only one known language is written in it. Of a text in Latin letters the stop words
//! decide, and English counts if there are none.

use std::{collections::HashMap, sync::LazyLock};

use rust_stemmers::{Algorithm, Stemmer};
use skillet_core::case_fold::fold;

/// A language with a stemmer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Language {
    #[default]
    English,
    German,
    French,
    Spanish,
    Portuguese,
    Italian,
    Dutch,
    Russian,
    Greek,
    Arabic,
}

impl Language {
    /// Number of languages.
    pub(super) const COUNT: usize = 10;

    /// The languages with stop words, in the order of [`STOP_WORDS`].
    const WITH_STOP_WORDS: [Self; 8] = [
        Self::English,
        Self::German,
        Self::French,
        Self::Spanish,
        Self::Portuguese,
        Self::Italian,
        Self::Dutch,
        Self::Russian,
    ];

    /// Returns the language with the most stop words among these words. The earlier language wins a tie.
    pub(super) fn of_words<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut counts = [0_u32; Self::WITH_STOP_WORDS.len()];
        for languages in words.filter_map(|word| STOP_WORDS.get(word)) {
            for (at, count) in counts.iter_mut().enumerate() {
                *count += u32::from(languages >> at & 1);
            }
        }
        let mut best = (0, Self::English);
        for (count, language) in counts.into_iter().zip(Self::WITH_STOP_WORDS) {
            if count > best.0 {
                best = (count, language);
            }
        }
        best.1
    }

    /// Returns the language of a word in a text of this language.
    pub(super) fn of_word(self, word: &str) -> Self {
        match word.chars().next().map_or(0, u32::from) {
            0x0370..=0x03FF => Self::Greek,
            0x0400..=0x04FF => Self::Russian,
            0x0600..=0x06FF => Self::Arabic,
            _ => match self {
                Self::Greek | Self::Russian | Self::Arabic => Self::English,
                latin => latin,
            },
        }
    }

    pub(super) fn is_stop_word(self, word: &str) -> bool {
        let at = Self::WITH_STOP_WORDS.iter().position(|language| *language == self);
        at.is_some_and(|at| STOP_WORDS.get(word).is_some_and(|languages| languages >> at & 1 == 1))
    }

    /// Returns the stem of a word without case and accents.
    pub(super) fn stem(self, word: &str) -> String {
        let algorithm = match self {
            Self::English => Algorithm::English,
            Self::German => Algorithm::German,
            Self::French => Algorithm::French,
            Self::Spanish => Algorithm::Spanish,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Italian => Algorithm::Italian,
            Self::Dutch => Algorithm::Dutch,
            Self::Russian => Algorithm::Russian,
            Self::Greek => Algorithm::Greek,
            Self::Arabic => Algorithm::Arabic,
        };
        Stemmer::create(algorithm).stem(word).into_owned()
    }

    pub(super) fn number(self) -> usize {
        self as usize
    }
}

/// Each stop word with one bit for each language that has it.
static STOP_WORDS: LazyLock<HashMap<String, u8>> = LazyLock::new(|| {
    let mut words: HashMap<String, u8> = HashMap::new();
    for (at, line) in include_str!("data/stop_words.txt").lines().enumerate() {
        // The first word is the name of the language.
        for word in line.split(' ').skip(1) {
            *words.entry(fold(word)).or_default() |= 1 << at;
        }
    }
    words
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_decide_the_language_of_a_latin_text() {
        let check =
            |text: &str, expected| assert_eq!(Language::of_words(text.split(' ')), expected, "{text}");
        check("please send the invoice to my customer", Language::English);
        check("bitte die rechnung an den kunden senden", Language::German);
        check("envoie la facture au client avec une copie", Language::French);
        check("quiero enviar la factura al cliente por favor", Language::Spanish);
        check("quero enviar a fatura para o cliente", Language::Portuguese);
        check("vorrei inviare la fattura al cliente", Language::Italian);
        check("stuur de factuur naar mijn klant en een kopie", Language::Dutch);
        check("invoice", Language::English);
        check("", Language::English);
    }

    #[test]
    fn the_script_decides_the_language_of_a_word() {
        for (word, expected) in
            [("отчет", Language::Russian), ("καιρος", Language::Greek), ("web", Language::German)]
        {
            assert_eq!(Language::German.of_word(word), expected, "{word}");
        }
        assert_eq!(Language::Russian.of_word("web"), Language::English);
    }

    #[test]
    fn each_language_has_its_line_of_stop_words() {
        let lines: Vec<&str> = include_str!("data/stop_words.txt").lines().collect();
        let names: Vec<&str> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(names, ["en", "de", "fr", "es", "pt", "it", "nl", "ru"]);
        for (language, word) in
            [(Language::English, "the"), (Language::German, "fur"), (Language::Russian, "это")]
        {
            assert!(language.is_stop_word(word), "{word}");
        }
        assert!(!Language::English.is_stop_word("der") && !Language::Greek.is_stop_word("the"));
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for (language, a, b) in [
            (Language::English, "invoices", "invoice"),
            (Language::German, "rechnungen", "rechnung"),
            (Language::French, "factures", "facture"),
            (Language::Spanish, "facturas", "factura"),
            (Language::Russian, "отчеты", "отчета"),
        ] {
            assert_eq!(language.stem(a), language.stem(b), "{a} {b}");
        }
    }
}

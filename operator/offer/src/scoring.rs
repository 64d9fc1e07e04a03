//! The match modes, and the points that each match gives.

use skillet_api::gateway::OfferMatching;

use super::{
    Query, RequestFacts,
    ascii_words::{self, distinct},
    unicode_words,
};

/// Rules by which text is split into words and phrases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MatchMode {
    /// The rules of OmniRoute. Names and tags match anywhere in the text, inside of words too. Words are ASCII. The text
    /// includes the client's tools, the model's id and the wire format.
    #[default]
    Substring,
    /// Names and tags match as whole words or phrases, in any script. Stop words score nothing. The text is that of the
    /// messages only.
    Words,
    /// Rare words of the user's turns weigh most, by BM25F over all texts of a skill. Words are compared by their stems.
    Ranked,
}

impl From<OfferMatching> for MatchMode {
    fn from(matching: OfferMatching) -> Self {
        match matching {
            OfferMatching::Substring => Self::Substring,
            OfferMatching::Words => Self::Words,
            OfferMatching::Ranked => Self::Ranked,
        }
    }
}

/// Points for each kind of match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// The whole name is in the text.
    pub name: i32,
    /// Each distinct word of the name that is a word of the text.
    pub name_word: i32,
    /// Each tag that is in the text; a tag given twice counts twice.
    pub tag: i32,
    /// Each distinct word of the description that is a word of the text.
    pub description_word: i32,
    /// Tags name the request's provider.
    pub provider_match: i32,
    /// Tags name providers, and not the request's.
    pub provider_mismatch: i32,
}

impl Default for Weights {
    fn default() -> Self {
        Self { name: 6, name_word: 2, tag: 3, description_word: 1, provider_match: 2, provider_mismatch: -2 }
    }
}

/// Match mode, points and limits of a selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scoring {
    pub matching: MatchMode,
    pub weights: Weights,
    /// Fewest points with which an `auto` skill is offered.
    pub threshold: i32,
    /// Most `auto` skills that one turn of a conversation leads to.
    pub maximum: usize,
    /// Most `auto` skills in one offer. Only [`MatchMode::Ranked`] keeps skills of earlier turns.
    pub conversation_maximum: usize,
}

impl Default for Scoring {
    fn default() -> Self {
        Self {
            matching: MatchMode::default(),
            weights: Weights::default(),
            threshold: 3,
            maximum: 5,
            conversation_maximum: 5,
        }
    }
}

impl Scoring {
    /// Returns the default numbers with [`MatchMode::Words`].
    pub fn words() -> Self {
        Self { matching: MatchMode::Words, ..Self::default() }
    }

    /// Returns the numbers of [`MatchMode::Ranked`]. The threshold is calibrated so that everyday talk finds nothing.
    pub fn ranked() -> Self {
        Self {
            matching: MatchMode::Ranked,
            // A match gives no points, so that nobody wins by tags of all providers.
            weights: Weights { provider_match: 0, provider_mismatch: -50, ..Weights::default() },
            threshold: 100,
            maximum: 5,
            conversation_maximum: 10,
        }
    }

    /// Prepares a request for this scoring.
    pub fn query(&self, facts: &RequestFacts<'_>) -> Query {
        Query::new(self.matching, facts)
    }
}

impl MatchMode {
    /// Returns the text that is searched.
    pub(crate) fn request_text(self, facts: &RequestFacts<'_>) -> String {
        match self {
            Self::Substring => facts.substring_text(),
            Self::Words => unicode_words::line(facts.texts.iter().copied()),
            Self::Ranked => String::new(),
        }
    }

    /// Returns all words of a text of [`Self::request_text`], words that score nothing included.
    pub(crate) fn words(self, text: &str) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Substring => Box::new(ascii_words::runs(text)),
            Self::Words => Box::new(text.split(' ')),
            Self::Ranked => Box::new(std::iter::empty()),
        }
    }

    pub(crate) fn is_scoring(self, word: &str) -> bool {
        match self {
            Self::Substring => true,
            Self::Words => unicode_words::is_scoring(word),
            Self::Ranked => false,
        }
    }

    /// Returns the pattern that is searched for a name.
    pub(crate) fn name_pattern(self, name: &str) -> Option<String> {
        match self {
            Self::Substring => lower_pattern(name),
            Self::Words => unicode_words::phrase(&unicode_words::split_name(name)),
            Self::Ranked => None,
        }
    }

    /// Returns the pattern that is searched for a tag.
    pub(crate) fn tag_pattern(self, tag: &str) -> Option<String> {
        match self {
            Self::Substring => lower_pattern(tag),
            Self::Words => unicode_words::phrase(tag),
            Self::Ranked => None,
        }
    }

    /// Returns the distinct words of a name that score.
    pub(crate) fn name_words(self, name: &str) -> Vec<String> {
        match self {
            Self::Substring => ascii_words::name_words(name),
            Self::Words => self.text_words(&unicode_words::split_name(name)),
            Self::Ranked => Vec::new(),
        }
    }

    /// Returns the distinct words of a text that score.
    pub(crate) fn text_words(self, text: &str) -> Vec<String> {
        match self {
            Self::Substring => ascii_words::text_words(text),
            Self::Words => distinct(unicode_words::scoring_words(&unicode_words::line([text]))),
            Self::Ranked => Vec::new(),
        }
    }
}

fn lower_pattern(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_substring_mode_searches_tools_model_and_format() {
        let tool = json!({"name": "x"});
        let facts = RequestFacts {
            model: "gpt",
            format: "openai",
            client_tools: &[&tool],
            texts: &["Find it"],
            ..RequestFacts::default()
        };
        assert_eq!(MatchMode::Substring.request_text(&facts), r#"[{"name":"x"}] gpt openai find it"#);
        assert_eq!(MatchMode::Words.request_text(&facts), " find it ");
    }

    #[test]
    fn an_empty_name_or_tag_has_no_pattern() {
        for matching in [MatchMode::Substring, MatchMode::Words] {
            assert_eq!((matching.name_pattern(""), matching.tag_pattern("")), (None, None));
        }
    }
}

//! How text is read and what each match is worth: the two policies `reference` and `words`, with their numbers.

use skillet_api::gateway::OfferMatching;

use super::{
    Candidate, Query, RequestFacts,
    ascii_words::{self, distinct},
    request::context_text,
    words,
};

/// By which rules text becomes words and phrases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MatchMode {
    /// As the reference does: names and tags are found anywhere in the text, inside of words too; tokens are ASCII;
    /// the text includes the client's tools, the model's id and the formats.
    #[default]
    Reference,
    /// Names and tags are found as whole words or phrases, in any script; stop words score nothing; the text is what
    /// people and the model wrote, and nothing else.
    Words,
}

impl From<OfferMatching> for MatchMode {
    fn from(matching: OfferMatching) -> Self {
        match matching {
            OfferMatching::Substring => Self::Substring,
            OfferMatching::Words => Self::Words,
        }
    }
}

/// Points for each kind of match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// The whole name is in the text.
    pub name: i32,
    /// Each different word of the name that is a word of the text.
    pub name_word: i32,
    /// Each tag that is in the text; a tag given twice counts twice.
    pub tag: i32,
    /// Each different word of the description that is a word of the text.
    pub description_word: i32,
    /// Each different word of the reason for background that is a word of the name.
    pub background_name: i32,
    /// Each different word of the reason for background that is related to a tag.
    pub background_tag: i32,
    /// Tags name the request's provider.
    pub provider_match: i32,
    /// Tags name providers, and not the request's.
    pub provider_mismatch: i32,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            name: 6,
            name_word: 2,
            tag: 3,
            description_word: 1,
            background_name: 2,
            background_tag: 2,
            provider_match: 2,
            provider_mismatch: -2,
        }
    }
}

/// Which skills fit a request, and how many are offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scoring {
    pub matching: MatchMode,
    pub weights: Weights,
    /// Points from which on an `auto` skill is offered.
    pub threshold: i32,
    /// Most `auto` skills in one offer.
    pub maximum: usize,
}

impl Default for Scoring {
    fn default() -> Self {
        Self { matching: MatchMode::default(), weights: Weights::default(), threshold: 3, maximum: 5 }
    }
}

impl Scoring {
    /// The scoring `words` with the same numbers.
    pub fn words() -> Self {
        Self { matching: MatchMode::Words, ..Self::default() }
    }

    /// Reads a request for this scoring.
    pub fn query(&self, facts: &RequestFacts<'_>) -> Query {
        Query::new(self.matching, facts)
    }
}

impl MatchMode {
    /// The text that is searched.
    pub(crate) fn text(self, facts: &RequestFacts<'_>) -> String {
        match self {
            Self::Substring => context_text(facts),
            Self::Words => unicode_words::line(facts.texts.iter().copied()),
        }
    }

    /// All words of a text of [`Self::text`], those that score nothing included.
    pub(crate) fn words(self, text: &str) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Substring => Box::new(ascii_words::runs(text)),
            Self::Words => Box::new(text.split(' ')),
        }
    }

    pub(crate) fn is_scoring(self, word: &str) -> bool {
        match self {
            Self::Substring => true,
            Self::Words => unicode_words::is_scoring(word),
        }
    }

    /// What is searched for a name.
    pub(crate) fn name_pattern(self, name: &str) -> Option<String> {
        match self {
            Self::Substring => Some(name.to_lowercase()).filter(|pattern| !pattern.is_empty()),
            Self::Words => unicode_words::phrase(&unicode_words::split_name(name)),
        }
    }

    /// What is searched for a tag.
    pub(crate) fn tag_pattern(self, tag: &str) -> Option<String> {
        match self {
            Self::Substring => Some(tag.to_lowercase()).filter(|pattern| !pattern.is_empty()),
            Self::Words => unicode_words::phrase(tag),
        }
    }

    pub(crate) fn name_words(self, candidate: &Candidate) -> Vec<String> {
        match self {
            Self::Substring => ascii_words::name_tokens(&candidate.name),
            Self::Words => {
                distinct(unicode_words::scoring_words(&unicode_words::line([unicode_words::split_name(
                    &candidate.name,
                )
                .as_str()])))
            }
        }
    }

    pub(crate) fn plain_words(self, text: &str) -> Vec<String> {
        match self {
            Self::Substring => ascii_words::context_tokens(text),
            Self::Words => distinct(unicode_words::scoring_words(&unicode_words::line([text]))),
        }
    }

    /// Whether a word of the reason for background is related to a tag, given as its pattern.
    pub(crate) fn relates(self, word: &str, tag_pattern: &str) -> bool {
        match self {
            Self::Substring => tag_pattern.contains(word) || word.contains(tag_pattern),
            Self::Words => tag_pattern.split(' ').any(|tag_word| tag_word == word),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_reference_searches_tools_model_and_formats() {
        let tool = json!({"name": "x"});
        let facts = RequestFacts {
            model: "gpt",
            source_format: "openai",
            client_tools: &[&tool],
            texts: &["Find it"],
            ..RequestFacts::default()
        };
        assert_eq!(MatchMode::Substring.text(&facts), r#"[{"name":"x"}] gpt openai find it"#);
        assert_eq!(MatchMode::Words.text(&facts), " find it ");
    }

    #[test]
    fn a_tag_relates_as_a_part_or_as_a_word() {
        for (matching, word, tag, expected) in [
            (MatchMode::Substring, "background", "background-jobs", true),
            (MatchMode::Substring, "background", "back", true),
            (MatchMode::Substring, "background", "front", false),
            (MatchMode::Words, "background", " background jobs ", true),
            (MatchMode::Words, "background", " back ", false),
        ] {
            assert_eq!(matching.relates(word, tag), expected, "{matching:?} {word} {tag}");
        }
    }

    #[test]
    fn an_empty_name_or_tag_is_searched_nowhere() {
        for matching in [MatchMode::Substring, MatchMode::Words] {
            assert_eq!((matching.name_pattern(""), matching.tag_pattern("")), (None, None));
        }
    }
}

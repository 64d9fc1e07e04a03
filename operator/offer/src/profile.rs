//! What of a skill is compared with a request, as one reading has it.

use super::{Candidate, Reading, provider::Families};

/// Patterns and words of one skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    /// Searched in the text; None where the name is no pattern.
    pub(crate) name: Option<String>,
    pub(crate) name_words: Vec<String>,
    /// Searched in the text; a tag given twice is here twice.
    pub(crate) tags: Vec<String>,
    pub(crate) description_words: Vec<String>,
    pub(crate) families: Families,
}

impl Profile {
    pub(crate) fn of(reading: Reading, candidate: &Candidate) -> Self {
        let lower: Vec<String> = candidate.tags.iter().map(|tag| tag.to_lowercase()).collect();
        Self {
            name: reading.name_pattern(&candidate.name),
            name_words: reading.name_words(candidate),
            tags: candidate.tags.iter().filter_map(|tag| reading.tag_pattern(tag)).collect(),
            description_words: reading.plain_words(&candidate.description),
            families: Families::of_tags(lower.iter().map(String::as_str)),
        }
    }

    /// Whether a word of the reason for background is related to one of the tags.
    pub(crate) fn relates(&self, reading: Reading, word: &str) -> bool {
        self.tags.iter().any(|tag| reading.relates(word, tag))
    }
}

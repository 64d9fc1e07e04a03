//! What of a skill is compared with a request, as one matching has it.

use super::{Candidate, MatchMode, provider_family::FamilySet};

/// Patterns and words of one skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SkillTerms {
    /// Searched in the text; None where the name is no pattern.
    pub(crate) name: Option<String>,
    pub(crate) name_words: Vec<String>,
    /// Searched in the text; a tag given twice is here twice.
    pub(crate) tags: Vec<String>,
    pub(crate) description_words: Vec<String>,
    pub(crate) families: FamilySet,
}

impl SkillTerms {
    pub(crate) fn of(matching: MatchMode, candidate: &Candidate) -> Self {
        let lower: Vec<String> = candidate.tags.iter().map(|tag| tag.to_lowercase()).collect();
        Self {
            name: matching.name_pattern(&candidate.name),
            name_words: matching.name_words(candidate),
            tags: candidate.tags.iter().filter_map(|tag| matching.tag_pattern(tag)).collect(),
            description_words: matching.plain_words(&candidate.description),
            families: FamilySet::of_tags(lower.iter().map(String::as_str)),
        }
    }

    /// Whether a word of the reason for background is related to one of the tags.
    pub(crate) fn relates(&self, matching: MatchMode, word: &str) -> bool {
        self.tags.iter().any(|tag| matching.relates(word, tag))
    }
}

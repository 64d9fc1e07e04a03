//! The terms of one skill that are compared with a request, as one match mode reads them.

use super::{
    Candidate, MatchMode,
    provider_family::FamilySet,
    ranked::{SkillTerm, skill_terms},
};

/// Patterns and words of one skill.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SkillTerms {
    /// Pattern that is searched in the text; `None` if the name has no word.
    pub(crate) name: Option<String>,
    pub(crate) name_words: Vec<String>,
    /// Patterns that are searched in the text; a tag given twice is here twice.
    pub(crate) tags: Vec<String>,
    pub(crate) description_words: Vec<String>,
    pub(crate) families: FamilySet,
    /// Terms by their order, for [`MatchMode::Ranked`] only.
    pub(crate) weighted: Vec<SkillTerm>,
}

impl SkillTerms {
    pub(crate) fn of(matching: MatchMode, candidate: &Candidate) -> Self {
        let lower: Vec<String> = candidate.tags.iter().map(|tag| tag.to_lowercase()).collect();
        Self {
            name: matching.name_pattern(&candidate.name),
            name_words: matching.name_words(&candidate.name),
            tags: candidate.tags.iter().filter_map(|tag| matching.tag_pattern(tag)).collect(),
            description_words: matching.text_words(&candidate.description),
            families: FamilySet::of_tags(lower.iter().map(String::as_str)),
            weighted: match matching {
                MatchMode::Substring | MatchMode::Words => Vec::new(),
                MatchMode::Ranked => skill_terms(candidate),
            },
        }
    }
}

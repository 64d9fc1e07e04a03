//! Text search over a skill's name, description and tags, where case does not count.

use skillet_core::fold::fold;

use crate::skills::KnownSkill;

/// A text that is looked for.
#[derive(Debug)]
pub(crate) struct Search(String);

impl Search {
    pub(crate) fn new(text: &str) -> Self {
        Self(fold(text.trim()))
    }

    pub(crate) fn finds(&self, skill: &KnownSkill) -> bool {
        let is_in = |text: &str| fold(text).contains(&self.0);
        self.0.is_empty()
            || is_in(&skill.name)
            || is_in(&skill.spec.description)
            || skill.spec.tags.iter().any(|tag| is_in(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str) -> bool {
        let skill = serde_saphyr::from_str(
            "apiVersion: skillet.dev/v1alpha1\nkind: Skill\nmetadata: {namespace: ns, name: word-count}\nspec: {version: 1.0.0, description: Sayar İstanbul, tags: [Text], run: {}}",
        );
        Search::new(text).finds(&KnownSkill::of(&skill.unwrap()).unwrap())
    }

    #[test]
    fn name_description_and_tags_are_searched_without_regard_to_case() {
        for text in ["WORD", "d-c", "istanbul", "ISTANBUL", "text", "", " count "] {
            assert!(finds(text), "{text}");
        }
        for text in ["word count", "1.0.0", "ankara"] {
            assert!(!finds(text), "{text}");
        }
    }
}

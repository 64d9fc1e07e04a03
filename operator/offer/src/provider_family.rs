//! Families of model providers, named by models and by tags of skills.

use skillet_llm::DialectName;

/// Family of the model that a request is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProviderFamily {
    OpenAi,
    Anthropic,
    Google,
    #[default]
    Other,
}

/// Words of each family, in ids of models and as tags. The first family with a match counts.
const WORDS: [(ProviderFamily, [&str; 2]); 3] = [
    (ProviderFamily::OpenAi, ["gpt", "openai"]),
    (ProviderFamily::Anthropic, ["claude", "anthropic"]),
    (ProviderFamily::Google, ["gemini", "google"]),
];

impl ProviderFamily {
    /// Returns the family of a model, by words anywhere in its id: `openrouter/anthropic/claude-x` is Anthropic's.
    pub fn of_model(model: &str) -> Self {
        let model = model.to_lowercase();
        let has_word = |(_, words): &&(Self, [&str; 2])| words.iter().any(|word| model.contains(word));
        WORDS.iter().find(has_word).map_or(Self::Other, |(provider, _)| *provider)
    }

    /// Returns the family that a tag in lower case names. The whole tag must be the family's word.
    pub(crate) fn of_tag(tag: &str) -> Option<Self> {
        WORDS.iter().find(|(_, words)| words.contains(&tag)).map(|(provider, _)| *provider)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Google => "google",
            Self::Other => "other",
        }
    }
}

impl From<DialectName> for ProviderFamily {
    fn from(dialect: DialectName) -> Self {
        match dialect {
            DialectName::OpenAiChat | DialectName::OpenAiResponses => Self::OpenAi,
            DialectName::Anthropic => Self::Anthropic,
            DialectName::Gemini => Self::Google,
        }
    }
}

/// Set of the families that a skill's tags name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FamilySet(u8);

impl FamilySet {
    /// Number of different sets.
    pub(crate) const COUNT: u8 = 8;

    pub(crate) fn of_tags<'a>(tags: impl Iterator<Item = &'a str>) -> Self {
        Self(tags.filter_map(ProviderFamily::of_tag).fold(0, |set, provider| set | Self::bit(provider)))
    }

    pub(crate) fn from_number(number: u8) -> Self {
        Self(number % Self::COUNT)
    }

    pub(crate) fn number(self) -> u8 {
        self.0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn contains(self, provider: ProviderFamily) -> bool {
        self.0 & Self::bit(provider) != 0
    }

    fn bit(provider: ProviderFamily) -> u8 {
        match provider {
            ProviderFamily::OpenAi => 1,
            ProviderFamily::Anthropic => 2,
            ProviderFamily::Google => 4,
            ProviderFamily::Other => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_model_names_its_family() {
        let check = |model: &str, expected| assert_eq!(ProviderFamily::of_model(model), expected, "{model}");
        check("anthropic/claude", ProviderFamily::Anthropic);
        check("google/palm", ProviderFamily::Google);
        check("GPT-4o", ProviderFamily::OpenAi);
        check("mistral-large", ProviderFamily::Other);
        check("", ProviderFamily::Other);
        // OpenAI's words are tried first.
        check("claude-by-openai", ProviderFamily::OpenAi);
        check("gemini-claude", ProviderFamily::Anthropic);
    }

    #[test]
    fn only_a_whole_tag_names_a_family() {
        let families = FamilySet::of_tags(["claude", "google", "gpt-4"].into_iter());
        assert!(families.contains(ProviderFamily::Anthropic) && families.contains(ProviderFamily::Google));
        assert!(!families.contains(ProviderFamily::OpenAi) && !families.contains(ProviderFamily::Other));
        assert!(FamilySet::of_tags(["web"].into_iter()).is_empty());
        assert_eq!(FamilySet::from_number(families.number()), families);
    }

    #[test]
    fn every_dialect_has_a_family() {
        let families = [
            DialectName::OpenAiChat,
            DialectName::OpenAiResponses,
            DialectName::Anthropic,
            DialectName::Gemini,
        ]
        .map(|dialect| ProviderFamily::from(dialect).as_str());
        assert_eq!(families, ["openai", "openai", "anthropic", "google"]);
        assert_eq!(ProviderFamily::default().as_str(), "other");
    }
}

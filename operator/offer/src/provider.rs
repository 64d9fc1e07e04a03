//! Families of model providers: which one a model belongs to, and which one a tag names.

use skillet_llm::DialectName;

/// Whose model a request is for, as far as skills care.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Provider {
    OpenAi,
    Anthropic,
    Google,
    #[default]
    Other,
}

/// Words in a model's id, and as tags of skills; the first family with a match counts.
const WORDS: [(Provider, [&str; 2]); 3] = [
    (Provider::OpenAi, ["gpt", "openai"]),
    (Provider::Anthropic, ["claude", "anthropic"]),
    (Provider::Google, ["gemini", "google"]),
];

/// The family of a model, by words anywhere in its id: `openrouter/anthropic/claude-x` is Anthropic's.
pub fn detect_provider(model: &str) -> Provider {
    let model = model.to_lowercase();
    let has_word = |(_, words): &&(Provider, [&str; 2])| words.iter().any(|word| model.contains(word));
    WORDS.iter().find(has_word).map_or(Provider::Other, |(provider, _)| *provider)
}

impl Provider {
    /// The family that a tag in lower case names. The whole tag must be its word.
    pub(crate) fn of_tag(tag: &str) -> Option<Self> {
        WORDS.iter().find(|(_, words)| words.contains(&tag)).map(|(provider, _)| *provider)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Google => "google",
            Self::Other => "other",
        }
    }
}

impl From<DialectName> for Provider {
    fn from(dialect: DialectName) -> Self {
        match dialect {
            DialectName::OpenAiChat | DialectName::OpenAiResponses => Self::OpenAi,
            DialectName::Anthropic => Self::Anthropic,
            DialectName::Gemini => Self::Google,
        }
    }
}

/// The families that a skill's tags name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Families(u8);

impl Families {
    /// How many different sets there are.
    pub(crate) const COUNT: u8 = 8;

    pub(crate) fn of_tags<'a>(tags: impl Iterator<Item = &'a str>) -> Self {
        Self(tags.filter_map(Provider::of_tag).fold(0, |set, provider| set | Self::bit(provider)))
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

    pub(crate) fn contains(self, provider: Provider) -> bool {
        self.0 & Self::bit(provider) != 0
    }

    fn bit(provider: Provider) -> u8 {
        match provider {
            Provider::OpenAi => 1,
            Provider::Anthropic => 2,
            Provider::Google => 4,
            Provider::Other => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_id_tells_its_family() {
        let check = |model: &str, expected| assert_eq!(detect_provider(model), expected, "{model}");
        check("anthropic/claude", Provider::Anthropic);
        check("google/palm", Provider::Google);
        check("GPT-4o", Provider::OpenAi);
        check("mistral-large", Provider::Other);
        check("", Provider::Other);
        // OpenAI is asked first.
        check("claude-by-openai", Provider::OpenAi);
        check("gemini-claude", Provider::Anthropic);
    }

    #[test]
    fn a_tag_names_a_family_only_as_a_whole() {
        let families = Families::of_tags(["claude", "google", "gpt-4"].into_iter());
        assert!(families.contains(Provider::Anthropic) && families.contains(Provider::Google));
        assert!(!families.contains(Provider::OpenAi) && !families.contains(Provider::Other));
        assert!(Families::of_tags(["web"].into_iter()).is_empty());
        assert_eq!(Families::from_number(families.number()), families);
    }

    #[test]
    fn every_dialect_has_its_family() {
        let families = [
            DialectName::OpenAiChat,
            DialectName::OpenAiResponses,
            DialectName::Anthropic,
            DialectName::Gemini,
        ]
        .map(|dialect| Provider::from(dialect).word());
        assert_eq!(families, ["openai", "openai", "anthropic", "google"]);
        assert_eq!(Provider::default().word(), "other");
    }
}

//! Instruction files of other products: their names, and the models that they are for.

/// A file of another product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThirdParty {
    Agents,
    Claude,
    Gemini,
    CursorRules,
    /// A file below `.cursor/rules`.
    CursorRule,
    CopilotInstructions,
    WindsurfRules,
    ClineRules,
}

impl ThirdParty {
    /// Recognizes a file of the set that every loader knows, in any case.
    pub fn of_file_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "agents.md" | "agent.md" => Some(Self::Agents),
            "claude.md" => Some(Self::Claude),
            "gemini.md" => Some(Self::Gemini),
            ".cursorrules" => Some(Self::CursorRules),
            _ => None,
        }
    }

    /// Recognizes a file by its path from the root of a project, also those that only some loaders know.
    pub fn of_path(path: &str) -> Option<Self> {
        let lower = path.to_ascii_lowercase();
        match lower.as_str() {
            ".github/copilot-instructions.md" => Some(Self::CopilotInstructions),
            ".windsurfrules" => Some(Self::WindsurfRules),
            ".clinerules" => Some(Self::ClineRules),
            _ if lower.starts_with(".cursor/rules/")
                && lower.rsplit_once('.').is_some_and(|(_, ending)| ending == "mdc") =>
            {
                Some(Self::CursorRule)
            }
            _ => Self::of_file_name(path.rsplit('/').next().unwrap_or(path)),
        }
    }

    /// Returns the name of its skill.
    pub fn skill_name(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Claude => "claude",
            Self::Gemini => "gemini",
            Self::CursorRules => "cursorrules",
            Self::CursorRule => "cursor-rule",
            Self::CopilotInstructions => "copilot-instructions",
            Self::WindsurfRules => "windsurfrules",
            Self::ClineRules => "clinerules",
        }
    }
}

/// True if a skill's text is for the model. Only `claude` and `gemini` are for one family, and an unknown model gets both.
pub fn is_for_model(skill_name: &str, model: &str) -> bool {
    let family = match skill_name {
        "claude" => Family::Anthropic,
        "gemini" => Family::Gemini,
        _ => return true,
    };
    Family::of_model(model).is_none_or(|known| known == family)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Anthropic,
    Gemini,
    Other,
}

impl Family {
    /// Finds the family in a model's name, such as `anthropic/claude-4` or `openai/gpt-5`.
    fn of_model(model: &str) -> Option<Self> {
        const FAMILIES: [(&str, Family); 11] = [
            ("claude", Family::Anthropic),
            ("anthropic", Family::Anthropic),
            ("gemini", Family::Gemini),
            ("gpt-", Family::Other),
            ("o1", Family::Other),
            ("o3", Family::Other),
            ("o4", Family::Other),
            ("qwen", Family::Other),
            ("deepseek", Family::Other),
            ("mistral", Family::Other),
            ("llama", Family::Other),
        ];
        let model = model.to_ascii_lowercase();
        FAMILIES.iter().find(|(word, _)| model.contains(word)).map(|(_, family)| *family)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_products_are_recognized() {
        assert_eq!(ThirdParty::of_file_name("agent.MD"), Some(ThirdParty::Agents));
        assert_eq!(ThirdParty::of_file_name("README.md"), None);
        for (path, name) in [
            ("svc/AGENTS.md", "agents"),
            (".cursorrules", "cursorrules"),
            (".cursor/rules/a/b.mdc", "cursor-rule"),
            (".github/copilot-instructions.md", "copilot-instructions"),
            (".windsurfrules", "windsurfrules"),
            (".clinerules", "clinerules"),
        ] {
            assert_eq!(ThirdParty::of_path(path).map(ThirdParty::skill_name), Some(name), "{path}");
        }
        assert_eq!(ThirdParty::of_path("x/.windsurfrules"), None);
    }

    #[test]
    fn a_text_for_one_family_is_kept_from_models_of_another() {
        assert!(is_for_model("claude", "anthropic/claude-sonnet-4"));
        assert!(!is_for_model("claude", "gemini-2.5-pro"));
        assert!(!is_for_model("gemini", "qwen3-coder") && !is_for_model("gemini", "gpt-5"));
        assert!(!is_for_model("claude", "openai/o3") && is_for_model("claude", "kimi-k2"));
        assert!(is_for_model("claude", "my-own-model") && is_for_model("gemini", ""));
        assert!(is_for_model("agents", "gpt-5"));
    }
}

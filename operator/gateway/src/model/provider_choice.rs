//! The provider of a request, by its dialect and model, and what the policy says of that model. No I/O.

use skillet_api::gateway::{ModelTools, Provider, ProviderDialect, Providers, ToolUse};
use skillet_core::glob;
use skillet_llm::{DialectName, native_tools::NativeTool};

/// The provider of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChosenProvider<'a> {
    /// Its name in rights, metrics and logs.
    pub name: &'a str,
    pub settings: &'a Provider,
}

impl ChosenProvider<'_> {
    /// Returns true if a request may name this model.
    pub(super) fn takes(&self, model: &str) -> bool {
        self.settings.models.is_empty() || glob::any_matches(&self.settings.models, model)
    }

    fn tool_use(&self, model: &str) -> ToolUse {
        self.exception(model).map_or(self.settings.tools, |of| of.tools)
    }

    fn exception(&self, model: &str) -> Option<&ModelTools> {
        self.settings.model_tools.iter().find(|of| glob::matches(&of.model, model))
    }

    /// Returns true if a skill stands in the place of a tool that the provider runs itself.
    fn replaces(&self, dialect: DialectName, model: &str, tool: NativeTool) -> bool {
        let exception = self.exception(model);
        let of_model = match tool {
            NativeTool::WebSearch => exception.and_then(|of| of.native_web_search),
            NativeTool::WebFetch => exception.and_then(|of| of.native_web_fetch),
        };
        let of_provider = match tool {
            NativeTool::WebSearch => self.settings.native_web_search,
            NativeTool::WebFetch => self.settings.native_web_fetch,
        };
        let is_native = dialect.has_native_tools() && self.settings.is_public(family(dialect));
        of_model.unwrap_or(of_provider).replaces(is_native)
    }
}

/// Chooses the provider of a model: the first additional one that takes it, else the dialect's own.
///
/// `None` if no provider takes the model. A request that names no model is for the dialect's own provider.
pub(super) fn choose<'a>(
    providers: &'a Providers,
    dialect: DialectName,
    model: Option<&str>,
) -> Option<ChosenProvider<'a>> {
    let own = own_provider(providers, dialect);
    let Some(model) = model else { return Some(own) };
    let mut all = additional(providers, dialect).chain([own]);
    all.find(|provider| provider.takes(model))
}

/// Returns the policy's word on skills for a model. A model that no provider takes is as others.
pub(super) fn tool_use(providers: &Providers, dialect: DialectName, model: &str) -> ToolUse {
    choose(providers, dialect, Some(model)).map_or(ToolUse::Auto, |provider| provider.tool_use(model))
}

/// Returns the provider's own tools in whose place skills stand, by the policy.
pub(super) fn replaced_tools(providers: &Providers, dialect: DialectName, model: &str) -> Vec<NativeTool> {
    let Some(provider) = choose(providers, dialect, Some(model)) else { return Vec::new() };
    NativeTool::ALL.into_iter().filter(|tool| provider.replaces(dialect, model, *tool)).collect()
}

fn additional(providers: &Providers, dialect: DialectName) -> impl Iterator<Item = ChosenProvider<'_>> {
    let family = family(dialect);
    let of_family = providers.additional.iter().filter(move |provider| provider.dialect == family);
    of_family.map(|provider| ChosenProvider { name: &provider.name, settings: &provider.provider })
}

fn own_provider(providers: &Providers, dialect: DialectName) -> ChosenProvider<'_> {
    let (name, settings) = match family(dialect) {
        ProviderDialect::OpenAI => ("openai", &providers.openai),
        ProviderDialect::Anthropic => ("anthropic", &providers.anthropic),
        ProviderDialect::Gemini => ("gemini", &providers.gemini),
    };
    ChosenProvider { name, settings }
}

/// The format of a dialect's provider.
pub(super) fn family(dialect: DialectName) -> ProviderDialect {
    match dialect {
        DialectName::OpenAiChat | DialectName::OpenAiResponses => ProviderDialect::OpenAI,
        DialectName::Anthropic => ProviderDialect::Anthropic,
        DialectName::Gemini => ProviderDialect::Gemini,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(json: Value) -> Providers {
        serde_json::from_value(json).unwrap()
    }

    fn several() -> Providers {
        policy(json!({
            "openai": { "models": ["gpt-*"] },
            "additional": [
                { "name": "claude", "dialect": "Anthropic" },
                { "name": "local", "dialect": "OpenAI", "models": ["llama*", "gpt-oss*"], "tools": "Never" },
                { "name": "late", "dialect": "OpenAI", "models": ["llama*"] },
            ],
        }))
    }

    fn name<'a>(providers: &'a Providers, dialect: DialectName, model: Option<&str>) -> Option<&'a str> {
        choose(providers, dialect, model).map(|provider| provider.name)
    }

    #[test]
    fn the_first_provider_of_dialect_and_model_is_chosen() {
        let providers = several();
        for (model, expected) in [
            ("llama-3", Some("local")),
            ("gpt-oss-20b", Some("local")),
            ("gpt-5", Some("openai")),
            ("o3", None),
        ] {
            for dialect in [DialectName::OpenAiChat, DialectName::OpenAiResponses] {
                assert_eq!(name(&providers, dialect, Some(model)), expected, "{model}");
            }
        }
        assert_eq!(name(&providers, DialectName::OpenAiChat, None), Some("openai"));
        assert_eq!(name(&providers, DialectName::Anthropic, Some("llama-3")), Some("claude"));
        assert_eq!(name(&providers, DialectName::Gemini, Some("llama-3")), Some("gemini"));
    }

    #[test]
    fn a_policy_without_lists_takes_every_model_as_before() {
        let providers = Providers::default();
        for dialect in DialectName::ALL {
            assert!(choose(&providers, dialect, Some("any")).is_some());
        }
    }

    #[test]
    fn skills_follow_the_first_exception_for_the_model() {
        let exceptions = json!([
            { "model": "o1-*", "tools": "Never" },
            { "model": "o*", "tools": "Always" },
        ]);
        let providers = policy(json!({ "openai": { "modelTools": exceptions, "tools": "Auto" } }));
        let of = |model| tool_use(&providers, DialectName::OpenAiChat, model);
        assert_eq!((of("o1-mini"), of("o3"), of("gpt-5")), (ToolUse::Never, ToolUse::Always, ToolUse::Auto));
        assert_eq!(tool_use(&several(), DialectName::OpenAiChat, "llama-3"), ToolUse::Never);
        assert_eq!(tool_use(&several(), DialectName::OpenAiChat, "o3"), ToolUse::Auto);
    }

    #[test]
    fn skills_replace_native_tools_by_provider_model_and_address() {
        use DialectName::{Anthropic, OpenAiChat, OpenAiResponses};
        let providers = policy(json!({
            "openai": { "nativeWebSearch": "Auto", "modelTools": [
                { "model": "o3*", "tools": "Auto", "nativeWebSearch": "Keep", "nativeWebFetch": "Replace" },
                { "model": "o*", "tools": "Auto" },
            ] },
            "anthropic": { "nativeWebFetch": "Auto" },
            "additional": [{ "name": "m", "dialect": "Anthropic", "models": ["mini*"], "baseUrl": "https://a.example",
                "nativeWebSearch": "Auto", "nativeWebFetch": "Keep" }],
        }));
        let of = |dialect, model| replaced_tools(&providers, dialect, model);
        assert_eq!(of(OpenAiChat, "gpt-5"), [NativeTool::WebSearch]);
        assert_eq!(
            of(OpenAiChat, "o4"),
            [NativeTool::WebSearch],
            "an exception without the field says nothing of it"
        );
        assert_eq!(of(OpenAiChat, "o3-mini"), [NativeTool::WebFetch]);
        assert_eq!(of(OpenAiResponses, "gpt-5"), [], "the public provider searches itself");
        assert_eq!(of(Anthropic, "claude"), []);
        assert_eq!(of(Anthropic, "mini-1"), [NativeTool::WebSearch]);
        for dialect in DialectName::ALL {
            assert_eq!(replaced_tools(&Providers::default(), dialect, "any"), [], "nothing changes unasked");
        }
    }
}

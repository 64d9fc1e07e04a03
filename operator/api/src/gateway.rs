//! The part of SkillPolicy that the gateway reads: namespaces of skills, selection of skills, limits of a conversation
//! and model providers.

mod embeddings;
mod offer;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{duration::SkillDuration, schema};

pub use self::{
    embeddings::{EmbeddingsPolicy, EmbeddingsProvider},
    offer::{LearningPolicy, OfferMatching, OfferMode, OfferPolicy, SearchTools},
};

/// Settings of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayPolicy {
    /// Namespaces whose skills every caller sees after those of its own namespace, in this order. The caller still needs the rights. Default none.
    #[schemars(schema_with = "schema::namespace_names")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub platform_namespaces: Vec<String>,
    /// Namespaces of imported skills, searched last. Default none.
    #[schemars(schema_with = "schema::namespace_names")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub catalog_namespaces: Vec<String>,
    /// Selection of the skills that a request is offered.
    pub offer: OfferPolicy,
    /// Limits of one conversation.
    pub conversation: ConversationPolicy,
    /// Most model requests and tokens of each caller namespace. Requests with a client's own key do not count.
    pub rate_limits: RateLimits,
    /// Model providers. Default the public ones, with the client's own key.
    pub providers: Providers,
}

/// Most model requests and tokens of each caller namespace. Each gateway process counts for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RateLimits {
    /// Requests in a minute. Default no limit.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Tokens in a minute, of requests and responses. They count after the response, so the next requests wait. Default no limit.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u32>,
}

/// Limits of one conversation. A request may lower `maxRounds`, never raise it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ConversationPolicy {
    /// Most further requests to the model after skills have run. Default 8.
    #[schemars(range(max = 64))]
    pub max_rounds: u32,
    /// Longest time for skills and for the start of rounds of one request. A response of the model itself may take longer. Default `5m`.
    pub timeout: SkillDuration,
    /// Most bytes of one result that the model gets; a longer result is cut and marked. Default 32768.
    #[schemars(range(min = 64, max = 1_048_576))]
    pub result_bytes: u32,
    /// Most bytes of all results of one request. Default 131072.
    #[schemars(range(min = 64, max = 8_388_608))]
    pub total_result_bytes: u32,
    /// Most calls of one response that run at the same time. Default 8.
    #[schemars(range(min = 1, max = 64))]
    pub max_parallel_calls: u32,
    /// Longest time for one whole response of a provider. Default `1h`.
    pub response_timeout: SkillDuration,
    /// Longest silence within a provider's response. Default `5m`.
    pub idle_timeout: SkillDuration,
    /// Most repetitions of a failed request of a later round. Default 3.
    #[schemars(range(max = 10))]
    pub max_retries: u32,
    /// Effect of `allowedTools` and `deniedTools` of skills whose instructions are in the conversation: `Enforce` refuses other calls of skills, `Advise` counts them. Calls of a client's own tools are counted. Default `Advise`.
    pub allowed_tools: AllowedTools,
}

/// Effect of the tools that instructions allow and deny.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AllowedTools {
    #[default]
    Advise,
    Enforce,
}

impl Default for ConversationPolicy {
    fn default() -> Self {
        Self {
            max_rounds: 8,
            timeout: SkillDuration(std::time::Duration::from_secs(300)),
            result_bytes: 32_768,
            total_result_bytes: 131_072,
            max_parallel_calls: 8,
            response_timeout: SkillDuration(std::time::Duration::from_secs(3600)),
            idle_timeout: SkillDuration(std::time::Duration::from_secs(300)),
            max_retries: 3,
            allowed_tools: AllowedTools::default(),
        }
    }
}

/// Model providers, each by the format of its requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Providers {
    /// `/v1/chat/completions` and `/v1/responses`. Default `https://api.openai.com`.
    pub openai: Provider,
    /// `/v1/messages`. Default `https://api.anthropic.com`.
    pub anthropic: Provider,
    /// `/v1beta/models/...:generateContent`. Default `https://generativelanguage.googleapis.com`.
    pub gemini: Provider,
    /// Further providers. The first one whose dialect and models match a request gets it, else one of the three above. Default none.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional: Vec<AdditionalProvider>,
}

impl Default for Providers {
    fn default() -> Self {
        Self {
            openai: Provider::at(ProviderDialect::OpenAI.public_url()),
            anthropic: Provider::at(ProviderDialect::Anthropic.public_url()),
            gemini: Provider::at(ProviderDialect::Gemini.public_url()),
            additional: Vec::new(),
        }
    }
}

/// Address and key of a model provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Provider {
    /// URL before the provider's own path: `http` or `https`, without a slash at the end. It may end with a version, such as `http://ollama:11434/v1`. Default the public address of its format.
    #[schemars(length(max = 512), regex(pattern = r"^(https?://[^ ]+[^ /])?$"))]
    pub base_url: String,
    /// The platform's key, a Secret in the operator's namespace. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_secret: Option<KeySecret>,
    /// True if a client may send its own key, which the gateway then forwards to the provider. Default true if `keySecret` is not set, else false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_key: Option<bool>,
    /// Patterns of the models that a request may name, with `*` for any text. Default all models.
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Offer of skills to its models: `Always`, also to a model that refused tools; `Auto`, not to a model that lately refused them; `Never`. Default `Auto`.
    pub tools: ToolUse,
    /// Exceptions from `tools`, `nativeWebSearch` and `nativeWebFetch` by model; the first that matches counts. Default none.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_tools: Vec<ModelTools>,
    /// Web search that the provider runs itself, in requests that name it as a tool (`web_search`, `web_search_preview`, dated names, `googleSearch`): `Keep` leaves it to the provider, `Replace` offers a skill of `run.builtin: web_search` in its place, and `Auto` does so only if the provider is not known to have it. Known are the public addresses, except for chat completions. Default `Keep`.
    pub native_web_search: NativeToolUse,
    /// The same for the reading of a page (`web_fetch` and dated names, `urlContext`) and skills of `run.builtin: web_fetch`. Default `Keep`.
    pub native_web_fetch: NativeToolUse,
    /// Ids of objects that the provider keeps (responses, files, caches), in requests with the platform's key. `Bind` accepts those of OpenAI's responses and conversations from the namespace that got them, and refuses others; `Refuse` refuses all; `Allow` lets tenants reach each other's. Default `Bind`.
    pub stored_objects: StoredObjects,
    /// True if requests with the platform's key carry a hash of the caller, as `safety_identifier` (OpenAI) or `metadata.user_id` (Anthropic). Default true at the public addresses, else false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_id: Option<bool>,
    /// Set for Azure OpenAI, which takes its key and names its models in another place. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<Azure>,
}

/// Ids of stored objects in requests with the platform's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StoredObjects {
    Allow,
    #[default]
    Bind,
    Refuse,
}

/// Offer of skills to the models of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ToolUse {
    Always,
    #[default]
    Auto,
    Never,
}

/// Offer of skills to some models.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelTools {
    /// Pattern of the models, with `*` for any text.
    #[schemars(length(min = 1, max = 256))]
    pub model: String,
    /// Offer of skills to them.
    pub tools: ToolUse,
    /// Web search that the provider runs itself. Default the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_web_search: Option<NativeToolUse>,
    /// Reading of a page that the provider runs itself. Default the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_web_fetch: Option<NativeToolUse>,
}

/// Use of a tool that a provider runs itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NativeToolUse {
    #[default]
    Keep,
    Replace,
    Auto,
}

impl NativeToolUse {
    /// Returns true if a skill stands in the tool's place. `is_native` is true if the provider is known to have the tool.
    pub fn replaces(self, is_native: bool) -> bool {
        match self {
            Self::Keep => false,
            Self::Replace => true,
            Self::Auto => !is_native,
        }
    }
}

/// Form of requests to Azure OpenAI.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Azure {
    /// Dated version of the API, such as `2024-10-21`. The model is then the name of a deployment, and `baseUrl` the address of the resource. Default none, for a `baseUrl` that ends with `/openai/v1`.
    #[schemars(length(max = 32), regex(pattern = r"^[0-9a-z-]+$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
}

/// Format of a provider's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProviderDialect {
    #[default]
    OpenAI,
    Anthropic,
    Gemini,
}

impl ProviderDialect {
    /// The address of the public provider of this format.
    pub fn public_url(self) -> &'static str {
        match self {
            Self::OpenAI => "https://api.openai.com",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }
}

/// A provider with a name of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalProvider {
    /// Name in rights, metrics and logs.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Format of its requests: `OpenAI` (chat completions and responses), `Anthropic` or `Gemini`.
    pub dialect: ProviderDialect,
    #[serde(flatten)]
    pub provider: Provider,
}

impl Provider {
    fn at(base_url: &str) -> Self {
        Self { base_url: base_url.to_owned(), ..Self::default() }
    }

    /// True if requests of this format go to its public provider.
    pub fn is_public(&self, dialect: ProviderDialect) -> bool {
        self.base_url.is_empty() || self.base_url.starts_with(dialect.public_url())
    }

    /// True if the gateway forwards a client's own key to the provider.
    pub fn takes_client_key(&self) -> bool {
        self.client_key.unwrap_or(self.key_secret.is_none())
    }
}

/// A key in a Secret of the operator's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeySecret {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in it. Default `apiKey`.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default = "api_key")]
    pub key: String,
}

fn api_key() -> String {
    "apiKey".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_replaces_a_native_tool_by_the_policys_word() {
        let replaces = |of: NativeToolUse| (of.replaces(true), of.replaces(false));
        assert_eq!(replaces(NativeToolUse::default()), (false, false));
        assert_eq!(replaces(NativeToolUse::Replace), (true, true));
        assert_eq!(replaces(NativeToolUse::Auto), (false, true));
    }

    #[test]
    fn a_client_key_is_forwarded_unless_the_platform_has_a_key_or_forbids_it() {
        let key = Some(KeySecret { name: "k".into(), key: api_key() });
        let takes = |key_secret: &Option<KeySecret>, client_key| {
            Provider { key_secret: key_secret.clone(), client_key, ..Provider::default() }.takes_client_key()
        };
        assert!(takes(&None, None) && !takes(&None, Some(false)));
        assert!(!takes(&key, None) && takes(&key, Some(true)));
    }
}

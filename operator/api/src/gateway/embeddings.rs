//! The part of SkillPolicy that names a provider of embeddings.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Azure, KeySecret, ProviderDialect};
use crate::{duration::SkillDuration, schema};

/// Search for skills by their meaning, with `Ranked` only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EmbeddingsPolicy {
    /// A provider of vectors for skills and questions. It takes the place of the gateway's static model. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<EmbeddingsProvider>,
}

impl EmbeddingsPolicy {
    /// Returns true if no provider is set.
    pub fn is_off(&self) -> bool {
        self.provider.is_none()
    }
}

/// A provider of embeddings in OpenAI's form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddingsProvider {
    /// URL before `/v1/embeddings`: `http` or `https`, without a slash at the end. It may end with a version, such as `http://ollama:11434/v1`. Default `https://api.openai.com`.
    #[schemars(length(max = 512), regex(pattern = r"^https?://[^ ]+[^ /]$"))]
    #[serde(default = "public_url")]
    pub base_url: String,
    /// The platform's key, a Secret in the operator's namespace. Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_secret: Option<KeySecret>,
    /// Set for Azure OpenAI, which takes its key and names its models in another place. Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub azure: Option<Azure>,
    /// Name of the model. Another model makes all vectors anew.
    #[schemars(length(min = 1, max = 256))]
    pub model: String,
    /// Length of the vectors, for models that let a request choose it. Default the model's own.
    #[schemars(range(min = 8, max = 4096))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
    /// Longest time that a request of a client waits for the vectors of its questions; then words alone decide. At most 5s. Default `300ms`.
    #[schemars(schema_with = "schema::short_duration")]
    #[serde(default = "timeout")]
    pub timeout: SkillDuration,
}

fn public_url() -> String {
    ProviderDialect::OpenAI.public_url().to_owned()
}

fn timeout() -> SkillDuration {
    SkillDuration(Duration::from_millis(300))
}

//! Commands in instructions: whether they run, for which namespaces, and one of them as a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{duration::SkillDuration, schema};

/// Use of the commands in a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DynamicContent {
    #[default]
    Never,
    Run,
    RunWithSecrets,
}

impl DynamicContent {
    /// Returns true for the default, which is not written: versions that were sealed without it keep their digest.
    pub fn is_never(&self) -> bool {
        *self == Self::Never
    }
}

/// Commands in instructions that may run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DynamicContentPolicy {
    /// Namespaces whose skills may have commands run, each if its `instructions.dynamic` says so. Default none.
    #[schemars(schema_with = "schema::namespace_names")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Time limit of a command that the gateway runs; it can only lower the skill's own. Default `10s`.
    #[schemars(schema_with = "schema::positive_duration")]
    pub timeout: SkillDuration,
    /// Time for which the gateway shows a caller the same output for the same command and values. It begins anew at each multiple of this time since 1970. Default `10m`.
    #[schemars(schema_with = "schema::positive_duration")]
    pub cache_ttl: SkillDuration,
}

impl Default for DynamicContentPolicy {
    fn default() -> Self {
        let seconds = |n| SkillDuration(std::time::Duration::from_secs(n));
        Self { namespaces: Vec::new(), timeout: seconds(10), cache_ttl: seconds(600) }
    }
}

impl DynamicContentPolicy {
    /// Returns true if commands of skills in this namespace may run.
    pub fn allows(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|allowed| allowed == namespace)
    }
}

/// A command of a skill's instructions, and the values that it gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BodyCommand {
    /// Command as it stands between the backticks in the body, byte for byte. Any other is refused. At most 4096 characters.
    #[schemars(length(min = 1, max = 4096))]
    pub text: String,
    /// Text behind a slash name: the shell has it as `$ARGUMENTS`, and its words as `$1`, `$2` and so on. At most 16384 characters. Default empty.
    #[schemars(length(max = 16_384))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arguments: String,
    /// Values of the inputs that the instructions declare, as text. The shell has each under the name of its input. At most 32 of at most 4096 characters.
    #[schemars(schema_with = "schema::input_values")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
}

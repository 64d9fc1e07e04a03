//! MCP servers of a skill, and their calls as executions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{duration::SkillDuration, schema, skill::SecretEnvVar};

/// A program that speaks MCP over its standard input and output. It runs in a sandbox, without a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServer {
    /// Program, such as `python3`, `node` or `sh`; with `run.sandbox.image`, a program of that image. The files of the skill are its working directory. At most 256 characters.
    #[schemars(length(max = 256))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Arguments. `${SKILL_ROOT}` stands for the folder of the skill's files, `${NAME}` for a variable, `${NAME:-text}` for it or a text. At most 64 of at most 4096 characters.
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables by name, beside those of `run.sandbox.env`. Values may have `${NAME}` as arguments do. At most 64 of at most 4096 characters.
    #[schemars(schema_with = "schema::server_variables")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Variables from Secrets of the skill's namespace. Their values are masked in all that the server writes. At most 16.
    #[schemars(length(max = 16))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_env: Vec<SecretEnvVar>,
    /// Time after the last call at which the server is ended, at most `1h`. Default `2m`.
    #[schemars(schema_with = "schema::positive_duration")]
    #[serde(default = "idle_timeout")]
    pub idle_timeout: SkillDuration,
    /// Address of a server elsewhere. It is refused, since the program of a server has to be in its sandbox.
    #[schemars(length(max = 1024))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

fn idle_timeout() -> SkillDuration {
    SkillDuration(std::time::Duration::from_secs(120))
}

/// A call of a tool of an MCP server that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpCall {
    /// Name of the SkillExecution whose `mcpServer` runs, in this namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub session: String,
    /// Name of the tool; `input` has its arguments. Without it, the output is the list of the server's tools.
    #[schemars(length(min = 1, max = 128))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

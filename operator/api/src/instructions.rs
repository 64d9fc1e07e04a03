//! Instructions of a Skill: the text that a model reads, and the rules for when and how it gets that text.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{dynamic::DynamicContent, mcp::McpServer};

/// Text for a model, in the sense of a SKILL.md without its frontmatter.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = ("!has(self.bodyFrom) || !has(self.body) || self.body.size() == 0", "give body or bodyFrom, not both"))]
#[serde(rename_all = "camelCase")]
pub struct Instructions {
    /// Text in Markdown. `${name}` stands for an input, `$ARGUMENTS` for the text behind a slash name, `$1` for its first word. At most 200 KiB. Default empty.
    #[schemars(length(max = 204_800))]
    #[serde(default)]
    pub body: String,
    /// Place of the text instead of `body`. The operator reads it when it seals the version, which then has the text itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_from: Option<BodySource>,
    /// Place of files that are too large for `files`. Scripts find them, and `files` of the same image, in the folder of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_from: Option<FilesSource>,
    /// Way of the text to the model: `Listed` by name and description, `Always` in whole, `Triggered` only by a trigger. Default `Listed`.
    #[serde(default)]
    pub activation: Activation,
    /// Words, slash names and paths that put the text into a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggers: Option<InstructionTriggers>,
    /// Values that the text needs. At most 32.
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InstructionInput>,
    /// Tools that the text may use, such as `Read` or `Bash(git:*)`. Empty: no restriction. At most 128 of at most 256 characters.
    #[schemars(length(max = 128), inner(length(min = 1, max = 256)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Tools that the text may not use. At most 128 of at most 256 characters.
    #[schemars(length(max = 128), inner(length(min = 1, max = 256)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<String>,
    /// True keeps the text from the model until a user names it. Default false.
    #[serde(default)]
    pub disable_model_invocation: bool,
    /// False refuses the text to users who name it with a slash. Default true.
    #[serde(default = "crate::schema::yes")]
    pub user_invocable: bool,
    /// Hint for users about the text behind a slash name, such as `[issue-number]`. At most 256 characters.
    #[schemars(length(max = 256))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    /// Use of the commands in the body, each between backticks behind an exclamation mark: `Never` shows them as they are written. `Run` runs each in a sandbox and shows its output, if the SkillPolicy allows it. `RunWithSecrets` also gives them the variables of `run.sandbox.secretEnv`. Default `Never`.
    #[serde(default, skip_serializing_if = "DynamicContent::is_never")]
    pub dynamic: DynamicContent,
    /// MCP servers by name. Models get the tools of each as `mcp__SERVER__TOOL` while the text is in their conversation. A name has letters, digits, `_` and `-`. At most 8.
    #[schemars(extend("maxProperties" = 8))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<String, McpServer>,
}

impl Default for Instructions {
    fn default() -> Self {
        Self {
            body: String::new(),
            body_from: None,
            files_from: None,
            activation: Activation::default(),
            triggers: None,
            inputs: Vec::new(),
            allowed_tools: Vec::new(),
            denied_tools: Vec::new(),
            disable_model_invocation: false,
            user_invocable: true,
            argument_hint: None,
            dynamic: DynamicContent::Never,
            mcp_servers: BTreeMap::new(),
        }
    }
}

/// Place of a text outside the Skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BodySource {
    /// Key of a ConfigMap in the skill's namespace, with the text.
    pub config_map_key_ref: ConfigMapKeyRef,
}

/// A key of a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapKeyRef {
    /// Name of the ConfigMap.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: String,
    /// Key under `data` of the ConfigMap.
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}

/// Place of a bundle's files outside the Skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilesSource {
    /// Image that the kubelet mounts into the sandboxes of the skill, read-only.
    pub image: FilesImage,
}

/// An image with the files of a bundle.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesImage {
    /// Image with its digest, which SkillPolicy must allow: `registry.example.com/skills@sha256:...`.
    #[schemars(length(max = 512))]
    #[x_kube(validation = kube::core::Rule::new("self.contains('@sha256:')").message("write the image with its digest, such as registry.example.com/skills@sha256:..., since sealed files never change"))]
    pub reference: String,
    /// Directory of the bundle in the image. Default its root.
    #[schemars(length(max = 512))]
    #[x_kube(validation = kube::core::Rule::new("!self.startsWith('/') && !self.split('/').exists(name, name == '..')").message("write a directory from the root of the image, without a leading / and without .."))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Paths of the files in that directory, for models and for `script` of a SkillExecution. At most 1000.
    #[schemars(length(max = 1000), inner(length(min = 1, max = 256)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// Way of instructions to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Activation {
    #[default]
    Listed,
    Always,
    Triggered,
}

/// Words and paths that put instructions into a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstructionTriggers {
    /// Words in a user's message, in any case and as whole words. At most 64 of at most 128 characters.
    #[schemars(length(max = 64), inner(length(min = 1, max = 128)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// Words that keep the instructions out of a message that has one of them. At most 64 of at most 128 characters.
    #[schemars(length(max = 64), inner(length(min = 1, max = 128)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Globs over the paths in tool calls, such as `src/**/*.rs`. At most 64 of at most 256 characters.
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Names for the start of a message, such as `review` for `/review`. The skill's own name is always one. At most 16 of at most 64 characters.
    #[schemars(length(max = 16), inner(length(min = 1, max = 64)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slash: Vec<String>,
}

/// A value that instructions need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstructionInput {
    /// Name of the input; the text has it as `${name}`.
    #[schemars(length(max = 64), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub name: String,
    /// Description of the value, for users and models. At most 1024 characters.
    #[schemars(length(max = 1024))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Type of the value: `string`, `integer`, `number` or `boolean`. Default `string`.
    #[serde(default, rename = "type")]
    pub value_type: InstructionInputType,
    /// True refuses the text without this value. Default false.
    #[serde(default)]
    pub required: bool,
    /// Value of a call without one. At most 4096 characters.
    #[schemars(length(max = 4096))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// Type of an input of instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InstructionInputType {
    #[default]
    String,
    Integer,
    Number,
    Boolean,
}

//! Skill: the object that users edit, with content, mode and version of one unit of work.

use std::borrow::Cow;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

use crate::{
    builtin::Builtin, duration::SkillDuration, http::Http, instructions::Instructions, network::Network,
    schema,
};
pub use crate::{effective_limits::EffectiveLimits, skill_status::SkillStatus};

/// Version, description, mode, program and instructions of a skill.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "skillet.dev",
    version = "v1alpha1",
    kind = "Skill",
    namespaced,
    shortname = "sk",
    category = "skillet",
    status = "SkillStatus",
    derive = "PartialEq",
    doc = "A Skill is a versioned unit of work for LLM agents: a program, instructions, or both. A model sees description, input schema and instructions, never the program. Every run happens in a locked-down Job pod of its own.",
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version", description = "Version wanted"),
    printcolumn(name = "Current", type_ = "string", json_path = ".status.currentVersion", description = "Version that runs if a request names none"),
    printcolumn(name = "Latest", type_ = "string", json_path = ".status.latestVersion", description = "Newest sealed version", priority = 1),
    printcolumn(name = "Mode", type_ = "string", json_path = ".status.mode", description = "on, auto or off"),
    printcolumn(name = "Pinned", type_ = "boolean", json_path = ".status.imagePinned", description = "False for an image without a digest", priority = 1),
    printcolumn(name = "Sealed", type_ = "string", json_path = ".status.conditions[?(@.type=='Sealed')].status", description = "False if the present content is not what runs"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type=='Sealed')].reason", description = "Reason of Sealed", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = kube::core::Rule::new("self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')").message("metadata.name must be at most 63 characters of a-z, 0-9 and -, beginning and ending with a letter or digit"),
    validation = kube::core::Rule::new("self.spec.version != oldSelf.spec.version || !has(self.status) || !has(self.status.versions) || !(self.spec.version in self.status.versions) || !has(self.status.conditions) || !self.status.conditions.exists(c, c.type == 'Sealed' && c.status == 'True') || ((has(self.spec.description) ? self.spec.description : '') == (has(oldSelf.spec.description) ? oldSelf.spec.description : '') && has(self.spec.tool) == has(oldSelf.spec.tool) && (!has(self.spec.tool) || self.spec.tool == oldSelf.spec.tool) && has(self.spec.run) == has(oldSelf.spec.run) && (!has(self.spec.run) || self.spec.run == oldSelf.spec.run) && has(self.spec.limits) == has(oldSelf.spec.limits) && (!has(self.spec.limits) || self.spec.limits == oldSelf.spec.limits))").message("this version is sealed; raise spec.version to change description, tool, run or limits"),
    validation = kube::core::Rule::new("self.spec.version != oldSelf.spec.version || !has(self.status) || !has(self.status.versions) || !(self.spec.version in self.status.versions) || !has(self.status.conditions) || !self.status.conditions.exists(c, c.type == 'Sealed' && c.status == 'True') || (has(self.spec.instructions) == has(oldSelf.spec.instructions) && (!has(self.spec.instructions) || self.spec.instructions == oldSelf.spec.instructions) && has(self.spec.files) == has(oldSelf.spec.files) && (!has(self.spec.files) || self.spec.files == oldSelf.spec.files) && has(self.spec.network) == has(oldSelf.spec.network) && (!has(self.spec.network) || self.spec.network == oldSelf.spec.network))").message("this version is sealed; raise spec.version to change instructions, files or network")
)]
#[x_kube(validation = ("has(self.run) || has(self.instructions)", "a skill needs run (a program), instructions (a text for models), or both"))]
#[serde(rename_all = "camelCase")]
pub struct SkillSpec {
    /// Version of the content, three numbers `a.b.c`. Content under a version never changes once sealed: raise it with every change of `tool`, `run`, `limits`, `network`, `instructions`, `files` or `description`.
    #[schemars(length(max = 29))]
    #[x_kube(validation = kube::core::Rule::new(r"self.matches('^(0|[1-9][0-9]{0,8})\\.(0|[1-9][0-9]{0,8})\\.(0|[1-9][0-9]{0,8})$')").message("version is three numbers without leading zeros, such as 1.2.3: no v, no pre-release, no build"))]
    pub version: String,
    /// Description of the skill and of its use, for the model. At most 1024 characters.
    #[schemars(length(max = 1024))]
    #[serde(default)]
    pub description: String,
    /// Offer to models: `on` always, `auto` if it matches the request, `off` never. A skill that is `off` does not run either. Default `auto`.
    #[serde(default)]
    pub mode: Mode,
    /// False disables the skill completely. Default true.
    #[serde(default = "schema::yes")]
    pub enabled: bool,
    /// Allowed callers: `auto` a model, `hybrid` a model with a person's confirmation, `manual` only an explicit API call or kubectl. Default `auto`.
    #[serde(default)]
    pub invocation: Invocation,
    /// Words that match requests to this skill. At most 32 of at most 64 characters.
    #[schemars(length(max = 32), inner(length(min = 1, max = 64)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Questions of people that the skill answers, in their own words. They help to offer it, and a model does not see them. Like tags they belong to no version. At most 32 of at most 256 characters.
    #[schemars(length(max = 32), inner(length(min = 1, max = 256)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// Sealed versions that are withdrawn. Constraints skip them, models are not offered them, and an execution that fits no other version fails with `VersionYanked`. Runs that have started continue. At most 256.
    #[schemars(
        length(max = 256),
        inner(
            length(max = 29),
            regex(pattern = r"^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$")
        )
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yanked_versions: Vec<String>,
    /// Schemas of input and output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Tool>,
    /// Program that the skill runs. Unset: the skill has `instructions` only, and nothing runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// Text that a model reads before it does the work, as in a SKILL.md. With `run`, the manual of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// Hosts that the program may reach. Unset: none; of `run.http` the one host that its URL names; of `run.builtin` every public host, if SkillPolicy allows `*`, of `web_search` always the search engine, and of `eval_code` and `execute_command` none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Files of the bundle beside the instructions, such as `references/api.md`. A model reads them by their path. At most 128, of at most 700 KiB together.
    #[schemars(length(max = 128))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["path".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// Time, size and number limits of one run. Unset limits come from SkillPolicy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

/// Offer of a skill to models.
///
/// YAML 1.1, which kubectl and Helm read, takes a bare `on` or `off` for a boolean. Both forms have the same meaning here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Always offered.
    On,
    /// Offered if it matches the request.
    #[default]
    Auto,
    /// Neither offered nor executed.
    Off,
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(true) => Ok(Mode::On),
            Value::Bool(false) => Ok(Mode::Off),
            Value::String(word) if word == "on" => Ok(Mode::On),
            Value::String(word) if word == "auto" => Ok(Mode::Auto),
            Value::String(word) if word == "off" => Ok(Mode::Off),
            other => Err(D::Error::custom(format!("mode must be on, auto or off, not {other}"))),
        }
    }
}

impl JsonSchema for Mode {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Mode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-preserve-unknown-fields": true, "enum": ["on", "auto", "off", true, false] })
    }
}

/// Allowed callers of a skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Invocation {
    #[default]
    Auto,
    Hybrid,
    Manual,
}

/// The interface of a skill, as JSON Schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// JSON Schema (draft 2020-12 unless `$schema` says otherwise) that every input must satisfy. Unset: any input.
    #[schemars(schema_with = "schema::any_object")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// JSON Schema that the output must satisfy. Unset: any output.
    #[schemars(schema_with = "schema::any_object")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

/// The program of a skill: exactly one handler.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = ("(has(self.sandbox) ? 1 : 0) + (has(self.http) ? 1 : 0) + (has(self.builtin) ? 1 : 0) == 1", "run needs exactly one handler: sandbox, http or builtin"))]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// A program in a Job pod of its own, with no network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// An HTTP request to a host of `network`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Http>,
    /// A program of Skillet itself, which SkillPolicy must enable in `builtins`: `http_request` one HTTP request, `web_fetch` the text of a page, `web_search` the results of a search engine, `eval_code` code and `execute_command` a program in a sandbox. It has a description and an input schema of its own where the skill has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<Builtin>,
}

/// A program, its image, files and environment.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = ("has(self.image) != has(self.runtime)", "give exactly one of image and runtime"))]
#[x_kube(validation = ("has(self.script) != has(self.command)", "give exactly one of script and command"))]
#[x_kube(validation = ("!has(self.script) || has(self.runtime)", "script needs runtime: shell, python or node; with image, use command"))]
#[serde(rename_all = "camelCase")]
pub struct Sandbox {
    /// Image to run, which SkillPolicy must allow. Skillet mounts its runner into it, so the image needs nothing of Skillet.
    #[schemars(length(min = 1, max = 512))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// One of Skillet's own images: `shell`, `python` or `node`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// Text of the program, which the runtime's interpreter runs. The program reads its input as JSON on standard input. At most 256 KiB.
    #[schemars(length(min = 1, max = 262_144))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Program and its first arguments. It runs without a shell.
    #[schemars(length(min = 1, max = 64), inner(length(max = 4096)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Further arguments, for `script` and `command` alike.
    #[schemars(length(max = 256), inner(length(max = 4096)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Files in the program's working directory. At most 64.
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["path".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// Environment variables. The program sees these, `secretEnv`, and no variables of the cluster.
    #[schemars(length(max = 128))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Environment variables from Secrets of the skill's namespace. Their values never reach the pod's manifest and are masked in all output.
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_env: Vec<SecretEnvVar>,
}

/// One of Skillet's own images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    Shell,
    Python,
    Node,
}

/// A file in the program's working directory, or of a bundle.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = ("has(self.content) != has(self.contentBase64)", "give exactly one of content and contentBase64"))]
#[x_kube(validation = ("!self.path.startsWith('/') && !self.path.matches('(^|/)\\\\.\\\\.?(/|$)') && !self.path.endsWith('/') && !self.path.contains('//')", "path must be relative, without empty, . or .. segments"))]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Path below the working directory or the bundle's folder, such as `lib/words.txt`.
    #[schemars(length(min = 1, max = 256))]
    pub path: String,
    /// The file's text. At most 256 KiB.
    #[schemars(length(max = 262_144))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The file's bytes in base64, for files that are not text. At most 350,000 characters.
    #[schemars(length(max = 350_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_base64: Option<String>,
}

/// An environment variable with a plain value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Name of the variable.
    #[schemars(length(max = 128), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub name: String,
    /// Its value. Default empty.
    #[schemars(length(max = 32_768))]
    #[serde(default)]
    pub value: String,
}

/// An environment variable whose value is a key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretEnvVar {
    /// Name of the variable.
    #[schemars(length(max = 128), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub name: String,
    /// Name of the Secret, in the skill's namespace.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub secret: String,
    /// Key in the Secret.
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}

/// Limits of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Longest time the program may run, such as `30s`. Default from SkillPolicy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<SkillDuration>,
    /// Most further attempts after a failure that `retryOn` names. Default 0.
    #[schemars(range(max = 10))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Failures that are retried: `Lost` only runs whose sandbox or result was lost, `Failure` also programs that failed. Default `Lost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_on: Option<RetryOn>,
    /// CPU limit, as in a pod (`500m`, `1`), at least `50m`. Default from SkillPolicy.
    #[schemars(schema_with = "schema::quantity")]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "schema::read_quantity")]
    pub cpu: Option<String>,
    /// Memory limit, as in a pod (`128Mi`), at least `8Mi`, and `16Mi` for node; scratch space counts towards it. Default from SkillPolicy.
    #[schemars(schema_with = "schema::quantity")]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "schema::read_quantity")]
    pub memory: Option<String>,
    /// Most processes and threads at one time. Default from SkillPolicy.
    #[schemars(range(min = 1, max = 4096))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Most bytes of standard output, and of standard error, that the status keeps; size and digest cover the whole stream. Default from SkillPolicy.
    #[schemars(range(min = 1, max = 524_288))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u32>,
    /// Most runs of this skill at one time. Default no limit for the skill.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
}

/// Failures that are retried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RetryOn {
    #[default]
    Lost,
    Failure,
}

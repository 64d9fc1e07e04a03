//! SkillExecution: one run of a skill, from request to result.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Isolation, Reason, duration::SkillDuration, dynamic::BodyCommand, mcp::McpCall, network::Connections,
    schema,
};

/// Skill, version and input of one run. Every field but `cancel` is immutable.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "skillet.dev",
    version = "v1alpha1",
    kind = "SkillExecution",
    namespaced,
    shortname = "ske",
    category = "skillet",
    status = "SkillExecutionStatus",
    derive = "PartialEq",
    doc = "A SkillExecution is one run of a skill. Creating it requests the run; its status holds the result.",
    printcolumn(name = "Skill", type_ = "string", json_path = ".spec.skill"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.resolvedVersion"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
    printcolumn(
        name = "Duration(ms)",
        type_ = "integer",
        json_path = ".status.durationMs",
        description = "Run time of the program in milliseconds"
    ),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    selectable = ".spec.skill",
    selectable = ".status.phase"
)]
#[x_kube(validation = kube::core::Rule::new("self.skill == oldSelf.skill && has(self.version) == has(oldSelf.version) && (!has(self.version) || self.version == oldSelf.version) && has(self.timeout) == has(oldSelf.timeout) && (!has(self.timeout) || self.timeout == oldSelf.timeout) && has(self.retries) == has(oldSelf.retries) && (!has(self.retries) || self.retries == oldSelf.retries) && has(self.sessionId) == has(oldSelf.sessionId) && (!has(self.sessionId) || self.sessionId == oldSelf.sessionId) && has(self.caller) == has(oldSelf.caller) && (!has(self.caller) || self.caller == oldSelf.caller)").message("spec is immutable, except cancel; create another SkillExecution"))]
#[x_kube(validation = kube::core::Rule::new("has(self.script) == has(oldSelf.script) && (!has(self.script) || self.script == oldSelf.script)").message("script is immutable; create another SkillExecution"))]
#[x_kube(validation = kube::core::Rule::new("has(self.command) == has(oldSelf.command) && (!has(self.command) || self.command == oldSelf.command)").message("command is immutable; create another SkillExecution"))]
#[x_kube(validation = kube::core::Rule::new("has(self.mcpServer) == has(oldSelf.mcpServer) && (!has(self.mcpServer) || self.mcpServer == oldSelf.mcpServer) && has(self.mcpCall) == has(oldSelf.mcpCall) && (!has(self.mcpCall) || self.mcpCall == oldSelf.mcpCall)").message("mcpServer and mcpCall are immutable; create another SkillExecution"))]
#[x_kube(validation = kube::core::Rule::new("!has(self.timeout) || self.timeout.matches('[1-9]')").message("timeout must be more than 0, such as 10s"))]
#[x_kube(validation = kube::core::Rule::new("!oldSelf.cancel || self.cancel").message("cancel cannot be taken back; create another SkillExecution"))]
#[serde(rename_all = "camelCase")]
pub struct SkillExecutionSpec {
    /// Name of the Skill, in this namespace.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = kube::core::Rule::new("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')").message("skill must be the name of a Skill: a-z, 0-9 and -, beginning and ending with a letter or digit; a version belongs in spec.version"))]
    pub skill: String,
    /// Version constraint: exact `1.2.3`, `^1.2.3`, `~1.2.3`, `>`, `>=`, `<`, `<=`, `==`, `=`, `*`, `latest`, or several of them separated by blanks or commas. The newest sealed version that matches runs. Default `spec.version` of the Skill.
    #[schemars(length(max = 256))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Input, any JSON. It must satisfy the skill's input schema. Default `{}`.
    #[schemars(schema_with = "schema::any_json")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Script of the skill's bundle to run instead of the skill's own program. Not together with `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<BundleScript>,
    /// Command of the skill's instructions to run instead of the skill's own program. Not together with `input` or `script`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<BodyCommand>,
    /// Name of one of the skill's MCP servers to keep running instead of the skill's own program. The execution ends when no call came for the server's `idleTimeout`, and after one hour. Not together with `input`, `script` or `command`.
    #[schemars(length(min = 1, max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<String>,
    /// Call of an MCP server that an execution of the same skill and caller keeps running. `input` has the arguments. Not together with `script`, `command` or `mcpServer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_call: Option<McpCall>,
    /// Time limit of this run, such as `10s`; it can only lower the skill's own. Default the skill's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<SkillDuration>,
    /// Most further attempts after a lost run. Default the skill's.
    #[schemars(range(max = 10))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Conversation of this run, free text for the caller. At most 256 characters.
    #[schemars(length(max = 256))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Caller of the run, set by the gateway.
    #[schemars(length(max = 256))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Set to true to cancel the run. Default false.
    #[serde(default)]
    pub cancel: bool,
}

/// A script of a bundle, its arguments and its standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleScript {
    /// Path of the script in `files` of the skill, such as `scripts/report.py`. Its interpreter follows from its first line, or else from the end of its name.
    #[schemars(length(min = 1, max = 256))]
    pub path: String,
    /// Arguments of the script. At most 64 of at most 4096 characters.
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Text on standard input. At most 256 KiB. Default empty.
    #[schemars(length(max = 262_144))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdin: String,
}

/// Phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    #[default]
    Pending,
    Running,
    Succeeded,
    Failed,
    TimedOut,
    Cancelled,
}

impl Phase {
    /// Every phase, in the order of a run.
    pub const ALL: [Phase; 6] =
        [Phase::Pending, Phase::Running, Phase::Succeeded, Phase::Failed, Phase::TimedOut, Phase::Cancelled];

    /// Returns the word of the phase.
    pub const fn as_str(self) -> &'static str {
        match self {
            Phase::Pending => "Pending",
            Phase::Running => "Running",
            Phase::Succeeded => "Succeeded",
            Phase::Failed => "Failed",
            Phase::TimedOut => "TimedOut",
            Phase::Cancelled => "Cancelled",
        }
    }

    /// True for a phase that never changes again.
    pub fn is_terminal(self) -> bool {
        match self {
            Phase::Pending | Phase::Running => false,
            Phase::Succeeded | Phase::Failed | Phase::TimedOut | Phase::Cancelled => true,
        }
    }
}

/// The progress or the result of a run.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = kube::core::Rule::new("!has(oldSelf.phase) || !(oldSelf.phase in ['Succeeded', 'Failed', 'TimedOut', 'Cancelled']) || (has(self.phase) && self.phase == oldSelf.phase)").message("the execution has ended; its phase does not change any more"))]
#[serde(rename_all = "camelCase")]
pub struct SkillExecutionStatus {
    /// Phase of the run.
    #[serde(default)]
    pub phase: Phase,
    /// Reason of the phase, one word; see docs/reference/reasons.md.
    #[schemars(with = "Option<String>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// A sentence for people, with the field and the fix if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Version that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_version: Option<String>,
    /// sha256 of the content that runs, as sealed. Two runs with the same digest ran the same content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Number of started attempts.
    #[serde(default)]
    pub attempts: u32,
    /// Start of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<MicroTime>,
    /// End of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<MicroTime>,
    /// Run time of the program in milliseconds, measured inside the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Output: a JSON object or list as the program printed it, `{"value": ...}` for a JSON scalar, `{"output": ...}` for text.
    #[schemars(schema_with = "schema::any_json")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Standard output, if the run failed or the output was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<StreamStatus>,
    /// Standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<StreamStatus>,
    /// True if the program wrote more than the status keeps.
    #[serde(default)]
    pub truncated: bool,
    /// Exit code of the program, or 128 plus the number of the signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Name of the sandbox's Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Name of the sandbox's Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Node of the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Image that ran, with its digest, as the node reports it. Absent if the run ended before the node did so.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Isolation that the sandbox proved before the program started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Connections that the run asked for. Only of a skill that may reach hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// `Finished`: the run has ended. `Succeeded`: it ended with success.
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["type".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One output stream of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamStatus {
    /// Beginning of the stream, as text; bytes that are not UTF-8 are replaced.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub head: String,
    /// End of the stream, if it is longer than the status keeps.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// Size of the whole stream in bytes.
    pub bytes: u64,
    /// sha256 of the whole stream, after masking, in hex.
    pub sha256: String,
}

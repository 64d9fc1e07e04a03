//! SkillPolicy: the cluster's settings. One object, named `default`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Isolation,
    builtin::{Builtin, WebSearchProvider},
    duration::SkillDuration,
    dynamic::DynamicContentPolicy,
    gateway::GatewayPolicy,
    network::NetworkPolicy,
    schema,
};

/// Settings for all skills of the cluster.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "skillet.dev",
    version = "v1alpha1",
    kind = "SkillPolicy",
    plural = "skillpolicies",
    shortname = "skp",
    category = "skillet",
    status = "SkillPolicyStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "SkillPolicy holds the cluster's settings for skills. The operator reads one object, named default, and creates it if it is missing.",
    printcolumn(name = "Execution", type_ = "boolean", json_path = ".spec.executionEnabled"),
    printcolumn(name = "Isolation", type_ = "string", json_path = ".spec.isolation"),
    printcolumn(name = "Proven", type_ = "string", json_path = ".status.conditions[?(@.type=='IsolationProven')].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = kube::core::Rule::new("self.metadata.name == 'default'").message("the one SkillPolicy is named default")
)]
#[serde(rename_all = "camelCase")]
pub struct SkillPolicySpec {
    /// Master switch: false refuses every execution. Default true.
    #[serde(default = "schema::yes")]
    pub execution_enabled: bool,
    /// Isolation that a sandbox must prove: `Compatible` everything that the status of an execution shows, but a user namespace, a process limit of its own and noexec scratch. `Strict` these, too. Default `Strict`.
    #[serde(default)]
    pub isolation: IsolationLevel,
    /// Images that `run.sandbox.image` may name: an exact reference, a reference with a digest, or a prefix that ends in `/` or `*`. Skillet's own runtimes are always allowed. Default none.
    #[schemars(schema_with = "schema::image_patterns")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_images: Vec<String>,
    /// Images for scripts of bundles. A skill with an image of its own runs its scripts in that.
    #[serde(default)]
    pub script_images: ScriptImages,
    /// Limits for skills that set none.
    #[serde(default)]
    pub defaults: LimitDefaults,
    /// Highest limits that a skill may set.
    #[serde(default)]
    pub maximums: LimitMaximums,
    /// Memory that a sandbox requests of its node, in percent of its memory limit. Below 100, nodes promise the same memory to several sandboxes, and programs that use it up can take it from other pods. Default 100.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default = "whole_limit")]
    pub memory_request_to_limit_percent: u32,
    /// Longest time until a sandbox is usable once its pod has a node. Default `60s`.
    #[schemars(schema_with = "schema::positive_duration")]
    #[serde(default = "start_timeout")]
    pub start_timeout: SkillDuration,
    /// Retention of finished executions.
    #[serde(default)]
    pub retention: Retention,
    /// Most runs at one time. Further runs wait in order of arrival within their lane: the executions of one namespace that callers of one namespace started. A free place goes to the lane with the fewest runs.
    #[serde(default)]
    pub concurrency: Concurrency,
    /// Sealed versions that a Skill keeps; the newest and those in use always stay. Default 20.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(default = "version_history")]
    pub version_history: u32,
    /// Settings of the gateway.
    #[serde(default)]
    pub gateway: GatewayPolicy,
    /// Limits of SkillSources.
    #[serde(default)]
    pub sources: SourcePolicy,
    /// Commands in instructions that may run.
    #[serde(default)]
    pub dynamic_content: DynamicContentPolicy,
    /// True lets skills reach the hosts that they name, if `network` allows the hosts too. Default false.
    #[serde(default)]
    pub network_enabled: bool,
    /// Hosts that skills may reach, and limits of their connections.
    #[serde(default)]
    pub network: NetworkPolicy,
    /// Programs of Skillet itself that `run.builtin` may name. Default none.
    #[schemars(length(max = 16))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub builtins: Vec<Builtin>,
    /// Search engine of `run.builtin: web_search`. Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_search: Option<WebSearchProvider>,
}

impl Default for SkillPolicySpec {
    fn default() -> Self {
        Self {
            execution_enabled: true,
            isolation: IsolationLevel::default(),
            allowed_images: Vec::new(),
            script_images: ScriptImages::default(),
            defaults: LimitDefaults::default(),
            maximums: LimitMaximums::default(),
            memory_request_to_limit_percent: whole_limit(),
            start_timeout: start_timeout(),
            retention: Retention::default(),
            concurrency: Concurrency::default(),
            version_history: version_history(),
            gateway: GatewayPolicy::default(),
            sources: SourcePolicy::default(),
            dynamic_content: DynamicContentPolicy::default(),
            network_enabled: false,
            network: NetworkPolicy::default(),
            builtins: Vec::new(),
            web_search: None,
        }
    }
}

fn seconds(n: u64) -> SkillDuration {
    SkillDuration(std::time::Duration::from_secs(n))
}

fn start_timeout() -> SkillDuration {
    seconds(60)
}

fn whole_limit() -> u32 {
    100
}

fn version_history() -> u32 {
    20
}

/// Isolation that a sandbox must prove before a program may run in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum IsolationLevel {
    #[default]
    Strict,
    Compatible,
}

/// Places from which SkillSources may take files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SourcePolicy {
    /// Hosts of repositories and registries, such as `github.com` or `git.example.com:8443`. A host without a port has that of its scheme. Name every host to which one of them redirects. Default none.
    #[schemars(schema_with = "schema::host_names")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<String>,
}

/// Images for scripts of bundles, by interpreter. They are allowed without an entry in `allowedImages`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScriptImages {
    /// For shell scripts, with `sh`, and with `bash` for scripts that name it. Default Skillet's runtime `shell`.
    #[schemars(length(min = 1, max = 512))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// For Python, with `python3`. Default Skillet's runtime `python`.
    #[schemars(length(min = 1, max = 512))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// For JavaScript and TypeScript, with `node`. Default Skillet's runtime `node`.
    #[schemars(length(min = 1, max = 512))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// Limits for skills that set none of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LimitDefaults {
    /// Time limit of a run. Default `30s`.
    pub timeout: SkillDuration,
    /// CPU limit. Default `1`.
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?m?$"))]
    pub cpu: String,
    /// Memory limit. Default `256Mi`.
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+(Ki|Mi|Gi|k|M|G)?$"))]
    pub memory: String,
    /// Most processes and threads. Default 100.
    #[schemars(range(min = 1, max = 4096))]
    pub processes: u32,
    /// Most bytes kept of each output stream. Default 100000.
    #[schemars(range(min = 1, max = 524_288))]
    pub output_bytes: u32,
}

impl Default for LimitDefaults {
    fn default() -> Self {
        Self {
            timeout: seconds(30),
            cpu: "1".into(),
            memory: "256Mi".into(),
            processes: 100,
            output_bytes: 100_000,
        }
    }
}

/// Most that a skill may ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LimitMaximums {
    /// Time limit of a run. Default `15m`.
    pub timeout: SkillDuration,
    /// CPU limit. Default `4`.
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?m?$"))]
    pub cpu: String,
    /// Memory limit. Default `2Gi`.
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+(Ki|Mi|Gi|k|M|G)?$"))]
    pub memory: String,
    /// Most processes and threads. Default 1024.
    #[schemars(range(min = 1, max = 4096))]
    pub processes: u32,
    /// Most bytes kept of each output stream. Default 524288.
    #[schemars(range(min = 1, max = 524_288))]
    pub output_bytes: u32,
}

impl Default for LimitMaximums {
    fn default() -> Self {
        Self {
            timeout: seconds(900),
            cpu: "4".into(),
            memory: "2Gi".into(),
            processes: 1024,
            output_bytes: 524_288,
        }
    }
}

/// Retention of finished executions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Retention {
    /// Time after which a finished execution is deleted. Default `24h`.
    #[schemars(schema_with = "schema::positive_duration")]
    pub ttl: SkillDuration,
    /// Most finished executions kept in a namespace for the callers of one namespace; the oldest go first. Default 1000.
    #[schemars(range(max = 100_000))]
    pub per_namespace: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { ttl: seconds(86_400), per_namespace: 1000 }
    }
}

/// Most runs at one time. Further runs wait in order of arrival within their lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Concurrency {
    /// In the whole cluster. An eighth of these places, at least one, is kept for lanes without a run. Default 32.
    #[schemars(range(min = 1, max = 10_000))]
    pub total: u32,
    /// In one lane, which is a namespace and the namespace of the callers. An execution that was not created by the gateway counts for its own namespace. Default 16.
    #[schemars(range(min = 1, max = 10_000))]
    pub per_namespace: u32,
    /// CPU limits of all runs together. Further runs wait while they hold this much. A lane may hold `perNamespace` of `total` parts of it, and an eighth is kept for lanes without a run. Default `32`, half of the chart's quota; `0` is no limit.
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?m?$"))]
    pub cpu: String,
    /// Memory limits of all runs together, shared like `cpu`. Default `16Gi`, half of the chart's quota; `0` is no limit.
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+(Ki|Mi|Gi|k|M|G)?$"))]
    pub memory: String,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { total: 32, per_namespace: 16, cpu: "32".into(), memory: "16Gi".into() }
    }
}

/// State of the policy, as the operator sees it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillPolicyStatus {
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Isolation that each probed node proves, at most 100 nodes.
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeStatus>,
    /// `Ready`: the policy is in force. `IsolationProven`: every probed node proves what the policy requires. `EmbeddingsReady`: the provider of embeddings gives vectors; only if one is set.
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["type".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Isolation that one node proves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Name of the node.
    pub name: String,
    /// Time of the probe.
    pub probed_at: Time,
    /// Container runtime and version, as the node reports them.
    pub container_runtime: String,
    /// Isolation that a sandbox on this node proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Requirements of the policy that the node does not prove, with the cause if it is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

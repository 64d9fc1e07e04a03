//! Names that several crates share: the API group, field managers, labels, annotations.

/// API group of every Skillet kind.
pub const GROUP: &str = "skillet.dev";
/// Served and stored API version.
pub const VERSION: &str = "v1alpha1";

/// Field manager of the operator.
pub const FIELD_MANAGER: &str = "skillet-operator";
/// Field manager of the gateway.
pub const GATEWAY_FIELD_MANAGER: &str = "skillet-gateway";
/// Field manager of the Skills of SkillSources.
pub const SOURCES_FIELD_MANAGER: &str = "skillet-sources";
/// On Skills: name of the SkillSource that keeps them.
pub const LABEL_SOURCE: &str = "skillet.dev/source";
/// On Skills of a SkillSource: the version and the digest of the content that the source gave them, as `1.0.2 sha256:HEX`.
pub const ANNOTATION_SOURCE_CONTENT: &str = "skillet.dev/source-content";
/// On SkillSources: any text; a new one asks for a look at the repository.
pub const ANNOTATION_SYNC_REQUEST: &str = "skillet.dev/sync-requested-at";
/// Controller name that events report as their source.
pub const REPORTING_CONTROLLER: &str = "skillet.dev/operator";

/// Name of the one SkillPolicy that is read.
pub const POLICY_NAME: &str = "default";

/// On sandbox Jobs and Pods: uid of the execution they serve.
pub const LABEL_EXECUTION_UID: &str = "skillet.dev/execution-uid";
/// On sandbox Jobs and Pods: namespace of the execution they serve.
pub const LABEL_EXECUTION_NAMESPACE: &str = "skillet.dev/execution-namespace";
/// On sandbox Jobs and Pods: ordinal of the sandbox within its execution, from 1.
pub const LABEL_SANDBOX: &str = "skillet.dev/sandbox";
/// On sandboxes: number of the attempt that they serve, from 1.
pub const LABEL_ATTEMPT: &str = "skillet.dev/attempt";
/// On sandboxes: version of the skill that they run.
pub const LABEL_VERSION: &str = "skillet.dev/version";
/// On SkillVersions and sandboxes: name of the skill.
pub const LABEL_SKILL: &str = "skillet.dev/skill";
/// On SkillVersions: `true` if the Skill's `spec.yankedVersions` names the version.
pub const LABEL_YANKED: &str = "skillet.dev/yanked";
/// On records of sealed versions: namespace of the skills.
pub const LABEL_SEALED_NAMESPACE: &str = "skillet.dev/sealed-namespace";
/// On sandboxes: their purpose, one of the `PURPOSE_` constants.
pub const LABEL_PURPOSE: &str = "skillet.dev/purpose";
/// On sandboxes that serve an execution.
pub const PURPOSE_RUN: &str = "run";
/// On sandboxes that only prove the isolation of a node.
pub const PURPOSE_PROBE: &str = "probe";
/// On sandboxes: name of the execution they serve.
pub const ANNOTATION_EXECUTION: &str = "skillet.dev/execution";
/// On executions that the gateway created: id of the request, as in its `x-request-id` header and in every log line.
pub const ANNOTATION_REQUEST_ID: &str = "skillet.dev/request-id";
/// On executions of the gateway: namespace of the caller, which may differ from the execution's.
pub const LABEL_CALLER_NAMESPACE: &str = "skillet.dev/caller-namespace";
/// On executions of the gateway: the response that a client knows of a stream whose last response is another one.
pub const LABEL_RESPONSE: &str = "skillet.dev/response";
/// On executions of the gateway that keep an MCP server running: digest of caller, server and conversation.
pub const LABEL_SESSION: &str = "skillet.dev/session";
/// On executions with [`LABEL_SESSION`]: their number, from 0. A session that has ended has a successor.
pub const LABEL_SESSION_NUMBER: &str = "skillet.dev/session-number";
/// On executions with [`LABEL_RESPONSE`]: id of that last response at the provider.
pub const ANNOTATION_LAST_RESPONSE: &str = "skillet.dev/last-response";
/// Standard label of the tool that manages an object.
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`LABEL_MANAGED_BY`] on everything that the operator creates.
pub const MANAGED_BY: &str = "skillet";

/// Audience that a service-account token needs for the gateway.
pub const GATEWAY_AUDIENCE: &str = "skillet";
/// Service account of a key that names none.
pub const DEFAULT_SERVICE_ACCOUNT: &str = "default";

/// Returns the name of the SkillVersion that seals `version` of `skill`.
pub fn version_name(skill: &str, version: &str) -> String {
    format!("{skill}-{version}")
}

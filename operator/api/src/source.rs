//! SkillSource: a repository whose SKILL.md files are the Skills of a namespace.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{duration::SkillDuration, schema};

/// Place of the files, and the way in which they become Skills.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "skillet.dev",
    version = "v1alpha1",
    kind = "SkillSource",
    namespaced,
    shortname = "sks",
    category = "skillet",
    status = "SkillSourceStatus",
    derive = "PartialEq",
    doc = "A SkillSource keeps Skills of its namespace in step with the SKILL.md files of a git repository. It changes and removes only Skills that it made.",
    printcolumn(name = "URL", type_ = "string", json_path = ".spec.git.url"),
    printcolumn(name = "Revision", type_ = "string", json_path = ".status.revision"),
    printcolumn(name = "Skills", type_ = "integer", json_path = ".status.skills"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].message",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = kube::core::Rule::new("size(self.metadata.name) <= 63").message("metadata.name has at most 63 characters, since it is a label of the Skills")
)]
#[serde(rename_all = "camelCase")]
pub struct SkillSourceSpec {
    /// Git repository with the files.
    pub git: GitRepository,
    /// Directory of the repository to read, such as `skills/public`. Default its root.
    #[schemars(length(max = 512))]
    #[x_kube(validation = kube::core::Rule::new("!self.startsWith('/') && !self.split('/').exists(name, name == '..')").message("write a directory from the root of the repository, without a leading / and without .."))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Files to read, as lines of a .gitignore file below `path`: `pdf/` or `**/*.md`. Default all. At most 64.
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Files to leave out, as lines of a .gitignore file below `path`. At most 64.
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Beginning of the name of each Skill, such as `team-`. Default none.
    #[schemars(length(max = 32), regex(pattern = r"^([a-z0-9][-a-z0-9]*)?$"))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Time between two looks at the repository, at least `30s`. `kubectl skill sync` looks at once. Default `10m`.
    #[schemars(schema_with = "schema::sync_interval")]
    #[serde(default = "interval")]
    pub interval: SkillDuration,
    /// Longest time for one transfer of the files. Default `60s`.
    #[schemars(schema_with = "schema::positive_duration")]
    #[serde(default = "timeout")]
    pub timeout: SkillDuration,
    /// True removes a Skill whose file is gone, and all Skills of the source with the source. False leaves them. Default true.
    #[serde(default = "schema::yes")]
    pub prune: bool,
    /// True stops the looks at the repository. The Skills stay. Default false.
    #[serde(default)]
    pub suspend: bool,
}

/// A git repository and the commit that counts.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitRepository {
    /// Address, such as `https://git.example.com/team/skills.git`. `spec.sources.allowedHosts` of the SkillPolicy must name its host.
    #[schemars(length(max = 1024), regex(pattern = r"^https?://[^@\s]+$"))]
    pub url: String,
    /// Commit to read. Default the newest of the repository's default branch.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitReference>,
    /// Secret of this namespace with `username` and `password`, or with `bearerToken`, and with `ca.crt` for a server with a certificate of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretName>,
}

/// One of a branch, a tag and a commit.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = ("[has(self.branch), has(self.tag), has(self.commit)].filter(x, x).size() == 1", "write one of branch, tag and commit"))]
#[serde(rename_all = "camelCase")]
pub struct GitReference {
    /// Branch whose newest commit counts.
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^[^\s:^~?*\[\\]+$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Tag whose commit counts.
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^[^\s:^~?*\[\\]+$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Commit, as 40 hexadecimal digits.
    #[schemars(length(max = 40), regex(pattern = r"^[0-9a-f]{40}$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Name of a Secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecretName {
    /// Name of the Secret.
    #[schemars(length(max = 253), regex(pattern = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
}

fn interval() -> SkillDuration {
    SkillDuration(std::time::Duration::from_secs(600))
}

fn timeout() -> SkillDuration {
    SkillDuration(std::time::Duration::from_secs(60))
}

/// The last look at the repository.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillSourceStatus {
    /// Generation of the spec that the status is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Commit that the Skills are of, as `main@sha1:COMMIT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Time at which the Skills became those of the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sync_time: Option<Time>,
    /// Request of `kubectl skill sync` that was answered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_sync_request: Option<String>,
    /// Skills of the namespace that are of this source.
    #[serde(default)]
    pub skills: u32,
    /// Files that are no Skill, with the reasons: the first 64.
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["path".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedFile>,
    /// `Ready`: the Skills are those of the newest commit. `PartiallyInvalid`: True if some files are no Skill. `Stalled`: True if the source waits for an edit.
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["type".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A file that is no Skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedFile {
    /// Path below `spec.path`.
    pub path: String,
    /// Reason and fix.
    pub message: String,
}

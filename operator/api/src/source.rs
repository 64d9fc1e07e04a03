//! SkillSource: a git repository or an OCI artifact whose SKILL.md files are the Skills of a namespace.

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
    doc = "A SkillSource keeps Skills of its namespace in step with the SKILL.md files of a git repository or an OCI artifact. It changes and removes only Skills that it made.",
    printcolumn(name = "URL", type_ = "string", json_path = ".spec['git','oci'].url"),
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
#[x_kube(validation = ("has(self.git) != has(self.oci)", "write one of spec.git and spec.oci"))]
#[serde(rename_all = "camelCase")]
pub struct SkillSourceSpec {
    /// Git repository with the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitRepository>,
    /// OCI artifact with the files, in place of `git`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciArtifact>,
    /// Directory of the repository or artifact to read, such as `skills/public`. Default its root.
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
    /// Time between two looks at the repository or artifact, at least `30s`. `kubectl skill sync` looks at once. Default `10m`.
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

/// An artifact in a registry, as Flux, ORAS or an image builder pushes it, and the manifest that counts.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OciArtifact {
    /// Address without a tag, such as `oci://registry.example.com/team/skills`. `spec.sources.allowedHosts` of the SkillPolicy must name its host.
    #[schemars(length(max = 1024), regex(pattern = r"^oci://[^@/\s]+(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$"))]
    pub url: String,
    /// Manifest to read. Default the tag `latest`.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<OciReference>,
    /// Secret of this namespace with `username` and `password`, with `bearerToken`, or of type `kubernetes.io/dockerconfigjson`, and with `ca.crt` for a registry with a certificate of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretName>,
    /// True reads a registry without TLS, and sends no credentials to it. Default false.
    #[serde(default)]
    pub insecure: bool,
}

/// One of a tag, a digest and a range of tags.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = ("[has(self.tag), has(self.digest), has(self.semver)].filter(x, x).size() == 1", "write one of tag, digest and semver"))]
#[serde(rename_all = "camelCase")]
pub struct OciReference {
    /// Tag whose manifest counts.
    #[schemars(length(max = 128), regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Digest of the manifest, as `sha256:` and 64 hexadecimal digits.
    #[schemars(length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Version constraint such as `^1.2.0` or `>=1.0.0 <2.0.0`; the highest of the tags that are versions counts, such as `1.2.3` or `v1.2.3`.
    #[schemars(length(min = 1, max = 256))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,
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
    /// Commit or manifest that the Skills are of, as `main@sha1:COMMIT` or `TAG@sha256:DIGEST`.
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
    /// `Ready`: the Skills are those of the newest commit or manifest. `PartiallyInvalid`: True if some files are no Skill. `Stalled`: True if the source waits for an edit.
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

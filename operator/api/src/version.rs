//! SkillVersion: the sealed, immutable content of one version of a Skill.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::{
    instructions::Instructions,
    network::Network,
    skill::{File, Limits, Run, Tool},
};

/// Content that decides behavior. Mode, enabled and tags stay on the Skill, since they change without a new version.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "skillet.dev",
    version = "v1alpha1",
    kind = "SkillVersion",
    namespaced,
    shortname = "skv",
    category = "skillet",
    derive = "PartialEq",
    doc = "A SkillVersion is the immutable content of one version of a Skill. The operator creates it when it first sees the version, and nobody edits it.",
    printcolumn(name = "Skill", type_ = "string", json_path = ".spec.skill"),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(name = "Yanked", type_ = "string", json_path = r".metadata.labels.skillet\.dev/yanked"),
    printcolumn(name = "Digest", type_ = "string", json_path = ".spec.digest", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    selectable = ".spec.skill",
    validation = kube::core::Rule::new("self.metadata.name == self.spec.skill + '-' + self.spec.version").message("metadata.name must be <spec.skill>-<spec.version>")
)]
#[x_kube(validation = ("has(self.run) || has(self.instructions)", "a skill needs run (a program), instructions (a text for models), or both"))]
#[x_kube(validation = ("!has(self.instructions) || !has(self.instructions.bodyFrom)", "a SkillVersion has the text itself: write it into spec.instructions.body"))]
#[x_kube(validation = ("self == oldSelf", "a SkillVersion is immutable; raise spec.version of the Skill instead"))]
#[serde(rename_all = "camelCase")]
pub struct SkillVersionSpec {
    /// Name of the Skill.
    #[schemars(length(min = 1, max = 63))]
    pub skill: String,
    /// Version, `a.b.c`.
    #[schemars(length(min = 5, max = 32))]
    pub version: String,
    /// sha256 of the content below, in hex.
    #[schemars(length(min = 64, max = 64))]
    pub digest: String,
    /// Description of the skill and of its use.
    #[schemars(length(max = 1024))]
    #[serde(default)]
    pub description: String,
    /// Schemas of input and output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Tool>,
    /// Program that the skill runs. Unset: nothing runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// Text that a model reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// Hosts that the program may reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Files of the bundle beside the instructions.
    #[schemars(length(max = 128))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["path".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// Limits of one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

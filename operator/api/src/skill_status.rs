//! Status of a Skill: its versions, digest, limits and conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::effective_limits::EffectiveLimits;

/// Validation and versions of the skill, as the operator sees them.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillStatus {
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Version that runs if a request names none: `spec.version`. If that is not sealed or is yanked, the newest version below it, else the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_version: Option<String>,
    /// Newest sealed version that is not yanked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_version: Option<String>,
    /// Every sealed version, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
    /// sha256 of the content of `spec.version`, as sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Mode of the spec as a word. YAML reads a bare `on` or `off` as a boolean, and the spec keeps that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Limits of a run of the spec, with the defaults of SkillPolicy for those that the spec leaves out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<EffectiveLimits>,
    /// Highest limits that SkillPolicy allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximums: Option<EffectiveLimits>,
    /// False if `spec.run.sandbox.image` is a tag without a digest: the registry decides what runs, and may change it under a sealed version. Absent for a `runtime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pinned: Option<bool>,
    /// `Ready`: a version can run. `Sealed`: the content of the spec is sealed under its version. `SecretsPresent`, only of a Skill with `secretEnv`: every Secret and key exists; without them models are not offered the skill. `DependenciesMet`, only of a Skill whose scripts declare packages: their images have them. `Stalled`, only if it is True: the spec cannot be sealed until somebody changes it.
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["type".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

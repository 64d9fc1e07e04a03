//! A skill and a version as the catalog keeps them.
//!
//! A parsed Skill takes some 2 KB, nearly all of it for fields that it does not have or that no decision reads. Runs use
//! the sealed version; of the Skill itself only switches, limits and conditions count.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{ResourceExt as _, api::ObjectMeta};
use skillet_api::{
    Skill, SkillSpec, SkillVersion,
    skill::{Invocation, Mode, SkillStatus},
};
use skillet_core::version::SkillSemver;

use crate::version_head::VersionHead;

pub(super) struct KnownSkill {
    revision: Option<u64>,
    /// The limit of its runs at once.
    pub(super) concurrency: Option<u32>,
    version: Box<str>,
    mode: Mode,
    enabled: bool,
    yanked_versions: Box<[String]>,
    generation: Option<i64>,
    deletion_timestamp: Option<Time>,
    /// Generation that the status describes; `None` without a status.
    observed_generation: Option<i64>,
    /// Those that are not true: a run is refused with their words.
    conditions: Box<[Condition]>,
}

impl KnownSkill {
    pub(super) fn new(skill: Skill) -> Self {
        let revision = revision(&skill);
        let SkillSpec { version, mode, enabled, yanked_versions, limits, .. } = skill.spec;
        let SkillStatus { observed_generation, conditions, .. } = skill.status.unwrap_or_default();
        let ObjectMeta { generation, deletion_timestamp, .. } = skill.metadata;
        Self {
            revision,
            concurrency: limits.and_then(|limits| limits.concurrency),
            version: version.into(),
            mode,
            enabled,
            yanked_versions: yanked_versions.into(),
            generation,
            deletion_timestamp,
            observed_generation,
            conditions: conditions.into_iter().filter(|condition| condition.status != "True").collect(),
        }
    }

    /// Returns true if `skill` is a later state of the object.
    pub(super) fn is_older_than(&self, skill: &Skill) -> bool {
        self.revision < revision(skill)
    }

    /// Returns the Skill without its content.
    pub(super) fn skill(&self, namespace: &str, name: &str) -> Skill {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            generation: self.generation,
            deletion_timestamp: self.deletion_timestamp.clone(),
            ..ObjectMeta::default()
        };
        let spec = SkillSpec {
            version: self.version.to_string(),
            mode: self.mode,
            enabled: self.enabled,
            yanked_versions: self.yanked_versions.to_vec(),
            description: String::new(),
            invocation: Invocation::default(),
            tags: Vec::new(),
            examples: Vec::new(),
            tool: None,
            run: None,
            instructions: None,
            network: None,
            files: Vec::new(),
            limits: None,
        };
        let status = SkillStatus {
            observed_generation: self.observed_generation,
            conditions: self.conditions.to_vec(),
            ..SkillStatus::default()
        };
        Skill { metadata, spec, status: Some(status) }
    }
}

/// Returns a number that grows with each state of an object.
fn revision(skill: &Skill) -> Option<u64> {
    skill.resource_version()?.parse().ok()
}

/// One version of a skill, without the content, which is read when an execution needs it.
pub(super) struct KnownVersion {
    pub(super) number: SkillSemver,
    /// The object's name.
    pub(super) name: Box<str>,
    uid: Option<Box<str>>,
    digest: Box<str>,
    deletion_timestamp: Option<Time>,
}

impl KnownVersion {
    /// Returns `None` for a version without a valid number, which cannot run. The API server checks it.
    pub(super) fn new(version: &SkillVersion) -> Option<Self> {
        Some(Self {
            number: version.spec.version.parse().ok()?,
            name: version.name_any().into(),
            uid: version.uid().map(Into::into),
            digest: version.spec.digest.as_str().into(),
            deletion_timestamp: version.metadata.deletion_timestamp.clone(),
        })
    }

    /// Returns the version of `skill` without its content.
    pub(super) fn version(&self, namespace: &str, skill: &str) -> SkillVersion {
        let metadata = ObjectMeta {
            name: Some(self.name.to_string()),
            namespace: Some(namespace.to_owned()),
            uid: self.uid.as_deref().map(str::to_owned),
            deletion_timestamp: self.deletion_timestamp.clone(),
            ..ObjectMeta::default()
        };
        VersionHead::new(skill, &self.number.to_string(), &self.digest).into_version(&metadata)
    }
}

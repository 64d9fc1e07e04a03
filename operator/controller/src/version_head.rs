//! A SkillVersion without its content, of which tenants write up to a megabyte.

use kube::{Resource, api::ObjectMeta};
use serde::Deserialize;
use skillet_api::{SkillVersion, SkillVersionSpec};
use skillet_kube::RawObject;

/// The fields by which a version is chosen.
#[derive(Deserialize)]
pub(crate) struct VersionHead {
    skill: String,
    version: String,
    digest: String,
}

#[derive(Deserialize)]
struct Object {
    spec: VersionHead,
}

impl VersionHead {
    pub(crate) fn new(skill: &str, version: &str, digest: &str) -> Self {
        Self { skill: skill.to_owned(), version: version.to_owned(), digest: digest.to_owned() }
    }

    /// Reads a version without its content, which stays text meanwhile.
    pub(crate) fn read(raw: &RawObject<SkillVersion>) -> Option<SkillVersion> {
        let Object { spec } = raw.parse_unbounded().ok()?;
        Some(spec.into_version(raw.meta()))
    }

    /// The version with empty content.
    pub(crate) fn into_version(self, meta: &ObjectMeta) -> SkillVersion {
        let Self { skill, version, digest } = self;
        SkillVersion {
            metadata: ObjectMeta { annotations: None, managed_fields: None, ..meta.clone() },
            spec: SkillVersionSpec {
                skill,
                version,
                digest,
                description: String::new(),
                tool: None,
                run: None,
                instructions: None,
                network: None,
                files: Vec::new(),
                limits: None,
            },
        }
    }
}

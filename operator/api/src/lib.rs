//! The Skillet kinds: what users write and what the operator reports back.
//!
//! One file per kind. No client, no runtime: anything with I/O belongs to `skillet-controller`.
//! Doc comments on these types are what `kubectl explain` shows, so they speak to users.

// The derive puts each spec in a module of its own, where the lint cannot see that it is exported.
#![allow(unreachable_pub)]
// Several `printcolumn`s look like one attribute given twice.
#![allow(clippy::duplicated_attributes)]

pub mod duration;
pub mod execution;
pub mod gateway;
pub mod names;
pub mod policy;
pub mod reason;
pub mod schema;
pub mod skill;
pub mod version;

pub use execution::{Phase, SkillExecution, SkillExecutionSpec, SkillExecutionStatus};
pub use policy::{IsolationLevel, SkillPolicy, SkillPolicySpec, SkillPolicyStatus};
pub use reason::Reason;
pub use skill::{Skill, SkillSpec, SkillStatus};
pub use version::{SkillVersion, SkillVersionSpec};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// Every custom resource definition of the product, in the order in which they are written to `crds/`.
pub fn custom_resource_definitions() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![Skill::crd(), SkillVersion::crd(), SkillExecution::crd(), SkillPolicy::crd()];
    let versions = crds.iter_mut().flat_map(|crd| &mut crd.spec.versions);
    versions
        .filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut())
        .for_each(schema::drop_formats);
    crds
}

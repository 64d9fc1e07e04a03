//! The Skillet kinds: the specs that users write, and the status that the operator reports.
//!
//! Each kind has one file. The crate has no client and no runtime. `kubectl explain` shows the doc comments of these types,
//! so they are written for users.

// The derive puts each spec in a module of its own, where the lint cannot see that it is exported.
#![allow(unreachable_pub)]
// Several `printcolumn`s look like one attribute given twice.
#![allow(clippy::duplicated_attributes)]

pub mod api_key;
pub mod builtin;
pub mod duration;
pub mod dynamic;
mod effective_limits;
pub mod execution;
pub mod gateway;
pub mod http;
pub mod instructions;
pub mod mcp;
pub mod names;
pub mod network;
pub mod policy;
pub mod reason;
mod schema;
pub mod skill;
mod skill_status;
pub mod source;
pub mod version;

pub use api_key::{ApiKey, ApiKeySpec, ApiKeyStatus};
pub use execution::{Phase, SkillExecution, SkillExecutionSpec, SkillExecutionStatus};
pub use policy::{IsolationLevel, SkillPolicy, SkillPolicySpec, SkillPolicyStatus};
pub use reason::Reason;
pub use skill::{Skill, SkillSpec, SkillStatus};
pub use skillet_protocol::{Isolation, Verdict};
pub use source::{SkillSource, SkillSourceSpec, SkillSourceStatus};
pub use version::{SkillVersion, SkillVersionSpec};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// Returns every custom resource definition of the product, in the order of `crds/`.
pub fn custom_resource_definitions() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![
        ApiKey::crd(),
        Skill::crd(),
        SkillVersion::crd(),
        SkillExecution::crd(),
        SkillPolicy::crd(),
        SkillSource::crd(),
    ];
    let versions = crds.iter_mut().flat_map(|crd| &mut crd.spec.versions);
    versions
        .filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut())
        .for_each(schema::simplify);
    crds
}

//! Reads for one Skill: its sealed versions, and which of them something still points at.

use std::collections::BTreeSet;

use kube::{Api, ResourceExt, api::ListParams};
use skillet_api::{Skill, SkillVersion, names};
use skillet_core::version::SkillSemver;
use thiserror::Error;

use skillet_api::parse::Guarded;

use crate::context::Context;

#[derive(Debug, Error)]
pub enum Error {
    #[error("could not list the versions of Skill {namespace}/{name}")]
    Versions { namespace: String, name: String, source: Box<kube::Error> },
}

/// The sealed versions of a Skill.
pub struct Observed {
    pub versions: Vec<SkillVersion>,
    /// Versions that a run goes on with.
    pub in_use: BTreeSet<SkillSemver>,
}

/// Live, not from the catalogue: what is sealed must not be sealed otherwise.
pub async fn gather(ctx: &Context, skill: &Skill) -> Result<Observed, Error> {
    let (namespace, name) = (skill.namespace().unwrap_or_default(), skill.name_any());
    let api: Api<Guarded<SkillVersion>> = Api::namespaced(ctx.client.clone(), &namespace);
    let of_skill = ListParams::default().labels(&format!("{}={name}", names::LABEL_SKILL));
    let versions = api
        .list(&of_skill)
        .await
        .map_err(|source| Error::Versions {
            namespace: namespace.clone(),
            name: name.clone(),
            source: Box::new(source),
        })?
        .items
        .into_iter()
        // One that does not parse keeps its number all the same: to seal it again is refused by its name.
        .filter_map(|version| version.0.ok())
        .collect();
    let in_use = ctx.in_use.of(&namespace, &name);
    Ok(Observed { versions, in_use })
}

//! Reads for one Skill: its sealed versions, and which of them something still points at.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
};

use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, VersionMatch},
};
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

/// The newest revision of any `SkillVersion` that a watch or a write of ours has told of.
///
/// A list that is as new as this one is answered at once. One without it, which must be as new as the store itself, waits
/// until the API server's cache has heard from etcd, a tenth of a second where nothing else is written.
#[derive(Default)]
pub struct Seen(AtomicU64);

impl Seen {
    pub fn note(&self, version: &impl Resource) {
        let revision = version.meta().resource_version.as_deref().and_then(|text| text.parse().ok());
        self.0.fetch_max(revision.unwrap_or_default(), Ordering::AcqRel);
    }

    fn as_new(&self, list: ListParams) -> ListParams {
        list.at(&self.0.load(Ordering::Acquire).to_string()).matching(VersionMatch::NotOlderThan)
    }
}

/// Not from the catalogue, which may learn of a change after the watch that called for this look. What somebody seals
/// unseen is not sealed otherwise: its name is taken.
pub async fn gather(ctx: &Context, skill: &Skill) -> Result<Observed, Error> {
    let (namespace, name) = (skill.namespace().unwrap_or_default(), skill.name_any());
    let api: Api<Guarded<SkillVersion>> = Api::namespaced(ctx.client.clone(), &namespace);
    let of_skill = ListParams::default().labels(&format!("{}={name}", names::LABEL_SKILL));
    let versions = api
        .list(&ctx.versions_seen.as_new(of_skill))
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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn at(revision: Option<&str>) -> Pod {
        let mut object = Pod::default();
        object.metadata.resource_version = revision.map(str::to_owned);
        object
    }

    #[test]
    fn a_list_is_as_new_as_the_newest_that_was_seen() {
        let seen = Seen::default();
        let revision = || seen.as_new(ListParams::default()).resource_version;
        assert_eq!(revision().as_deref(), Some("0"), "any will do");
        for (told, expected) in
            [(Some("7"), "7"), (Some("12"), "12"), (Some("9"), "12"), (None, "12"), (Some("x"), "12")]
        {
            seen.note(&at(told));
            assert_eq!(revision().as_deref(), Some(expected), "{told:?}");
        }
        let list = seen.as_new(ListParams::default());
        assert_eq!(list.version_match, Some(VersionMatch::NotOlderThan));
    }
}

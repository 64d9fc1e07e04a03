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

    /// Unchanged where nothing was seen yet, since any age would do then.
    fn as_new(&self, list: ListParams) -> ListParams {
        match self.0.load(Ordering::Acquire) {
            0 => list,
            revision => list.at(&revision.to_string()).matching(VersionMatch::NotOlderThan),
        }
    }
}

/// How new what is read has to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// As new as what called for the look.
    AsSeen,
    /// As new as the store itself.
    Live,
}

/// Not from the catalogue, which may learn of a change after the watch that called for this look. What somebody seals
/// unseen is not sealed otherwise: its name is taken.
pub async fn gather(ctx: &Context, skill: &Skill, look: Look) -> Result<Observed, Error> {
    let (namespace, name) = (skill.namespace().unwrap_or_default(), skill.name_any());
    let api: Api<Guarded<SkillVersion>> = Api::namespaced(ctx.client.clone(), &namespace);
    let of_skill = ListParams::default().labels(&format!("{}={name}", names::LABEL_SKILL));
    let listed = match look {
        Look::Live => api.list(&of_skill).await,
        Look::AsSeen => match api.list(&ctx.versions_seen.as_new(of_skill.clone())).await {
            // The server is behind what another has told, or the store was put back to an earlier state.
            Err(kube::Error::Api(status)) if status.code == 504 => api.list(&of_skill).await,
            listed => listed,
        },
    };
    let versions = listed
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
        assert_eq!(seen.as_new(ListParams::default()), ListParams::default(), "as new as the store");
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

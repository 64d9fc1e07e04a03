//! The newest revision of a kind, by which a list can be as new as its caller needs.

use std::sync::atomic::{AtomicU64, Ordering};

use kube::{
    Resource,
    api::{ListParams, VersionMatch},
};

/// The newest revision of any `SkillVersion` that a watch or a write of this operator has shown.
///
/// The API server answers a list of at least this revision at once. A consistent list waits until the API server's cache
/// has heard from etcd, which takes a tenth of a second if nothing else is written.
#[derive(Default)]
pub(crate) struct NewestRevision(AtomicU64);

impl NewestRevision {
    pub(crate) fn observe(&self, object: &impl Resource) {
        let revision = object.meta().resource_version.as_deref().and_then(|text| text.parse().ok());
        self.0.fetch_max(revision.unwrap_or_default(), Ordering::AcqRel);
    }

    /// Returns `list` for this revision or a newer one. Before any revision was observed the list stays consistent.
    pub(crate) fn at_least(&self, list: ListParams) -> ListParams {
        match self.0.load(Ordering::Acquire) {
            0 => list,
            revision => list.at(&revision.to_string()).matching(VersionMatch::NotOlderThan),
        }
    }
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
    fn a_list_is_at_least_as_new_as_the_newest_observed_revision() {
        let newest = NewestRevision::default();
        let revision = || newest.at_least(ListParams::default()).resource_version;
        assert_eq!(newest.at_least(ListParams::default()), ListParams::default(), "a consistent list");
        for (observed, expected) in
            [(Some("7"), "7"), (Some("12"), "12"), (Some("9"), "12"), (None, "12"), (Some("x"), "12")]
        {
            newest.observe(&at(observed));
            assert_eq!(revision().as_deref(), Some(expected), "{observed:?}");
        }
        let list = newest.at_least(ListParams::default());
        assert_eq!(list.version_match, Some(VersionMatch::NotOlderThan));
    }
}

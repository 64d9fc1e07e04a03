//! The watches that feed [`SkillCatalog`]: policy, skills and versions, each on its own.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
};

use kube::{Api, Client, Resource, ResourceExt as _, runtime::watcher::Config};
use serde::de::DeserializeOwned;
use skillet_api::{Skill, SkillPolicy, SkillPolicySpec, SkillVersion, names};
use skillet_kube::{Mirror, RawObject, mirror, watch};
use tracing::warn;

use super::SkillCatalog;

/// A bit for each kind that has been seen whole.
pub(super) const ALL: u8 = 0b111;

type Key = (String, String);

impl SkillCatalog {
    /// Watches until the process ends.
    pub async fn watch(self: Arc<Self>, client: Client) {
        let (catalog, held) = (&*self, HashSet::new());
        let policies = KindMirror::<SkillPolicy> {
            catalog,
            held: held.clone(),
            bit: 0b001,
            put: |catalog, policy| {
                if policy.name_any() == names::POLICY_NAME {
                    catalog.set_policy(policy.spec);
                }
            },
            remove: |catalog, (_, name), _| {
                if name == names::POLICY_NAME {
                    catalog.set_policy(SkillPolicySpec::default());
                }
            },
        };
        let skills = KindMirror::<Skill> {
            catalog,
            held: held.clone(),
            bit: 0b010,
            put: |catalog, skill| catalog.put_skill(&skill),
            remove: |catalog, (namespace, name), _| catalog.remove_skill(namespace, name),
        };
        let versions = KindMirror::<SkillVersion> {
            catalog,
            held,
            bit: 0b100,
            put: |catalog, version| catalog.put_version(&version),
            remove: |catalog, (namespace, name), last| match last {
                Some(version) => catalog.remove_version(version),
                None => catalog.forget_version(namespace, name),
            },
        };
        tokio::join!(policies.watch(client.clone()), skills.watch(client.clone()), versions.watch(client));
    }
}

/// The objects of one kind that the catalog holds.
struct KindMirror<'a, K> {
    catalog: &'a SkillCatalog,
    held: HashSet<Key>,
    /// The bit of the kind in [`ALL`].
    bit: u8,
    put: fn(&SkillCatalog, K),
    /// Gets the last state of an object, unless a list shows that the object is gone.
    remove: fn(&SkillCatalog, &Key, Option<&K>),
}

impl<K> KindMirror<'_, K>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    async fn watch(mut self, client: Client) {
        mirror(watch(Api::<RawObject<K>>::all(client), Config::default()), &mut self).await;
    }
}

impl<K: Resource<DynamicType = ()> + DeserializeOwned> Mirror for KindMirror<'_, K> {
    type Object = RawObject<K>;
    type Key = Key;

    fn key(&self, object: &RawObject<K>) -> Option<Key> {
        let meta = object.meta();
        // A policy has no namespace.
        Some((meta.namespace.clone().unwrap_or_default(), meta.name.clone()?))
    }

    fn keys(&self) -> impl IntoIterator<Item = Key> {
        self.held.clone()
    }

    /// Keeps the earlier state of an object that does not parse; the operator reports the problem.
    fn apply(&mut self, object: RawObject<K>) {
        let Some(key) = self.key(&object) else { return };
        match object.parse() {
            Ok(object) => {
                self.held.insert(key);
                (self.put)(self.catalog, object);
            }
            Err(problem) => {
                let (namespace, name) = key;
                warn!(kind = %K::kind(&()), %namespace, %name, %problem, "Object could not be read");
            }
        }
    }

    fn remove(&mut self, key: Key) {
        self.held.remove(&key);
        (self.remove)(self.catalog, &key, None);
    }

    fn delete(&mut self, object: RawObject<K>) {
        let Some(key) = self.key(&object) else { return };
        self.held.remove(&key);
        (self.remove)(self.catalog, &key, object.parse().ok().as_ref());
    }

    fn finish_list(&mut self) {
        self.catalog.synced.fetch_or(self.bit, Ordering::Release);
    }
}

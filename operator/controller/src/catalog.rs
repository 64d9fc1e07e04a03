//! The cluster's skills, versions and policy, kept in memory by watches.
//!
//! Readers get cheap shared copies and never wait for the API server. The catalog may be behind the API server; callers
//! that need newer facts read them and hand them in. If an object no longer parses, its last good state stays until the
//! object is corrected or deleted. The drivers of the kinds report the problem.

use std::{
    marker::PhantomData,
    sync::{Arc, RwLock},
};

use futures::Stream;
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use skillet_api::{Skill, SkillPolicy, SkillPolicySpec, SkillVersion, names};
use skillet_kube::{Mirror, RawObject};
use tokio::sync::watch;

use self::{
    known::{KnownSkill, KnownVersion},
    namespaced::Namespaced,
};
use crate::version_head::VersionHead;

mod known;
mod namespaced;

/// Namespace and name.
pub(crate) type Key = (String, String);

/// The newest known skills, versions and policy.
#[derive(Default)]
pub(crate) struct Catalog {
    state: RwLock<State>,
    changes: watch::Sender<u64>,
    policy_changes: watch::Sender<i64>,
}

#[derive(Default)]
struct State {
    skills: Namespaced<KnownSkill>,
    /// By the name of the skill, each list from the lowest number to the highest.
    versions: Namespaced<Box<[KnownVersion]>>,
    policy: Arc<SkillPolicySpec>,
    is_policy_known: bool,
}

impl Catalog {
    pub(crate) fn skill(&self, namespace: &str, name: &str) -> Option<Arc<Skill>> {
        self.read(|state| Some(Arc::new(state.skills.get(namespace, name)?.skill(namespace, name))))
    }

    /// The limit of a skill's runs at once.
    pub(crate) fn concurrency(&self, namespace: &str, name: &str) -> Option<u32> {
        self.read(|state| state.skills.get(namespace, name)?.concurrency)
    }

    /// Sealed versions of a skill, newest first.
    pub(crate) fn versions(&self, namespace: &str, skill: &str) -> Vec<Arc<SkillVersion>> {
        self.read(|state| {
            let versions = state.versions.get(namespace, skill).into_iter().flatten();
            versions.rev().map(|known| Arc::new(known.version(namespace, skill))).collect()
        })
    }

    /// The policy in force, or the defaults if there is no SkillPolicy.
    pub(crate) fn policy(&self) -> Arc<SkillPolicySpec> {
        self.read(|state| state.policy.clone())
    }

    /// Returns false if there is no SkillPolicy, or if none of its states could be read. Then no new run may begin: the
    /// policy may say that execution is off.
    pub(crate) fn is_policy_known(&self) -> bool {
        self.read(|state| state.is_policy_known)
    }

    /// The number of skills.
    pub(crate) fn skill_count(&self) -> usize {
        self.read(|state| state.skills.len())
    }

    /// Receives a new number whenever anything in the catalog changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Yields one item per change of the policy's content.
    pub(crate) fn policy_changes(&self) -> impl Stream<Item = ()> + Send + Sync + use<> {
        futures::stream::unfold(self.policy_changes.subscribe(), |mut changes| async move {
            changes.changed().await.ok().map(|()| ((), changes))
        })
    }

    /// Adds a skill that was read outside the watch, unless the catalog has a newer state.
    pub(crate) fn learn_skill(&self, skill: Skill) {
        self.write(|state| {
            let (namespace, name) = key_of(&skill);
            if state.skills.get(&namespace, &name).is_none_or(|known| known.is_older_than(&skill)) {
                state.put_skill(skill);
            }
        });
    }

    /// Adds a version that was created or read outside the watch.
    pub(crate) fn learn_version(&self, version: &SkillVersion) {
        self.write(|state| state.put_version(version));
    }

    /// Adds a policy that was read outside the watch.
    pub(crate) fn learn_policy(&self, policy: SkillPolicy) {
        policy.put(self);
    }

    /// Takes the policy in, or that there is none.
    fn set_policy(&self, policy: Option<SkillPolicySpec>) {
        let is_known = policy.is_some();
        let policy = policy.unwrap_or_default();
        if *self.policy() == policy && self.is_policy_known() == is_known {
            return;
        }
        self.write(|state| {
            state.is_policy_known = is_known;
            state.policy = Arc::new(policy);
        });
        self.policy_changes.send_modify(|count| *count += 1);
    }

    fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&skillet_kube::read(&self.state))
    }

    fn write(&self, change: impl FnOnce(&mut State)) {
        change(&mut skillet_kube::write(&self.state));
        self.changes.send_modify(|count| *count += 1);
    }
}

impl State {
    fn put_skill(&mut self, skill: Skill) {
        let (namespace, name) = key_of(&skill);
        self.skills.insert(&namespace, &name, KnownSkill::new(skill));
    }

    fn put_version(&mut self, version: &SkillVersion) {
        let Some(known) = KnownVersion::new(version) else { return };
        let of = self.versions.get_or_default(&key_of(version).0, &version.spec.skill);
        match of.binary_search_by(|other| other.number.cmp(&known.number)) {
            Ok(index) => of[index] = known,
            Err(index) => {
                let mut longer = std::mem::take(of).into_vec();
                longer.reserve_exact(1);
                longer.insert(index, known);
                *of = longer.into();
            }
        }
    }

    /// Removes the version with an object's key.
    fn drop_version(&mut self, (namespace, name): &Key) {
        self.versions.retain_in(namespace, |_, of| {
            if of.iter().any(|known| *known.name == **name) {
                *of = std::mem::take(of).into_iter().filter(|known| *known.name != **name).collect();
            }
            !of.is_empty()
        });
    }
}

/// The namespace is empty for a kind without namespaces.
fn key_of(object: &impl Resource) -> Key {
    let meta = object.meta();
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

fn key(namespace: &str, name: &str) -> Key {
    (namespace.to_owned(), name.to_owned())
}

/// A kind that the catalog holds.
pub(crate) trait Catalogued: Resource<DynamicType = ()> + DeserializeOwned + Sized {
    /// Parses what the catalog needs of an object.
    fn read(raw: &RawObject<Self>) -> Option<Self> {
        // The kind's driver reports an object that does not parse.
        raw.parse().ok()
    }
    /// Adds the object.
    fn put(self, catalog: &Catalog);
    /// Removes the object of a key.
    fn remove(catalog: &Catalog, key: &Key);
    /// Returns the keys of all objects of this kind.
    fn keys(catalog: &Catalog) -> Vec<Key>;
}

impl Catalogued for Skill {
    fn put(self, catalog: &Catalog) {
        catalog.write(|state| state.put_skill(self));
    }

    fn remove(catalog: &Catalog, key: &Key) {
        catalog.write(|state| state.skills.remove(&key.0, &key.1));
    }

    fn keys(catalog: &Catalog) -> Vec<Key> {
        catalog.read(|state| state.skills.iter().map(|(namespace, name, _)| key(namespace, name)).collect())
    }
}

impl Catalogued for SkillVersion {
    fn read(raw: &RawObject<Self>) -> Option<Self> {
        VersionHead::read(raw)
    }

    fn put(self, catalog: &Catalog) {
        catalog.learn_version(&self);
    }

    fn remove(catalog: &Catalog, key: &Key) {
        catalog.write(|state| state.drop_version(key));
    }

    fn keys(catalog: &Catalog) -> Vec<Key> {
        catalog.read(|state| {
            let all = state.versions.iter();
            all.flat_map(|(namespace, _, of)| of.iter().map(move |known| key(namespace, &known.name)))
                .collect()
        })
    }
}

impl Catalogued for SkillPolicy {
    fn put(self, catalog: &Catalog) {
        if self.name_any() == names::POLICY_NAME {
            catalog.set_policy(Some(self.spec));
        }
    }

    fn remove(catalog: &Catalog, key: &Key) {
        if key.1 == names::POLICY_NAME {
            catalog.set_policy(None);
        }
    }

    fn keys(_: &Catalog) -> Vec<Key> {
        vec![key("", names::POLICY_NAME)]
    }
}

/// Keeps one kind of the catalog in step with its watch.
pub(crate) struct CatalogMirror<K> {
    catalog: Arc<Catalog>,
    is_synced: watch::Sender<bool>,
    kind: PhantomData<fn() -> K>,
}

impl<K> CatalogMirror<K> {
    /// `is_synced` becomes true with the first complete list.
    pub(crate) fn new(catalog: Arc<Catalog>, is_synced: watch::Sender<bool>) -> Self {
        Self { catalog, is_synced, kind: PhantomData }
    }
}

impl<K: Catalogued> Mirror for CatalogMirror<K> {
    type Object = RawObject<K>;
    type Key = Key;

    fn key(&self, object: &RawObject<K>) -> Option<Key> {
        Some(key_of(object))
    }

    fn keys(&self) -> impl IntoIterator<Item = Key> {
        K::keys(&self.catalog)
    }

    fn apply(&mut self, object: RawObject<K>) {
        // The last good state of an object that does not parse stays.
        if let Some(object) = K::read(&object) {
            object.put(&self.catalog);
        }
    }

    fn remove(&mut self, key: Key) {
        K::remove(&self.catalog, &key);
    }

    fn finish_list(&mut self) {
        self.is_synced.send_replace(true);
    }
}

#[cfg(test)]
mod tests;

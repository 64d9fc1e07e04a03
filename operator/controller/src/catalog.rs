//! The cluster's skills, versions and policy, kept in memory by watches.
//!
//! Readers get cheap shared copies and never wait for the API server. The catalog may be behind the API server; callers
//! that need newer facts read them and hand them in. If an object no longer parses, its last good state stays until the
//! object is corrected or deleted. The drivers of the kinds report the problem.

use std::{
    collections::HashMap,
    marker::PhantomData,
    sync::{Arc, RwLock},
};

use futures::Stream;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use skillet_api::{
    Skill, SkillPolicy, SkillPolicySpec, SkillVersion, SkillVersionSpec, names,
    skill::{Run, SkillStatus},
};
use skillet_core::version::SkillSemver;
use skillet_kube::{Mirror, RawObject};
use tokio::sync::watch;

use self::compact::{Compact, identity};
use crate::version_head::VersionHead;

mod compact;

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
    skills: HashMap<Key, KnownSkill>,
    versions: HashMap<Key, Vec<KnownVersion>>,
    policy: Arc<SkillPolicySpec>,
    is_policy_known: bool,
}

struct KnownSkill {
    revision: Option<u64>,
    concurrency: Option<u32>,
    skill: Compact<Skill>,
}

/// One version of a skill, in a list from the lowest number to the highest.
struct KnownVersion {
    number: SkillSemver,
    /// The object's name.
    name: Box<str>,
    version: Compact<SkillVersion>,
}

impl Catalog {
    pub(crate) fn skill(&self, namespace: &str, name: &str) -> Option<Arc<Skill>> {
        self.read(|state| state.skills.get(&key(namespace, name))?.skill.parse())
    }

    /// The limit of a skill's runs at once.
    pub(crate) fn concurrency(&self, namespace: &str, name: &str) -> Option<u32> {
        self.read(|state| state.skills.get(&key(namespace, name))?.concurrency)
    }

    /// Sealed versions of a skill, newest first.
    pub(crate) fn versions(&self, namespace: &str, skill: &str) -> Vec<Arc<SkillVersion>> {
        self.read(|state| {
            let versions = state.versions.get(&key(namespace, skill)).into_iter().flatten();
            versions.rev().filter_map(|known| known.version.parse()).collect()
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
            if state.skills.get(&key_of(&skill)).is_none_or(|known| known.revision < revision(&skill)) {
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
    /// Drops the content. Runs use the sealed version; of the Skill itself only switches, limits and conditions count.
    /// For thousands of skills the rest would be most of the operator's memory.
    fn put_skill(&mut self, mut skill: Skill) {
        skill.spec.run = Run::default();
        skill.spec.tool = None;
        skill.spec.description.clear();
        skill.spec.tags.clear();
        skill.metadata = identity(skill.metadata);
        if let Some(status) = &mut skill.status {
            // A run is refused with the words of a condition that is not true.
            let conditions = status.conditions.drain(..).filter(|condition| condition.status != "True");
            let (observed_generation, conditions) = (status.observed_generation, conditions.collect());
            *status = SkillStatus { observed_generation, conditions, ..SkillStatus::default() };
        }
        let (at, revision) = (key_of(&skill), revision(&skill));
        let concurrency = skill.spec.limits.as_ref().and_then(|limits| limits.concurrency);
        if let Some(skill) = Compact::new(&skill) {
            self.skills.insert(at, KnownSkill { revision, concurrency, skill });
        }
    }

    /// Drops the content, which is read when an execution needs it.
    fn put_version(&mut self, version: &SkillVersion) {
        let SkillVersionSpec { skill, version: number, digest, .. } = &version.spec;
        let head = VersionHead::new(skill, number, digest);
        let version = head.into_version(&identity(version.metadata.clone()));
        // The API server checks a version's name. A version without a valid number cannot run.
        let Ok(number) = version.spec.version.parse::<SkillSemver>() else { return };
        let at = (key_of(&version).0, version.spec.skill.clone());
        let Some(compact) = Compact::new(&version) else { return };
        let known = KnownVersion { number, name: version.name_any().into(), version: compact };
        let of = self.versions.entry(at).or_default();
        match of.binary_search_by(|other| other.number.cmp(&known.number)) {
            Ok(index) => of[index] = known,
            Err(index) => of.insert(index, known),
        }
    }

    /// Removes the version with an object's key.
    fn drop_version(&mut self, (namespace, name): &Key) {
        let is_it = |known: &KnownVersion| *known.name == **name;
        let mut skills = self.versions.iter().filter(|((in_namespace, _), _)| in_namespace == namespace);
        let found = skills.find(|(_, of)| of.iter().any(is_it));
        let Some(at) = found.map(|(at, _)| at.clone()) else { return };
        if let Some(of) = self.versions.get_mut(&at) {
            of.retain(|known| !is_it(known));
            if of.is_empty() {
                self.versions.remove(&at);
            }
        }
    }
}

/// Returns a number that grows with each state of an object.
fn revision(skill: &Skill) -> Option<u64> {
    skill.resource_version()?.parse().ok()
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
        catalog.write(|state| {
            state.skills.remove(key);
        });
    }

    fn keys(catalog: &Catalog) -> Vec<Key> {
        catalog.read(|state| state.skills.keys().cloned().collect())
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
            all.flat_map(|((namespace, _), of)| of.iter().map(|v| key(namespace, &v.name))).collect()
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

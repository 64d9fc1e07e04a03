//! What the cluster holds of skills, versions and policy, kept ready in memory from watches.
//!
//! Readers get cheap shared copies and never wait for the API server. What an object that does not parse says is
//! unknown: the last good state of it stays until it is mended or deleted, and the problem is reported once.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock},
};

use futures::Stream;
use kube::{Resource, ResourceExt, runtime::watcher};
use skillet_api::{Skill, SkillPolicy, SkillPolicySpec, SkillVersion, names, skill::Run};
use skillet_core::version::SkillSemver;
use tokio::sync::watch;

/// Namespace and name.
pub type Key = (String, String);

/// The newest known skills, versions and policy.
pub struct Catalog {
    state: RwLock<State>,
    changes: watch::Sender<u64>,
    policy_changes: watch::Sender<i64>,
}

#[derive(Default)]
struct State {
    skills: HashMap<Key, Arc<Skill>>,
    versions: HashMap<Key, BTreeMap<SkillSemver, Arc<SkillVersion>>>,
    policy: Arc<SkillPolicySpec>,
}

impl Default for Catalog {
    fn default() -> Self {
        Self { state: RwLock::default(), changes: watch::channel(0).0, policy_changes: watch::channel(0).0 }
    }
}

impl Catalog {
    pub fn skill(&self, namespace: &str, name: &str) -> Option<Arc<Skill>> {
        self.read(|state| state.skills.get(&key(namespace, name)).cloned())
    }

    /// Sealed versions of a skill, newest first.
    pub fn versions(&self, namespace: &str, skill: &str) -> Vec<Arc<SkillVersion>> {
        self.read(|state| {
            let versions = state.versions.get(&key(namespace, skill));
            versions.map(|of| of.values().rev().cloned().collect()).unwrap_or_default()
        })
    }

    /// The policy in force; its defaults where there is no object.
    pub fn policy(&self) -> Arc<SkillPolicySpec> {
        self.read(|state| state.policy.clone())
    }

    /// How many skills there are.
    pub fn skill_count(&self) -> usize {
        self.read(|state| state.skills.len())
    }

    /// Receives a new number whenever anything in the catalogue changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Gives one item per change of the policy's content.
    pub fn policy_changes(&self) -> impl Stream<Item = ()> + Send + Sync + use<> {
        futures::stream::unfold(self.policy_changes.subscribe(), |mut changes| async move {
            changes.changed().await.ok().map(|()| ((), changes))
        })
    }

    /// Takes a skill that was read outside the watch, unless a newer state of it is known.
    pub fn learn_skill(&self, skill: Skill) {
        self.write(|state| {
            if state.skills.get(&key_of(&skill)).is_none_or(|known| revision(known) < revision(&skill)) {
                state.put_skill(skill);
            }
        });
    }

    /// Takes a version that was made or read outside the watch.
    pub fn learn_version(&self, version: SkillVersion) {
        self.write(|state| state.put_version(Arc::new(version)));
    }

    fn set_policy(&self, policy: SkillPolicySpec) {
        if *self.policy() == policy {
            return;
        }
        self.write(|state| state.policy = Arc::new(policy));
        self.policy_changes.send_modify(|count| *count += 1);
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
        self.changes.send_modify(|count| *count += 1);
    }
}

impl State {
    /// What decides about a run is the sealed version; of the Skill itself only its switches, limits and conditions
    /// count. The content, kept for thousands of skills, would be most of what the operator holds.
    fn put_skill(&mut self, mut skill: Skill) {
        skill.spec.run = Run::default();
        skill.spec.tool = None;
        self.skills.insert(key_of(&skill), Arc::new(skill));
    }

    fn put_version(&mut self, version: Arc<SkillVersion>) {
        // A SkillVersion's name is checked by the API server; one with a version that is none cannot be run.
        let Ok(number) = version.spec.version.parse::<SkillSemver>() else { return };
        let at = key(&version.namespace().unwrap_or_default(), &version.spec.skill);
        self.versions.entry(at).or_default().insert(number, version);
    }

    fn drop_version(&mut self, version: &SkillVersion) {
        let at = key(&version.namespace().unwrap_or_default(), &version.spec.skill);
        let Ok(number) = version.spec.version.parse::<SkillSemver>() else { return };
        if let Some(of) = self.versions.get_mut(&at) {
            of.remove(&number);
            if of.is_empty() {
                self.versions.remove(&at);
            }
        }
    }
}

/// Of two states of one object, the greater is the newer.
fn revision(skill: &Skill) -> Option<u64> {
    skill.resource_version()?.parse().ok()
}

fn key_of(skill: &Skill) -> Key {
    key(&skill.namespace().unwrap_or_default(), &skill.name_any())
}

fn key(namespace: &str, name: &str) -> Key {
    (namespace.to_owned(), name.to_owned())
}

/// A kind that the catalogue keeps.
pub trait Catalogued: Resource<DynamicType = ()> + Sized {
    /// Takes the object in.
    fn put(self, catalog: &Catalog);
    /// Takes out what is known under `key`.
    fn remove(catalog: &Catalog, key: &Key);
    /// Keys of everything known.
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
    fn put(self, catalog: &Catalog) {
        catalog.learn_version(self);
    }

    fn remove(catalog: &Catalog, key: &Key) {
        catalog.write(|state| {
            let found = state.versions.iter().filter(|((namespace, _), _)| *namespace == key.0);
            let found = found.flat_map(|(_, of)| of.values()).find(|v| v.name_any() == key.1).cloned();
            if let Some(version) = found {
                state.drop_version(&version);
            }
        });
    }

    fn keys(catalog: &Catalog) -> Vec<Key> {
        catalog.read(|state| {
            let all = state.versions.iter();
            all.flat_map(|((namespace, _), of)| of.values().map(|v| key(namespace, &v.name_any()))).collect()
        })
    }
}

impl Catalogued for SkillPolicy {
    fn put(self, catalog: &Catalog) {
        if self.name_any() == names::POLICY_NAME {
            catalog.set_policy(self.spec);
        }
    }

    fn remove(catalog: &Catalog, key: &Key) {
        if key.1 == names::POLICY_NAME {
            catalog.set_policy(SkillPolicySpec::default());
        }
    }

    fn keys(_: &Catalog) -> Vec<Key> {
        vec![key("", names::POLICY_NAME)]
    }
}

/// Keeps one kind of the catalogue in step with its watch events.
pub struct Keeper<K> {
    listed: HashSet<Key>,
    kind: std::marker::PhantomData<fn() -> K>,
}

impl<K> Default for Keeper<K> {
    fn default() -> Self {
        Self { listed: HashSet::new(), kind: std::marker::PhantomData }
    }
}

impl<K: Catalogued> Keeper<K> {
    /// Applies one event. `parsed` is None where the object does not parse; its key is known all the same.
    pub fn take(&mut self, catalog: &Catalog, event: watcher::Event<(Key, Option<K>)>) {
        match event {
            watcher::Event::Init => self.listed.clear(),
            watcher::Event::InitApply((at, object)) => {
                self.listed.insert(at);
                if let Some(object) = object {
                    object.put(catalog);
                }
            }
            watcher::Event::InitDone => {
                for at in K::keys(catalog).iter().filter(|at| !self.listed.contains(*at)) {
                    K::remove(catalog, at);
                }
            }
            watcher::Event::Apply((_, Some(object))) => object.put(catalog),
            watcher::Event::Apply((_, None)) => {}
            watcher::Event::Delete((at, _)) => K::remove(catalog, &at),
        }
    }
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;

//! All skills of the cluster as the watch shows them, prepared to be offered.
//!
//! One index per namespace, swapped in whole: a request reads without a lock and without copying.

mod entry;
mod instructions;
mod left_right;
mod namespace;
mod watch;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, Ordering},
    },
};

use arc_swap::{ArcSwap, Guard};
use skillet_api::{Skill, SkillPolicySpec, SkillVersion};
use skillet_kube::lock;
use skillet_offer::{Candidate, Eligibility, MatchMode};
use tokio::sync::watch as watch_channel;

use crate::{auth::Caller, compute::compute, embeddings::EmbeddingsState};

pub use self::{
    entry::{CachedContent, CachedSkill, CachedSpec, CachedVersion, CatalogEntry, Versions},
    instructions::{CachedInstructions, Guides},
    namespace::Namespace,
};
use self::{left_right::LeftRight, namespace::Outcome};

/// Skills, versions and policy as the watches report them.
#[derive(Default)]
pub struct SkillCatalog {
    policy: ArcSwap<SkillPolicySpec>,
    namespaces: ArcSwap<HashMap<Arc<str>, Arc<LeftRight>>>,
    /// Taken by who changes something; readers never wait for it.
    writing: Mutex<()>,
    synced: AtomicU8,
    changes: watch_channel::Sender<u64>,
    embeddings: ArcSwap<EmbeddingsState>,
    /// The namespaces of all calls of [`SkillCatalog::list`], in tests.
    #[cfg(test)]
    listed: Mutex<Vec<String>>,
}

impl SkillCatalog {
    /// The policy in force.
    pub fn policy(&self) -> Arc<SkillPolicySpec> {
        self.policy.load_full()
    }

    /// Sets the embedding model. All skills get its vectors.
    pub fn set_embeddings(&self, embeddings: EmbeddingsState) {
        let _writing = lock(&self.writing);
        let before = self.embeddings.swap(Arc::new(embeddings));
        let (now, model) = (self.embeddings(), self.embeddings().model());
        if before.model().is_none() && model.is_none() {
            return;
        }
        compute(usize::MAX, || {
            for namespace in self.namespaces.load().values() {
                let (skills, model) = (namespace.load().find_new_vectors(&now), model.clone());
                namespace.change(move |of| of.set_model(&skills, model.clone()));
            }
        });
    }

    /// Gives vectors to the skills whose vectors the model has got in the meantime.
    pub(crate) fn add_vectors(&self) {
        let _writing = lock(&self.writing);
        let embeddings = self.embeddings();
        compute(usize::MAX, || {
            for namespace in self.namespaces.load().values() {
                let skills = namespace.load().find_new_vectors(&embeddings);
                if !skills.is_empty() {
                    namespace.change(move |of| of.set_vectors(&skills));
                }
            }
        });
    }

    /// Returns the embedding model.
    pub(crate) fn embeddings(&self) -> Arc<EmbeddingsState> {
        self.embeddings.load_full()
    }

    /// Returns the skills of all namespaces that are offered on a match.
    pub(crate) fn searched_skills(&self) -> Vec<Arc<Candidate>> {
        let namespaces = self.namespaces.load();
        let skills = namespaces.values().flat_map(|namespace| {
            let namespace = namespace.load();
            let skills = namespace.index().candidates().cloned();
            skills.filter(|skill| skill.eligibility() == Eligibility::OnMatch).collect::<Vec<_>>()
        });
        skills.collect()
    }

    /// Returns true once the first lists of policy, skills and versions are complete.
    pub fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Acquire) == watch::ALL
    }

    /// Ends the first lists of all kinds.
    #[cfg(test)]
    pub(crate) fn set_synced(&self) {
        self.synced.store(watch::ALL, Ordering::Release);
    }

    /// Namespaces that a caller's names are looked up in, the nearest first: its own, the platform's, the catalogues'.
    /// Whether the caller may see what is in them is asked elsewhere.
    pub fn namespaces(&self, caller: &Caller) -> Vec<Arc<str>> {
        let policy = self.policy();
        let shared = policy.gateway.platform_namespaces.iter().chain(&policy.gateway.catalog_namespaces);
        let mut order = vec![caller.namespace.clone()];
        for namespace in shared {
            if !order.iter().any(|known| **known == **namespace) {
                order.push(namespace.as_str().into());
            }
        }
        order
    }

    /// The skills of a namespace as they are now; none where it has no skill.
    pub fn namespace(&self, namespace: &str) -> Option<Guard<Arc<Namespace>>> {
        Some(self.namespaces.load().get(namespace)?.load())
    }

    /// A skill by namespace and name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<CatalogEntry>> {
        self.namespace(namespace)?.get(name).cloned()
    }

    /// Every skill of a namespace, by name.
    pub fn list(&self, namespace: &str) -> Vec<Arc<CatalogEntry>> {
        #[cfg(test)]
        lock(&self.listed).push(namespace.to_owned());
        self.namespace(namespace).map(|found| found.list().cloned().collect()).unwrap_or_default()
    }

    /// Returns the number of lists of this namespace so far.
    #[cfg(test)]
    pub(crate) fn lists(&self, namespace: &str) -> usize {
        lock(&self.listed).iter().filter(|listed| *listed == namespace).count()
    }

    /// Reports every change, by a number that grows.
    pub fn changes(&self) -> watch_channel::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The number of the last change in this namespace; 0 where there is nothing.
    pub fn last_change(&self, namespace: &str) -> u64 {
        self.namespace(namespace).map_or(0, |found| found.last_change())
    }

    /// Another policy is in force. Where it reads text otherwise, every index is made anew.
    pub fn set_policy(&self, policy: SkillPolicySpec) {
        let reading = reading(&policy);
        self.policy.store(Arc::new(policy));
        self.change_all(move |namespace| namespace.read_as(reading));
    }

    /// A skill is new or was changed.
    pub fn put_skill(&self, skill: &Skill) {
        let Some(skill) = CachedSkill::of(skill) else { return };
        self.change(&skill.namespace.clone(), |of| Some(of.with_skill(skill)));
    }

    /// A skill was deleted.
    pub fn remove_skill(&self, namespace: &str, name: &str) {
        self.change(namespace, |of| Some(of.without_skill(name)));
    }

    /// A version was sealed, or is seen for the first time.
    pub fn put_version(&self, version: &SkillVersion) {
        let Some(namespace) = version.metadata.namespace.as_deref() else { return };
        let Some(known) = CachedVersion::of(version) else { return };
        self.change(namespace, |of| Some(of.with_version(&version.spec.skill, known)));
    }

    /// A version was deleted.
    pub fn remove_version(&self, version: &SkillVersion) {
        let Some(namespace) = version.metadata.namespace.as_deref() else { return };
        let Ok(number) = version.spec.version.parse() else { return };
        self.change(namespace, |of| Some(of.without_version(&version.spec.skill, &number)));
    }

    /// A version is not there any more, and only the object's name is known.
    pub fn forget_version(&self, namespace: &str, object: &str) {
        self.change(namespace, |of| of.without_object(object));
    }

    fn change(&self, namespace: &str, work_out: impl FnOnce(&Namespace) -> Option<Outcome>) {
        let _writing = lock(&self.writing);
        let known = self.namespaces.load();
        let (name, found) = match known.get_key_value(namespace) {
            Some((name, found)) => (name.clone(), found.clone()),
            None => self.unknown(namespace.into()),
        };
        let Some(mut outcome) = work_out(&found.load()) else { return };
        outcome.add_vector(&self.embeddings(), &found.load());
        let number = *self.changes.borrow() + 1;
        found.change(move |of| of.set(&outcome, number));
        let (is_kept, is_empty) = (known.contains_key(&name), found.load().is_empty());
        // Kept are namespaces with something in them, and no others.
        if is_kept == is_empty {
            let mut namespaces = HashMap::clone(&known);
            if is_empty {
                namespaces.remove(&name)
            } else {
                namespaces.insert(name, found)
            };
            self.namespaces.store(Arc::new(namespaces));
        }
        self.tell();
    }

    fn unknown(&self, name: Arc<str>) -> (Arc<str>, Arc<LeftRight>) {
        let namespace = Namespace::new(name.clone(), reading(&self.policy.load()), self.embeddings().model());
        (name, Arc::new(LeftRight::new(namespace)))
    }

    fn tell(&self) {
        self.changes.send_modify(|number| *number += 1);
    }

    fn change_all(&self, change: impl Fn(&mut Namespace) + Send + Sync + Clone + 'static) {
        let _writing = lock(&self.writing);
        self.namespaces.load().values().for_each(|namespace| namespace.change(change.clone()));
        self.tell();
    }
}

fn reading(policy: &SkillPolicySpec) -> MatchMode {
    policy.gateway.offer.matching.into()
}

#[cfg(test)]
mod tests;

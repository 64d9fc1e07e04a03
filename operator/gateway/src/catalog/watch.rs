//! The watches that feed [`SkillCatalog`]: policy, skills and versions, each on its own.

use std::{collections::HashSet, pin::pin, sync::Arc, sync::atomic::Ordering};

use futures::TryStreamExt as _;
use kube::{
    Api, Client, Resource, ResourceExt as _,
    runtime::{WatchStreamExt as _, watcher},
};
use serde::de::DeserializeOwned;
use skillet_api::{Skill, SkillPolicy, SkillPolicySpec, SkillVersion, names};
use skillet_kube::{PAGE_SIZE, RawObject};
use tracing::warn;

use super::SkillCatalog;

/// A bit for each kind that has been seen whole.
pub(super) const ALL: u8 = 0b111;

type Key = (String, String);

/// A kind of object that the catalog watches.
trait Watched: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static {
    const BIT: u8;
    fn put(self, skills: &SkillCatalog);
    fn remove(skills: &SkillCatalog, key: &Key, last: Option<&Self>);
}

impl Watched for SkillPolicy {
    const BIT: u8 = 0b001;

    fn put(self, skills: &SkillCatalog) {
        if self.name_any() == names::POLICY_NAME {
            skills.set_policy(self.spec);
        }
    }

    fn remove(skills: &SkillCatalog, key: &Key, _: Option<&Self>) {
        if key.1 == names::POLICY_NAME {
            skills.set_policy(SkillPolicySpec::default());
        }
    }
}

impl Watched for Skill {
    const BIT: u8 = 0b010;

    fn put(self, skills: &SkillCatalog) {
        skills.put_skill(&self);
    }

    fn remove(skills: &SkillCatalog, key: &Key, _: Option<&Self>) {
        skills.remove_skill(&key.0, &key.1);
    }
}

impl Watched for SkillVersion {
    const BIT: u8 = 0b100;

    fn put(self, skills: &SkillCatalog) {
        skills.put_version(&self);
    }

    fn remove(skills: &SkillCatalog, key: &Key, last: Option<&Self>) {
        match last {
            Some(version) => skills.remove_version(version),
            None => skills.forget_version(&key.0, &key.1),
        }
    }
}

impl SkillCatalog {
    /// Watches until the process ends, or one of the watches does.
    pub async fn watch(self: Arc<Self>, client: Client) {
        tokio::select! {
            () = keep::<SkillPolicy>(&self, client.clone()) => {}
            () = keep::<Skill>(&self, client.clone()) => {}
            () = keep::<SkillVersion>(&self, client) => {}
        }
    }
}

async fn keep<K: Watched>(skills: &SkillCatalog, client: Client) {
    let api: Api<RawObject<K>> = Api::all(client);
    let mut events = pin!(watcher(api, watcher::Config::default().page_size(PAGE_SIZE)).default_backoff());
    let mut known: HashSet<Key> = HashSet::new();
    let mut listed: HashSet<Key> = HashSet::new();
    loop {
        let event = match events.try_next().await {
            Ok(Some(event)) => event,
            Ok(None) => return,
            Err(error) => {
                warn!(kind = %K::kind(&()), %error, "Watch was interrupted");
                continue;
            }
        };
        match event {
            watcher::Event::Init => listed.clear(),
            watcher::Event::InitApply(object) => {
                listed.insert(key(&object));
                take(skills, &mut known, &object);
            }
            watcher::Event::InitDone => {
                for gone in known.difference(&listed).cloned().collect::<Vec<Key>>() {
                    known.remove(&gone);
                    K::remove(skills, &gone, None);
                }
                skills.synced.fetch_or(K::BIT, Ordering::Release);
            }
            watcher::Event::Apply(object) => take(skills, &mut known, &object),
            watcher::Event::Delete(object) => {
                let key = key(&object);
                known.remove(&key);
                let last = object.parse().ok();
                K::remove(skills, &key, last.as_ref());
            }
        }
    }
}

/// One object that does not parse does not hide the others.
fn take<K: Watched>(skills: &SkillCatalog, known: &mut HashSet<Key>, object: &RawObject<K>) {
    let key = key(object);
    let problem = match object.parse() {
        Ok(object) => {
            known.insert(key);
            return object.put(skills);
        }
        Err(error) => error,
    };
    // The operator reports the problem; the catalog keeps the object as it was before.
    let (namespace, name) = key;
    warn!(kind = %K::kind(&()), %namespace, %name, %problem, "Object could not be read");
}

fn key<K: Watched>(object: &RawObject<K>) -> Key {
    let meta = object.meta();
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

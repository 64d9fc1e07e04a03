//! The watches that feed [`SkillCatalog`]: policy, skills and versions, each on its own.

use std::{
    collections::HashSet,
    marker::PhantomData,
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

/// A kind of object that the catalog watches.
trait Watched: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static {
    const BIT: u8;
    fn put(self, catalog: &SkillCatalog);
    fn remove(catalog: &SkillCatalog, key: &Key, last: Option<&Self>);
}

impl Watched for SkillPolicy {
    const BIT: u8 = 0b001;

    fn put(self, catalog: &SkillCatalog) {
        if self.name_any() == names::POLICY_NAME {
            catalog.set_policy(self.spec);
        }
    }

    fn remove(catalog: &SkillCatalog, key: &Key, _: Option<&Self>) {
        if key.1 == names::POLICY_NAME {
            catalog.set_policy(SkillPolicySpec::default());
        }
    }
}

impl Watched for Skill {
    const BIT: u8 = 0b010;

    fn put(self, catalog: &SkillCatalog) {
        catalog.put_skill(&self);
    }

    fn remove(catalog: &SkillCatalog, key: &Key, _: Option<&Self>) {
        catalog.remove_skill(&key.0, &key.1);
    }
}

impl Watched for SkillVersion {
    const BIT: u8 = 0b100;

    fn put(self, catalog: &SkillCatalog) {
        catalog.put_version(&self);
    }

    fn remove(catalog: &SkillCatalog, key: &Key, last: Option<&Self>) {
        match last {
            Some(version) => catalog.remove_version(version),
            None => catalog.forget_version(&key.0, &key.1),
        }
    }
}

impl SkillCatalog {
    /// Watches until the process ends.
    pub async fn watch(self: Arc<Self>, client: Client) {
        tokio::join!(
            mirror_kind::<SkillPolicy>(&self, client.clone()),
            mirror_kind::<Skill>(&self, client.clone()),
            mirror_kind::<SkillVersion>(&self, client),
        );
    }
}

async fn mirror_kind<K: Watched>(catalog: &SkillCatalog, client: Client) {
    let api: Api<RawObject<K>> = Api::all(client);
    let mut kind = KindMirror { catalog, held: HashSet::new(), kind: PhantomData::<K> };
    mirror(watch(api, Config::default()), &mut kind).await;
}

/// The objects of one kind that the catalog holds.
struct KindMirror<'a, K> {
    catalog: &'a SkillCatalog,
    held: HashSet<Key>,
    kind: PhantomData<K>,
}

impl<K: Watched> Mirror for KindMirror<'_, K> {
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
                object.put(self.catalog);
            }
            Err(problem) => {
                let (namespace, name) = key;
                warn!(kind = %K::kind(&()), %namespace, %name, %problem, "Object could not be read");
            }
        }
    }

    fn remove(&mut self, key: Key) {
        self.held.remove(&key);
        K::remove(self.catalog, &key, None);
    }

    fn delete(&mut self, object: RawObject<K>) {
        let Some(key) = self.key(&object) else { return };
        self.held.remove(&key);
        K::remove(self.catalog, &key, object.parse().ok().as_ref());
    }

    fn finish_list(&mut self) {
        self.catalog.synced.fetch_or(K::BIT, Ordering::Release);
    }
}

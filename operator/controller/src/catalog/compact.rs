//! An object as compact JSON. Parsed, a Skill takes some 2 KB, nearly all of it for fields that it does not have.

use std::{marker::PhantomData, sync::Arc};

use kube::api::ObjectMeta;
use serde::{Serialize, de::DeserializeOwned};

/// An object of kind `K`, parsed whenever it is read.
pub(super) struct Compact<K> {
    json: Box<[u8]>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Serialize + DeserializeOwned> Compact<K> {
    /// Returns `None` for an object that JSON cannot express, which the API server never sends.
    pub(super) fn new(object: &K) -> Option<Self> {
        let json = serde_json::to_vec(object).ok()?.into_boxed_slice();
        Some(Self { json, kind: PhantomData })
    }

    pub(super) fn parse(&self) -> Option<Arc<K>> {
        serde_json::from_slice(&self.json).ok().map(Arc::new)
    }
}

/// Returns the metadata that identifies an object and its state.
pub(super) fn identity(meta: ObjectMeta) -> ObjectMeta {
    let ObjectMeta { name, namespace, uid, resource_version, generation, deletion_timestamp, .. } = meta;
    ObjectMeta {
        name,
        namespace,
        uid,
        resource_version,
        generation,
        deletion_timestamp,
        ..ObjectMeta::default()
    }
}

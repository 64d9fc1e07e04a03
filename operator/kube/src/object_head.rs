//! The metadata of a Kubernetes object, for stores that need nothing else of it.

use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};

use crate::RawObject;

/// An object of kind `K` whose content is dropped as soon as it is read.
#[derive(Clone, Debug)]
pub struct ObjectHead<K> {
    meta: ObjectMeta,
    kind: PhantomData<fn() -> K>,
}

impl<'de, K> Deserialize<'de> for ObjectHead<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let meta = RawObject::<K>::deserialize(deserializer)?.into_meta();
        Ok(Self { meta, kind: PhantomData })
    }
}

impl_resource!(ObjectHead);

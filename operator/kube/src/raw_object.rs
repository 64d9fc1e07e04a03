//! A Kubernetes object whose metadata is parsed and whose rest stays raw JSON until it is needed.
//!
//! A page of a list is in memory with all its objects. Parsed, an object of many small values takes a hundred times its
//! text, so each object is parsed alone, and only if somebody needs it. One object that does not parse leaves the others
//! of its page as they are. [`RawObject::parse`] refuses an object that would take too much memory.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, de::Error as _};
use serde_json::value::{RawValue, to_raw_value};
use thiserror::Error;

use crate::parsed_size;

/// Objects in the smallest page of a list. As large as the API server accepts them, they take about 15 MiB. A list that asks
/// for this number gets larger pages while its objects are small.
pub const PAGE_SIZE: u32 = 10;
/// Most bytes that one parsed object may take. Schemas of half a megabyte take a tenth of it.
const MAX_PARSED_BYTES: usize = 64 << 20;
/// An annotation with another copy of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The reason why an object of the API server cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// `field` is the path from the object's root, such as `spec.limits.retries`.
    #[error("the object does not parse: {field}: {message}")]
    Field { field: String, message: String },
    #[error("the object would take {0} bytes of memory; the limit is {MAX_PARSED_BYTES}")]
    TooLarge(usize),
}

/// An object of kind `K`. Of its metadata, annotations and managed fields stay raw.
pub struct RawObject<K> {
    meta: ObjectMeta,
    text: Box<RawValue>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource + Serialize> RawObject<K> {
    /// Serializes an object that is to be created.
    pub fn new(object: &K) -> serde_json::Result<Self> {
        Ok(Self { meta: object.meta().clone(), text: to_raw_value(object)?, kind: PhantomData })
    }
}

impl<K: Resource + DeserializeOwned> RawObject<K> {
    /// Parses the object, without its managed fields and kubectl's copy of it.
    pub fn parse(&self) -> Result<K, ParseError> {
        let size = self.parsed_size();
        if size > MAX_PARSED_BYTES {
            return Err(ParseError::TooLarge(size));
        }
        let mut object: K = self.parse_part()?;
        let meta = object.meta_mut();
        meta.managed_fields = None;
        if let Some(annotations) = &mut meta.annotations {
            annotations.remove(LAST_APPLIED);
        }
        Ok(object)
    }
}

impl<K> RawObject<K> {
    /// Returns the metadata, and drops the text.
    pub(crate) fn into_meta(self) -> ObjectMeta {
        self.meta
    }

    /// Returns the bytes that the parsed object takes.
    pub fn parsed_size(&self) -> usize {
        parsed_size(self.text.get().as_bytes())
    }

    /// Parses a `T` that leaves out what tenants write, so no limit is needed. An error names the field.
    pub fn parse_part<T: DeserializeOwned>(&self) -> Result<T, ParseError> {
        let mut text = serde_json::Deserializer::from_str(self.text.get());
        serde_path_to_error::deserialize(&mut text).map_err(|error| {
            let (inner, message) = (error.inner(), error.inner().to_string());
            // A position in the API server's JSON means nothing to a user.
            let position = format!(" at line {} column {}", inner.line(), inner.column());
            let message = message.strip_suffix(&position).unwrap_or(&message).to_owned();
            ParseError::Field { field: error.path().to_string(), message }
        })
    }

    /// Parses the object as a `T` that leaves as text what tenants write, so no limit is needed.
    pub fn parse_unbounded<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.text.get())
    }
}

impl<K> Serialize for RawObject<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<K> Clone for RawObject<K> {
    fn clone(&self) -> Self {
        Self { meta: self.meta.clone(), text: self.text.clone(), kind: PhantomData }
    }
}

/// Leaves out the text, which may be a Secret's.
impl<K> fmt::Debug for RawObject<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawObject").field("meta", &self.meta).finish_non_exhaustive()
    }
}

/// The part of an object that a watch needs.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: HeadMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadMeta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    deletion_timestamp: Option<Time>,
}

impl<'de, K> Deserialize<'de> for RawObject<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let head: Head = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let HeadMeta { name, namespace, uid, resource_version, generation, labels, deletion_timestamp } =
            head.metadata;
        let meta = ObjectMeta {
            name,
            namespace,
            uid,
            resource_version,
            generation,
            labels,
            deletion_timestamp,
            ..ObjectMeta::default()
        };
        Ok(Self { meta, text, kind: PhantomData })
    }
}

impl_resource!(RawObject);

#[cfg(test)]
mod tests;

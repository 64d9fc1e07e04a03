//! An object as a list or a watch shows it: named, and otherwise text until somebody needs more.
//!
//! A page of a list is in memory with all its objects. Parsed, one that a tenant made of many small values takes a
//! hundred times its text, so they are parsed one at a time, and those that nobody asks for are not.

use std::{borrow::Cow, fmt, marker::PhantomData};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, de::Error as _};
use serde_json::value::{RawValue, to_raw_value};
use thiserror::Error;

use crate::memory;

/// Objects of one answer of a list: as large as the API server takes them, they are about 15 MiB.
pub const PAGE: u32 = 10;
/// Most that one object may take as a document. Schemas of half a megabyte take a tenth of it.
const MOST: usize = 64 << 20;

#[derive(Debug, Error)]
pub enum UnreadError {
    #[error("the object would take {0} bytes of memory, at most {MOST} are given to one")]
    TooManyValues(usize),
    #[error("the object does not parse: {0}")]
    Parse(#[from] serde_json::Error),
}

/// An object of kind `K`.
pub struct Unread<K> {
    meta: ObjectMeta,
    text: Box<RawValue>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource + Serialize> Unread<K> {
    /// An object that is to be made.
    pub fn of(object: &K) -> serde_json::Result<Self> {
        Ok(Self { meta: object.meta().clone(), text: to_raw_value(object)?, kind: PhantomData })
    }
}

impl<K> Unread<K> {
    /// The whole object as `T`: the kind itself, or what is to be known of it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, UnreadError> {
        let needed = memory::parsed_size(self.text.get().as_bytes());
        if needed > MOST {
            return Err(UnreadError::TooManyValues(needed));
        }
        Ok(self.read_as()?)
    }

    /// The same without a limit, for a `T` that leaves what tenants write as text.
    pub fn read_as<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.text.get())
    }
}

impl<K> Serialize for Unread<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<K> Clone for Unread<K> {
    fn clone(&self) -> Self {
        Self { meta: self.meta.clone(), text: self.text.clone(), kind: PhantomData }
    }
}

/// Never the text, which may be a Secret's.
impl<K> fmt::Debug for Unread<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unread").field("meta", &self.meta).finish_non_exhaustive()
    }
}

/// What a watch has to know of any object.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: Names,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Names {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}

impl<'de, K> Deserialize<'de> for Unread<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let head: Head = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let Names { name, namespace, uid, resource_version } = head.metadata;
        let meta = ObjectMeta { name, namespace, uid, resource_version, ..ObjectMeta::default() };
        Ok(Self { meta, text, kind: PhantomData })
    }
}

impl<K: Resource> Resource for Unread<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dt)
    }

    fn api_version(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::api_version(dt)
    }

    fn plural(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ObjectList, WatchEvent};
    use serde_json::{Value, json};
    use skillet_api::SkillExecution;

    use super::*;

    fn execution(input: &Value) -> Value {
        json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution", "spec": { "skill": "s", "input": input },
            "metadata": { "name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7", "managedFields": 3 } })
    }

    #[test]
    fn lists_and_watches_show_objects_whose_content_is_not_parsed() {
        let list =
            json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": [execution(&json!(1))] });
        let list: ObjectList<Unread<SkillExecution>> = serde_json::from_str(&list.to_string()).unwrap();
        let event = format!("{{\"type\":\"ADDED\",\"object\":{}}}", execution(&json!(1)));
        let event: WatchEvent<Unread<SkillExecution>> = serde_json::from_str(&event).unwrap();
        let WatchEvent::Added(watched) = event else { panic!("another event") };
        for unread in [&watched, list.items.first().unwrap()] {
            let ObjectMeta { name, namespace, uid, resource_version, .. } = unread.meta();
            let told = [name, namespace, uid, resource_version].map(|text| text.as_deref().unwrap());
            assert_eq!(told, ["a", "ns", "u", "7"]);
            assert_eq!(unread.read::<Value>().unwrap()["spec"]["input"], 1);
            // What does not parse is so for whoever reads it.
            assert!(matches!(unread.read::<SkillExecution>(), Err(UnreadError::Parse(_))));
        }
    }

    #[test]
    fn an_object_that_would_take_too_much_is_not_parsed() {
        let many = vec![json!({ "": 0 }); 150_000];
        let unread: Unread<SkillExecution> =
            serde_json::from_str(&execution(&json!(many)).to_string()).unwrap();
        assert!(matches!(unread.read::<Value>(), Err(UnreadError::TooManyValues(_))));
        let few = serde_json::from_str::<Unread<SkillExecution>>(
            &execution(&json!("a".repeat(1 << 20))).to_string(),
        );
        assert!(few.unwrap().read::<Value>().is_ok());
    }
}

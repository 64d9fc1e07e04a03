//! The metadata of a Kubernetes object, for stores that need nothing else of it.

use std::{collections::BTreeMap, marker::PhantomData};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};

use crate::RawObject;

/// The prefix of the labels that are kept. Users and their tools write others, on thousands of objects.
const OWN_LABELS: &str = "skillet.dev/";

/// An object of kind `K` of which name, namespace, resource version and Skillet's own labels are kept.
#[derive(Clone, Debug)]
pub struct ObjectHead<K> {
    meta: ObjectMeta,
    kind: PhantomData<fn() -> K>,
}

impl<'de, K> Deserialize<'de> for ObjectHead<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ObjectMeta { name, namespace, resource_version, labels, .. } =
            RawObject::<K>::deserialize(deserializer)?.into_meta();
        let own = labels.into_iter().flatten().filter(|(name, _)| name.starts_with(OWN_LABELS));
        let own: BTreeMap<String, String> = own.collect();
        let labels = (!own.is_empty()).then_some(own);
        let meta = ObjectMeta { name, namespace, resource_version, labels, ..ObjectMeta::default() };
        Ok(Self { meta, kind: PhantomData })
    }
}

impl_resource!(ObjectHead);

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn of_the_labels_only_those_of_skillet_are_kept() {
        let head = |labels: &str| -> ObjectHead<Pod> {
            serde_json::from_str(&format!(
                r#"{{"metadata": {{"name": "a", "labels": {labels}}}, "spec": 7}}"#
            ))
            .unwrap()
        };
        let kept = head(r#"{"skillet.dev/skill": "s", "app.kubernetes.io/name": "x"}"#).meta.labels;
        assert_eq!(kept, Some(BTreeMap::from([("skillet.dev/skill".to_owned(), "s".to_owned())])));
        assert_eq!(head(r#"{"a": "b"}"#).meta.labels, None);
    }
}

//! Objects that do not parse: told by event and log, naming object and field, and kept away from all others.
//!
//! kube's own guard gives the error without the place of it, which is what a user has to know. What nobody here reads of
//! an object is left out on the way: kept for thousands of objects, it is most of a process's memory.

use std::borrow::Cow;

use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;
use thiserror::Error;

/// An object that the API server holds and this version cannot read.
#[derive(Clone, Debug, Error)]
#[error("the object does not parse: {field}: {message}")]
pub struct ParseError {
    /// Path from the object's root, such as `spec.limits.retries`.
    pub field: String,
    message: String,
    meta: Box<ObjectMeta>,
}

/// An object, or why it is none. One bad object of a list or a watch leaves the others as they are.
#[derive(Clone, Debug)]
pub struct Guarded<K>(pub Result<K, ParseError>);

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        leave_out_bookkeeping(&mut value);
        Ok(Self(serde_path_to_error::deserialize(&value).map_err(|error| ParseError {
            field: error.path().to_string(),
            message: error.inner().to_string(),
            // What has no readable metadata cannot be told of, and is no object of any API server.
            meta: Box::new(ObjectMeta::deserialize(&value["metadata"]).unwrap_or_default()),
        })))
    }
}

/// Who owns which field, and what kubectl applied last: the API server's and kubectl's own.
fn leave_out_bookkeeping(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.remove("managedFields");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}

impl<K: Resource> Resource for Guarded<K> {
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
        match &self.0 {
            Ok(object) => object.meta(),
            Err(error) => &error.meta,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.0 {
            Ok(object) => object.meta_mut(),
            Err(error) => &mut error.meta,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Skill;
    use kube::ResourceExt as _;
    use serde_json::json;

    fn read(spec: &Value) -> Guarded<Skill> {
        serde_json::from_value(json!({
            "apiVersion": "skillet.dev/v1alpha1",
            "kind": "Skill",
            "metadata": { "name": "a", "namespace": "ns" },
            "spec": spec,
        }))
        .unwrap()
    }

    #[test]
    fn the_field_that_does_not_parse_is_named() {
        let bad = read(&json!({ "version": "1.0.0", "run": {}, "limits": { "retries": -1 } }));
        let error = bad.0.as_ref().unwrap_err();
        assert_eq!(error.field, "spec.limits.retries");
        assert!(
            error.to_string().starts_with("the object does not parse: spec.limits.retries: invalid value"),
            "{error}"
        );
        assert_eq!((bad.name_any().as_str(), bad.namespace().as_deref()), ("a", Some("ns")));
    }

    #[test]
    fn what_is_kept_for_others_is_left_out() {
        let object: Guarded<Skill> = serde_json::from_value(json!({
            "metadata": {
                "name": "a",
                "managedFields": [{ "manager": "kubectl", "fieldsV1": { "f:spec": {} } }],
                "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "x" },
            },
            "spec": { "version": "1.0.0", "run": {} },
        }))
        .unwrap();
        assert!(object.meta().managed_fields.is_none());
        assert_eq!(object.annotations().keys().collect::<Vec<_>>(), ["team"]);
    }

    #[test]
    fn a_good_object_is_itself() {
        let good = read(&json!({ "version": "1.0.0", "run": {} }));
        assert_eq!(good.0.unwrap().spec.version, "1.0.0");
    }
}

//! Objects as users write them, and how they get into the cluster.

use anyhow::{Context as _, Result};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, TypeMeta},
};
use serde_json::Value;

use crate::draft::SkillDraft;

/// Under this name the lane applies objects.
pub const FIELD_MANAGER: &str = "skillet-e2e";

/// Something that can be applied.
pub trait Manifest {
    fn objects(&self) -> Result<Vec<Value>>;
}

/// One or more YAML documents.
impl Manifest for str {
    fn objects(&self) -> Result<Vec<Value>> {
        serde_saphyr::from_multiple(self).context("not YAML")
    }
}

impl Manifest for SkillDraft {
    fn objects(&self) -> Result<Vec<Value>> {
        Ok(vec![self.object()])
    }
}

impl Manifest for Value {
    fn objects(&self) -> Result<Vec<Value>> {
        Ok(vec![self.clone()])
    }
}

/// Applies one object server-side, as `kubectl apply --server-side` does.
pub async fn apply(client: &Client, namespace: &str, object: Value) -> Result<DynamicObject> {
    let mut object: DynamicObject = serde_json::from_value(object).context("not a Kubernetes object")?;
    object.metadata.namespace = Some(namespace.to_owned());
    let types = object.types.clone().context("apiVersion and kind are missing")?;
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource(&types)?);
    let name = object.name_any();
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let applied = api.patch(&name, &params, &Patch::Apply(&object)).await;
    applied.with_context(|| format!("could not apply {} {namespace}/{name}", types.kind))
}

fn resource(types: &TypeMeta) -> Result<ApiResource> {
    let kind = GroupVersionKind::try_from(types).with_context(|| format!("no kind: {types:?}"))?;
    Ok(ApiResource::from_gvk(&kind))
}

/// Merges a change into a value as a merge patch does: null removes a field.
pub fn merge(into: &mut Value, change: &Value) {
    let (Value::Object(into), Value::Object(change)) = (&mut *into, change) else {
        *into = change.clone();
        return;
    };
    for (key, value) in change {
        if value.is_null() {
            into.remove(key);
        } else {
            merge(into.entry(key).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_merged_and_null_removes() {
        let mut value = json!({ "a": { "b": 1, "c": 2 }, "d": [1] });
        merge(&mut value, &json!({ "a": { "b": null, "e": {} }, "d": [2] }));
        assert_eq!(value, json!({ "a": { "c": 2, "e": {} }, "d": [2] }));
    }
}

//! The chart's own objects, rendered by helm: what is installed is what is tested.

use std::process::Command;

use kube::{
    Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::Value;

use crate::server::search_path;

/// Namespace of the release.
pub const NAMESPACE: &str = "skillet-system";
/// Namespace of the sandboxes.
pub const SANDBOXES: &str = "skillet-sandboxes";

/// The objects of one template, with values such as `sandbox.namespace=x`.
pub fn render(template: &str, values: &[&str]) -> Vec<Value> {
    let chart = std::env::current_dir().unwrap().join("../../charts/skillet");
    let mut helm = Command::new("helm");
    helm.env("PATH", search_path()).args(["template", "skillet"]).arg(chart);
    helm.args(["--namespace", NAMESPACE, "--kube-version", "1.36.0", "--show-only", template]);
    helm.args(["--set", "imageRegistry=skillet.dev"]);
    for value in values {
        helm.args(["--set-string", value]);
    }
    let rendered = helm.output().unwrap();
    assert!(rendered.status.success(), "helm template: {}", String::from_utf8_lossy(&rendered.stderr));
    let text = String::from_utf8(rendered.stdout).unwrap();
    let documents = text.split("\n---\n").map(|text| text.trim_start_matches("---\n"));
    documents
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .filter(|value: &Value| value.is_object())
        .collect()
}

/// Renders a template and applies its objects.
pub async fn apply(client: &Client, template: &str, values: &[&str]) {
    for object in render(template, values) {
        apply_object(client, object).await;
    }
}

/// Applies one object of any kind.
pub async fn apply_object(client: &Client, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let types = object.types.as_ref().unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types).unwrap());
    let api = match &object.metadata.namespace {
        Some(namespace) => kube::Api::namespaced_with(client.clone(), namespace, &kind),
        None => kube::Api::all_with(client.clone(), &kind),
    };
    let name = object.metadata.name.clone().unwrap();
    let params = PatchParams::apply("tests").force();
    let api: kube::Api<DynamicObject> = api;
    api.patch(&name, &params, &Patch::Apply(&object)).await.unwrap();
}

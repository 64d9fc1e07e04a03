//! Objects that today's definitions refuse, stored under an earlier and laxer definition.
//!
//! They are stored before the operator starts, and stay for all of its tests.

use std::env;

use futures::{StreamExt as _, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::Client;
use serde_json::{Value, json};

use crate::{
    chart::{SANDBOXES, apply_object},
    eventually::{LIMIT, eventually},
    requests::{create, keep},
    server::{apply_crds, namespace},
};

/// The namespace of the objects.
pub const NAMESPACE: &str = "unparsable";
/// The namespace of very many executions that do not parse.
pub const MANY_NAMESPACE: &str = "unparsable-many";
/// Their number, unless SKILLET_SWARM says otherwise.
const MANY: usize = 1_000;
const AT_ONCE: usize = 32;

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": kind, "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec })
}

fn skill(name: &str) -> Value {
    let spec = json!({ "version": "1.0.0", "limits": { "retries": "many" }, "run": { "sandbox": { "runtime": "shell", "script": "cat" } } });
    object("Skill", name, &spec)
}

/// Skills, a version and an execution that do not parse, and a sandbox that belongs to no execution.
pub async fn objects(client: Client) {
    namespace(&client, NAMESPACE).await;
    let mut version = object(
        "SkillVersion",
        "good-0.9.0",
        &json!({ "skill": "good", "version": "0.9.0", "digest": "0".repeat(64), "run": { "sandbox": { "files": 5 } } }),
    );
    version["metadata"]["labels"] = json!({ "skillet.dev/skill": "good" });
    let execution = object("SkillExecution", "bad-execution", &json!({ "skill": "good", "timeout": 10 }));
    namespace(&client, MANY_NAMESPACE).await;
    let many = env::var("SKILLET_SWARM").ok().and_then(|text| text.parse().ok()).unwrap_or(MANY);
    let many = (0..many).map(|number| {
        let mut execution = execution.clone();
        execution["metadata"] = json!({ "name": format!("bad-{number}"), "namespace": MANY_NAMESPACE });
        execution
    });
    let many: Vec<Value> = many.collect();
    plant(&client, &[skill("bad-skill"), skill("mended-skill"), version, execution], &many).await;

    let container = json!({ "name": "sandbox", "image": "test/shell:1" });
    let orphan = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "orphan",
            "namespace": SANDBOXES,
            "labels": { "skillet.dev/purpose": "run", "skillet.dev/execution-uid": "of-nobody" },
        },
        "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [container] } } },
    });
    apply_object(&client, orphan).await;
}

/// A policy that does not parse.
pub async fn policy(client: Client) {
    let policy = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillPolicy", "metadata": { "name": "default" }, "spec": { "startTimeout": 60 } });
    plant(&client, &[policy], &[]).await;
}

/// Stores objects under definitions that accept anything, and restores the strict ones. `many` are of kinds that are among
/// the objects.
async fn plant(client: &Client, objects: &[Value], many: &[Value]) {
    let strict = skillet_api::custom_resource_definitions();
    apply_crds(client, strict.iter().map(lax).collect()).await;
    for object in objects {
        eventually("the lax definition is in force", LIMIT, async || {
            create(client, object).await.is_accepted().then_some(())
        })
        .await;
        keep(client, object).await;
    }
    let keep = |object| async move { drop(keep(client, object).await) };
    stream::iter(many).for_each_concurrent(AT_ONCE, keep).await;
    apply_crds(client, strict).await;
    for object in objects {
        let mut other = object.clone();
        // The rules check a version's name, so any other name will do.
        other["metadata"]["name"] = json!("default");
        eventually("the strict definition is in force", LIMIT, async || {
            (!create(client, &other).await.is_accepted()).then_some(())
        })
        .await;
    }
}

fn lax(crd: &CustomResourceDefinition) -> CustomResourceDefinition {
    let mut crd = crd.clone();
    let schema = crd.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
    schema.x_kubernetes_validations = None;
    let anything = JSONSchemaProps {
        type_: Some("object".into()),
        x_kubernetes_preserve_unknown_fields: Some(true),
        ..JSONSchemaProps::default()
    };
    schema.properties.as_mut().unwrap().insert("spec".into(), anything);
    // A selectable field must be in the schema.
    crd.spec.versions[0].selectable_fields = None;
    crd
}

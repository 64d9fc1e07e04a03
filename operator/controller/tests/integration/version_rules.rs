//! The API server's rules for a SkillVersion, which never changes once it is sealed.

use kube::CustomResourceExt as _;
use serde_json::{Value, json};
use skillet_api::{SkillPolicySpec, SkillVersion, SkillVersionSpec};
use skillet_core::skill::validate_content;

use crate::{
    cases::{Case, assert_complete, breaks, long, with},
    content_cases::content_cases,
    requests::{apply, create, keep, patch},
    server::{namespace, rules_admin},
};

const NAME_RULE: &str = "metadata.name must be <spec.skill>-<spec.version>";
const IMMUTABLE: &str = "a SkillVersion is immutable; raise spec.version of the Skill instead";

fn shortest() -> String {
    format!(
        "{{skill: a, version: 1.0.0, digest: '{}', run: {{sandbox: {{runtime: shell, script: cat}}}}}}",
        "0".repeat(64)
    )
}

fn cases() -> Vec<Case> {
    let mut cases = vec![
        breaks("spec.skill required", "skill: null"),
        breaks("spec.skill minLength", "skill: ''"),
        breaks("spec.skill maxLength", format!("skill: {}", long(64))),
        breaks("spec.version required", "version: null"),
        breaks("spec.version minLength", "version: '1.0'"),
        breaks("spec.version maxLength", format!("version: 1.0.{}", "1".repeat(29))),
        breaks("spec.digest required", "digest: null"),
        breaks("spec.digest minLength", format!("digest: {}", long(63))),
        breaks(
            "spec rule: a SkillVersion has the text itself: write it into spec.instructions.body",
            "instructions: {bodyFrom: {configMapKeyRef: {name: m, key: k}}}",
        ),
        breaks("spec.digest maxLength", format!("digest: {}", long(65))),
    ];
    cases.extend(content_cases());
    cases
}

fn object(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillVersion", "metadata": { "name": name, "namespace": "default" }, "spec": spec })
}

#[test]
fn every_bound_of_a_version_has_a_case_that_breaks_it() {
    let elsewhere = [format!("metadata rule: {NAME_RULE}"), format!("spec rule: {IMMUTABLE}")];
    assert_complete(&SkillVersion::crd(), &cases(), &elsewhere.each_ref().map(String::as_str));
}

#[tokio::test]
async fn the_api_server_refuses_each_broken_bound_of_a_version_and_names_the_field() {
    let Some(client) = rules_admin().await else { return };
    for case in cases() {
        let spec = case.spec(&shortest());
        let part = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
        let name = format!("{}-{}", part("skill"), part("version"));
        create(&client, &object(&name, &spec)).await.assert_refused(&case);
    }
}

#[test]
fn the_operator_refuses_whatever_content_the_api_server_refuses() {
    let accepted = |case: &Case| {
        let spec = serde_json::from_value::<SkillVersionSpec>(case.spec(&shortest()));
        spec.is_ok_and(|spec| validate_content(&spec, &SkillPolicySpec::default()).is_ok())
    };
    let missed: Vec<&str> =
        content_cases().iter().filter(|case| accepted(case)).map(|case| case.breaks).collect();
    assert!(missed.is_empty(), "not refused: {missed:#?}");
}

#[tokio::test]
async fn a_version_has_the_name_of_its_skill_and_number() {
    let Some(client) = rules_admin().await else { return };
    let spec = with(&shortest(), "{}");
    create(&client, &object("a-1.0.0", &spec)).await.assert_accepted("the name of skill and number");
    for name in ["a", "a-1.0.1", "b-1.0.0", "a-1.0.0-x"] {
        create(&client, &object(name, &spec)).await.assert_names("", NAME_RULE);
    }
}

#[tokio::test]
async fn nothing_in_a_sealed_version_can_be_changed() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "sealed").await;
    let mut sealed = object("a-1.0.0", &with(&shortest(), "limits: {retries: 1}"));
    sealed["metadata"]["namespace"] = at.into();
    let kept = keep(&client, &sealed).await;
    for change in [
        json!({ "description": "other" }),
        json!({ "digest": "1".repeat(64) }),
        json!({ "tool": { "inputSchema": {} } }),
        json!({ "limits": { "retries": 2 } }),
        json!({ "limits": { "retries": null } }),
        json!({ "limits": null }),
        json!({ "run": { "sandbox": { "script": "tac" } } }),
        json!({ "run": { "sandbox": { "args": ["x"] } } }),
    ] {
        patch(&client, &kept, &json!({ "spec": change })).await.assert_names("spec", IMMUTABLE);
    }
    let labels = json!({ "metadata": { "labels": { "x": "y" } } });
    patch(&client, &kept, &labels).await.assert_accepted("a label, which is no content");
    apply(&client, "again", &sealed).await.assert_accepted("the same again");
}

/// CEL does not see into fields of any form, so the rule alone could miss them.
#[tokio::test]
async fn the_schemas_of_a_sealed_version_cannot_be_changed() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "sealed-schemas").await;
    let mut sealed = object("a-1.0.0", &with(&shortest(), "tool: {inputSchema: {type: object, x: {y: 1}}}"));
    sealed["metadata"]["namespace"] = at.into();
    let kept = keep(&client, &sealed).await;
    for schema in [
        json!({ "type": "string" }),
        json!({ "x": { "y": 2 } }),
        json!({ "x": { "y": null } }),
        json!({ "z": 1 }),
    ] {
        let change = json!({ "spec": { "tool": { "inputSchema": schema } } });
        patch(&client, &kept, &change).await.assert_names("spec", IMMUTABLE);
    }
}

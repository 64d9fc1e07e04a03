//! An object that does not parse: its event and the log name object and field, and other objects are unaffected.

use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::json;
use skillet_api::SkillVersion;

use crate::{
    chart::SANDBOXES,
    eventually::{LIMIT, eventually},
    legacy_objects::{self, MANY_NAMESPACE, NAMESPACE},
    objects::{condition, ended, event, execute, reason, sealed_skill, skill_status},
    operator::{Operator, log_lines, operator},
    server::is_wanted,
};

fn kind(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("skillet.dev", "v1alpha1", kind))
}

#[tokio::test]
async fn a_skill_that_does_not_parse_is_named_with_its_field_in_event_and_log() {
    let Some(operator) = operator() else { return };
    let client = operator.admin().await;
    let note = event(&client, NAMESPACE, "bad-skill", "ParseFailed").await;
    assert!(note.contains("spec.limits.retries"), "{note}");
    let lines = log_lines(&["ParseFailed", NAMESPACE, "\"bad-skill\"", "spec.limits.retries"]);
    // The tests of SkillSource change the SkillPolicy once, and then the operator looks at every Skill again.
    assert!((1..=2).contains(&lines.len()), "{lines:#?}");
}

#[tokio::test]
async fn an_execution_that_does_not_parse_is_named_with_its_field_in_event_and_log() {
    let Some(operator) = operator() else { return };
    let client = operator.admin().await;
    let note = event(&client, NAMESPACE, "bad-execution", "ParseFailed").await;
    assert!(note.contains("spec.timeout"), "{note}");
    let lines = log_lines(&["ParseFailed", NAMESPACE, "\"bad-execution\"", "spec.timeout"]);
    assert_eq!(lines.len(), 1, "{:#?}", log_lines(&["ParseFailed"]));
}

#[tokio::test]
async fn very_many_executions_that_do_not_parse_are_all_reported() {
    let Some(operator) = operator() else { return };
    let client = operator.admin().await;
    let api: Api<DynamicObject> = Api::namespaced_with(client, MANY_NAMESPACE, &kind("SkillExecution"));
    let count = api.list(&ListParams::default()).await.unwrap().items.len();
    // The API server takes no status of them: their content is of other types than the definition's.
    eventually("each is reported", 5 * LIMIT, async || {
        (log_lines(&["ParseFailed", MANY_NAMESPACE]).len() == count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn skills_and_executions_beside_those_that_do_not_parse_are_unaffected() {
    let Some(operator) = operator() else { return };
    let client = operator.admin().await;
    sealed_skill(&client, NAMESPACE, "neighbour", "tool: {inputSchema: {type: string}}").await;
    execute(&client, NAMESPACE, "neighbour", "skill: neighbour").await;
    let status = ended(&client, NAMESPACE, "neighbour").await;
    assert_eq!(reason(&status), "InputInvalid");
}

#[tokio::test]
async fn a_version_that_does_not_parse_leaves_the_others_of_its_skill_in_use() {
    let Some(operator) = operator() else { return };
    let client = operator.admin().await;
    sealed_skill(&client, NAMESPACE, "good", "tool: {inputSchema: {type: string}}").await;
    let sealed = Api::<SkillVersion>::namespaced(client.clone(), NAMESPACE).get("good-1.0.0").await.unwrap();
    assert_eq!(sealed.spec.version, "1.0.0");
    // The operator checks a refusal against the API server, which also returns the unparsable version.
    execute(&client, NAMESPACE, "good", "{skill: good, version: ^3.0.0}").await;
    let status = ended(&client, NAMESPACE, "good").await;
    assert_eq!(reason(&status), "VersionNotFound");
}

#[tokio::test]
async fn an_execution_of_a_skill_that_does_not_parse_ends() {
    let Some(operator) = operator() else { return };
    let client = operator.admin().await;
    execute(&client, NAMESPACE, "of-bad-skill", "skill: bad-skill").await;
    let status = ended(&client, NAMESPACE, "of-bad-skill").await;
    let message = status.message.clone().unwrap_or_default();
    assert_eq!(reason(&status), "SkillNotReady", "{message}");
    assert!(message.contains("spec.limits.retries"), "{message}");
}

#[tokio::test]
async fn a_skill_that_is_corrected_is_sealed() {
    let Some(operator) = operator() else { return };
    let client = operator.admin().await;
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &kind("Skill"));
    let mended = json!({ "spec": { "limits": { "retries": 1 } } });
    api.patch("mended-skill", &PatchParams::default(), &Patch::Merge(&mended)).await.unwrap();
    let status = skill_status(&client, NAMESPACE, "mended-skill", |_| true).await;
    assert_eq!(condition(&status, "Sealed").0, "True");
}

#[tokio::test]
async fn orphaned_sandboxes_are_removed_although_other_objects_do_not_parse() {
    let Some(operator) = operator() else { return };
    let client = operator.admin().await;
    let jobs: Api<Job> = Api::namespaced(client, SANDBOXES);
    // The sweep at the start finds it; the next is a minute later.
    eventually("the orphan is gone", LIMIT, async || {
        jobs.get_opt("orphan").await.unwrap().is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_unparsable_policy_is_named_with_its_field_and_nothing_runs() {
    if !is_wanted() {
        return;
    }
    let operator = tokio::task::spawn_blocking(|| Operator::start(legacy_objects::policy)).await.unwrap();
    let (client, at) = operator.namespace("under-bad-policy").await;
    let note = event(&client, "default", "default", "ParseFailed").await;
    assert!(note.contains("spec.startTimeout"), "{note}");
    let lines = log_lines(&["ParseFailed", "SkillPolicy", "spec.startTimeout"]);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    sealed_skill(&client, &at, "a", "tool: {inputSchema: {type: string}}").await;
    execute(&client, &at, "e", "skill: a").await;
    let refused = ended(&client, &at, "e").await;
    assert_eq!(reason(&refused), "ExecutionDisabled", "it may say that execution is off");
}

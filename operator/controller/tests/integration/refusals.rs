//! Executions that end before a sandbox is made: phase, reason, message, event and metric say the same.

use k8s_openapi::api::batch::v1::Job;
use kube::{Api, ResourceExt as _, api::ListParams};
use skillet_api::Phase;

use crate::{
    chart::SANDBOXES,
    objects::{apply_skill, ended, event, execute, reason, sealed_skill, skill_status},
    operator::operator,
};

/// Name, what the Skill says, what the execution says, reason, part of the message.
const REFUSED: [(&str, &str, &str, &str, &str); 10] = [
    ("switched-off", "mode: 'off'", "", "SkillOff", "spec.mode: off"),
    ("disabled", "enabled: false", "", "SkillDisabled", "spec.enabled: false"),
    (
        "version",
        "{}",
        ", version: ^2.0.0",
        "VersionNotFound",
        "no version of Skill version fits ^2.0.0; there is 1.0.0",
    ),
    ("constraint", "{}", ", version: newest", "ConstraintInvalid", "spec.version"),
    (
        "input",
        "tool: {inputSchema: {type: object, properties: {list: {items: {type: integer}}}}}",
        ", input: {list: [1, x]}",
        "InputInvalid",
        "/list/1",
    ),
    ("default-input", "tool: {inputSchema: {type: object, required: [text]}}", "", "InputInvalid", "text"),
    (
        "secret",
        "run: {sandbox: {runtime: shell, script: cat, secretEnv: [{name: A, secret: none, key: k}]}}",
        "",
        "SecretMissing",
        "Secret none",
    ),
    ("schema", "tool: {inputSchema: {type: nonsense}}", "", "SkillNotReady", "inputSchema"),
    (
        "image",
        "run: {sandbox: {image: x.example/y:1, command: [cat]}}",
        "",
        "ImageNotAllowed",
        "does not allow x.example/y:1",
    ),
    (
        "limit",
        "limits: {timeout: 9h}",
        "",
        "LimitTooHigh",
        "spec.limits.timeout: 9h is above the maximum of 15m",
    ),
];

#[tokio::test]
async fn what_is_refused_says_why_and_makes_no_sandbox() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("refusals").await;
    for (skill, skill_spec, execution, why, part) in REFUSED {
        apply_skill(&client, &at, skill, skill_spec).await;
        skill_status(&client, &at, skill, |_| true).await;
        let name = &format!("{skill}-run");
        let uid = execute(&client, &at, name, &format!("{{skill: {skill}{execution}}}")).await.uid().unwrap();
        let status = ended(&client, &at, name).await;
        let message = status.message.clone().unwrap_or_default();
        assert_eq!((status.phase, reason(&status)), (Phase::Failed, why), "{name}: {message}");
        assert!(message.contains(part), "{name}: {message}");
        assert_eq!((status.job, status.started_at, status.attempts), (None, None, 0), "{name}");
        assert!(status.finished_at.is_some(), "{name}");
        for condition in &status.conditions {
            let wanted = if condition.type_ == "Succeeded" { "False" } else { "True" };
            assert_eq!((condition.status.as_str(), condition.reason.as_str()), (wanted, why), "{name}");
        }
        assert_eq!(event(&client, &at, name, why).await, message, "{name}");
        let counted = format!("skillet_executions_total{{phase=\"Failed\",reason=\"{why}\"}}");
        assert!(operator.metrics().contains(&counted), "{counted}");
        let jobs: Api<Job> = Api::namespaced(client.clone(), SANDBOXES);
        let of_execution = ListParams::default().labels(&format!("skillet.dev/execution-uid={uid}"));
        assert_eq!(jobs.list(&of_execution).await.unwrap().items.len(), 0, "{name}");
    }
    operator.assert_nothing_was_forbidden();
}

#[tokio::test]
async fn a_skill_of_another_namespace_is_not_found() {
    let Some(operator) = operator() else { return };
    let (client, theirs) = operator.namespace("refusals-theirs").await;
    sealed_skill(&client, &theirs, "a", "{}").await;
    let (client, ours) = operator.namespace("refusals-ours").await;
    execute(&client, &ours, "e", "skill: a").await;
    let status = ended(&client, &ours, "e").await;
    assert_eq!(reason(&status), "SkillNotFound");
    assert_eq!(status.message.as_deref(), Some("this namespace has no Skill a"));
}

#[tokio::test]
async fn an_execution_that_is_cancelled_from_the_start_makes_no_sandbox() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("refusals-cancelled").await;
    sealed_skill(&client, &at, "a", "{}").await;
    execute(&client, &at, "e", "{skill: a, cancel: true}").await;
    let status = ended(&client, &at, "e").await;
    assert_eq!((status.phase, status.job), (Phase::Cancelled, None));
}

/// The Skill is created a moment before the execution, and the two are watched apart.
#[tokio::test]
async fn an_execution_made_right_after_its_skill_waits_for_it_to_be_sealed() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("refusals-at-once").await;
    for number in 0..10 {
        let name = format!("a{number}");
        apply_skill(&client, &at, &name, "tool: {inputSchema: {type: string}}").await;
        execute(&client, &at, &name, &format!("skill: {name}")).await;
        let status = ended(&client, &at, &name).await;
        // The schema decides, which takes a sealed version.
        assert_eq!(reason(&status), "InputInvalid", "{:?}", status.message);
    }
}

/// A switch that was thrown before the execution was created counts, however late the watch tells of it.
#[tokio::test]
async fn an_execution_made_right_after_a_skill_was_switched_on_is_not_refused() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("refusals-switch").await;
    for number in 0..20 {
        let name = format!("e{number}");
        let spec = |enabled: bool| format!("{{enabled: {enabled}, tool: {{inputSchema: {{type: string}}}}}}");
        sealed_skill(&client, &at, "a", &spec(false)).await;
        apply_skill(&client, &at, "a", &spec(true)).await;
        execute(&client, &at, &name, "skill: a").await;
        let status = ended(&client, &at, &name).await;
        assert_eq!(reason(&status), "InputInvalid", "{number}: {:?}", status.message);
    }
}

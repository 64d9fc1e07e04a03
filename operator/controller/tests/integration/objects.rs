//! Skills and executions as the tests write them, and what can be waited for in them.

use k8s_openapi::api::events::v1::Event;
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use skillet_api::{Skill, SkillExecution, SkillExecutionStatus, SkillStatus};

use crate::{
    cases::yaml,
    eventually::{LIMIT, eventually},
};

/// Applies a Skill that has `spec`, in YAML, beside a program that no test runs.
pub async fn apply_skill(client: &Client, at: &str, name: &str, spec: &str) -> Skill {
    let mut whole = yaml("{version: 1.0.0, run: {sandbox: {runtime: shell, script: cat}}}");
    whole.as_object_mut().unwrap().extend(yaml(spec).as_object().unwrap().clone());
    let skill = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": { "name": name }, "spec": whole });
    let api: Api<Skill> = Api::namespaced(client.clone(), at);
    api.patch(name, &PatchParams::apply("tests").force(), &Patch::Apply(&skill)).await.unwrap()
}

/// Waits until the operator has said of the Skill as it is now what `wanted` says.
pub async fn skill_status(
    client: &Client,
    at: &str,
    name: &str,
    wanted: impl Fn(&SkillStatus) -> bool,
) -> SkillStatus {
    let api: Api<Skill> = Api::namespaced(client.clone(), at);
    eventually(format!("the status of Skill {at}/{name}"), LIMIT, async || {
        let skill = api.get(name).await.unwrap();
        let status = skill.status.filter(|status| status.observed_generation == skill.metadata.generation)?;
        wanted(&status).then_some(status)
    })
    .await
}

/// Status, reason and message of a condition.
pub fn condition<'a>(status: &'a SkillStatus, type_: &str) -> (&'a str, &'a str, &'a str) {
    let found = status.conditions.iter().find(|condition| condition.type_ == type_).unwrap();
    (&found.status, &found.reason, &found.message)
}

/// Applies a Skill and waits until its present content is sealed.
pub async fn sealed_skill(client: &Client, at: &str, name: &str, spec: &str) -> SkillStatus {
    apply_skill(client, at, name, spec).await;
    skill_status(client, at, name, |status| condition(status, "Sealed").0 == "True").await
}

/// Creates an execution that has `spec`, in YAML.
pub async fn execute(client: &Client, at: &str, name: &str, spec: &str) -> SkillExecution {
    let execution = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution", "metadata": { "name": name }, "spec": yaml(spec) });
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), at);
    api.create(&PostParams::default(), &serde_json::from_value(execution).unwrap()).await.unwrap()
}

/// Asks for an execution to be cancelled.
pub async fn cancel(client: &Client, at: &str, name: &str) {
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), at);
    let change = json!({ "spec": { "cancel": true } });
    api.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
}

/// Waits until an execution has ended.
pub async fn ended(client: &Client, at: &str, name: &str) -> SkillExecutionStatus {
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), at);
    eventually(format!("the end of SkillExecution {at}/{name}"), LIMIT, async || {
        api.get(name).await.unwrap().status.filter(|status| status.phase.is_terminal())
    })
    .await
}

/// The one word of an execution that has ended.
pub fn reason(status: &SkillExecutionStatus) -> &'static str {
    status.reason.unwrap().as_str()
}

/// Waits for a warning about an object: its note.
pub async fn event(client: &Client, at: &str, name: &str, reason: &str) -> String {
    let api: Api<Event> = Api::namespaced(client.clone(), at);
    eventually(format!("an event {reason} about {at}/{name}"), LIMIT, async || {
        let events = api.list(&ListParams::default()).await.unwrap().items;
        let found = events.into_iter().find(|event| {
            let about = event.regarding.as_ref().and_then(|object| object.name.as_deref());
            about == Some(name) && event.reason.as_deref() == Some(reason)
        })?;
        assert_eq!(found.type_.as_deref(), Some("Warning"));
        assert_eq!(found.reporting_controller.as_deref(), Some("skillet.dev/operator"));
        found.note
    })
    .await
}

/// Writes the status of an object as its operator would have.
pub async fn set_status(client: &Client, at: &str, name: &str, status: Value) {
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), at);
    let change = json!({ "status": status });
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
}

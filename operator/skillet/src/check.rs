//! `skillet check`: runs one small skill like a user would, as a test of an installation.

use std::{pin::pin, time::Duration};

use anyhow::{Context as _, bail};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::json;
use skillet_api::{Phase, Skill, SkillExecution, SkillExecutionSpec};
use tokio::time::timeout;

use crate::config::CheckConfig;

/// Creates a skill, runs it and deletes it; fails unless the run succeeds.
pub(crate) async fn run(config: CheckConfig) -> anyhow::Result<()> {
    let CheckConfig { namespace, wait_seconds } = config;
    let client = Client::try_default().await.context("could not find a cluster")?;
    let skills: Api<Skill> = Api::namespaced(client.clone(), &namespace);
    let skill =
        skills.create(&PostParams::default(), &skill()?).await.context("could not create the Skill")?;
    let checked = execute(&client, &namespace, &skill.name_any(), Duration::from_secs(wait_seconds)).await;
    skills.delete(&skill.name_any(), &DeleteParams::default()).await.context("could not delete the Skill")?;
    checked
}

fn skill() -> anyhow::Result<Skill> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "skillet.dev/v1alpha1",
        "kind": "Skill",
        "metadata": { "generateName": "skillet-check-" },
        "spec": {
            "version": "1.0.0",
            "description": "Returns its input",
            "mode": "auto",
            "invocation": "manual",
            "run": { "sandbox": { "runtime": "shell", "script": "cat" } },
        },
    }))?)
}

async fn execute(client: &Client, namespace: &str, skill: &str, wait: Duration) -> anyhow::Result<()> {
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), namespace);
    let spec = SkillExecutionSpec {
        skill: skill.to_owned(),
        input: Some(json!({ "hello": "cluster" })),
        ..SkillExecutionSpec::default()
    };
    let mut execution = SkillExecution::new("", spec);
    execution.metadata.name = None;
    execution.metadata.generate_name = Some(format!("{skill}-"));
    let name = api
        .create(&PostParams::default(), &execution)
        .await
        .context("could not create the SkillExecution")?
        .name_any();
    let ended = |execution: Option<&SkillExecution>| {
        execution
            .and_then(|execution| execution.status.as_ref())
            .is_some_and(|status| status.phase.is_terminal())
    };
    let waited = pin!(await_condition(api.clone(), &name, ended));
    let found = timeout(wait, waited).await;
    let status = match found {
        Ok(found) => found?.and_then(|execution| execution.status).unwrap_or_default(),
        Err(_) => bail!(
            "SkillExecution {namespace}/{name} has not ended within {wait:?}; see kubectl describe ske {name}"
        ),
    };
    println!("{}", serde_json::to_string_pretty(&status)?);
    api.delete(&name, &DeleteParams::default()).await.context("could not delete the SkillExecution")?;
    if status.phase != Phase::Succeeded {
        bail!("the check ended as {:?}", status.phase);
    }
    if status.output != Some(json!({ "hello": "cluster" })) {
        bail!("the check returned another output than its input");
    }
    Ok(())
}

//! Many executions at once, and what became of them.

use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, PostParams},
};
use serde_json::json;
use skillet_api::{SkillExecution, SkillExecutionStatus};
use skillet_e2e::{Journey, eventually, execute};

const CREATED_WITHIN: Duration = Duration::from_secs(30);

/// One execution that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) uid: String,
    pub(crate) skill: String,
    /// Its place in the order in which the executions were made.
    pub(crate) number: u64,
    pub(crate) status: SkillExecutionStatus,
}

/// Makes `count` executions of `skill` in `namespace`, numbered in the order in which the API server takes them.
pub(crate) async fn start(journey: &Journey, namespace: &str, skill: &str, count: u64) -> Result<()> {
    let api: Api<SkillExecution> = Api::namespaced(journey.client.clone(), namespace);
    for number in 0..count {
        let mut spec = execute::spec(skill);
        spec.input = Some(json!({ "number": number }));
        let execution = SkillExecution::new(&format!("{skill}-{number:04}"), spec);
        // As a client would under load: asked again by name, it is there once.
        eventually("an execution is created", CREATED_WITHIN, async || {
            match api.create(&PostParams::default(), &execution).await {
                Ok(_) => Ok(Some(())),
                Err(kube::Error::Api(answer)) if answer.code == 409 => Ok(Some(())),
                Err(error) => Err(error.into()),
            }
        })
        .await?;
    }
    Ok(())
}

/// The executions of `namespace` when all `count` have ended, in the order in which they were made.
pub(crate) async fn all_ended(
    journey: &Journey,
    namespace: &str,
    count: usize,
    limit: Duration,
) -> Result<Vec<Done>> {
    let api: Api<SkillExecution> = Api::namespaced(journey.client.clone(), namespace);
    let what = format!("all {count} executions of {namespace} have ended");
    let ended = eventually(&what, limit, async || {
        let listed = api.list(&ListParams::default()).await?.items;
        let ended: Vec<SkillExecution> = listed.into_iter().filter(has_ended).collect();
        Ok((ended.len() == count).then_some(ended))
    })
    .await?;
    let mut done = ended.into_iter().map(done).collect::<Result<Vec<Done>>>()?;
    done.sort_by_key(|done| done.number);
    Ok(done)
}

fn has_ended(execution: &SkillExecution) -> bool {
    execution.status.as_ref().is_some_and(|status| status.phase.is_terminal())
}

fn done(execution: SkillExecution) -> Result<Done> {
    let number = execution.spec.input.as_ref().and_then(|input| input["number"].as_u64());
    Ok(Done {
        uid: execution.uid().context("no uid")?,
        skill: execution.spec.skill,
        number: number.context("no number")?,
        status: execution.status.context("no status")?,
    })
}

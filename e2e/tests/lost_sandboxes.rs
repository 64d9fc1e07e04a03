//! Sandboxes that vanish while a program runs in them: nobody can tell how it ended, and it is run again only when asked.

use anyhow::{Context as _, Result};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PropagationPolicy},
};
use serde_json::json;
use skillet_api::{Phase, Reason, SkillExecution, SkillExecutionSpec};
use skillet_e2e::{Ended, Journey, SkillDraft, execute::spec, journey, sandbox};

/// The object that somebody deletes.
#[derive(Clone, Copy)]
enum Victim {
    Job,
    Pod,
    /// Without a grace period: the programs inside get no signal to prepare.
    PodByForce,
}

async fn delete(j: &Journey, execution: &SkillExecution, victim: Victim) -> Result<()> {
    let status = j.running(execution).await?;
    let (job, pod) = (status.job.context("no job")?, status.pod.context("no pod")?);
    let (jobs, pods): (Api<Job>, Api<Pod>) = (sandbox::jobs(&j.client), sandbox::pods(&j.client));
    let whole =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
    match victim {
        Victim::Job => drop(jobs.delete(&job, &whole).await?),
        Victim::Pod => drop(pods.delete(&pod, &DeleteParams::default()).await?),
        Victim::PodByForce => drop(pods.delete(&pod, &DeleteParams::default().grace_period(0)).await?),
    }
    Ok(())
}

async fn lost(j: &Journey, victim: Victim) -> Result<Ended> {
    let execution = j.start("patient", json!({})).await?;
    delete(j, &execution, victim).await?;
    j.ended(&execution).await
}

#[tokio::test]
async fn a_sandbox_that_is_deleted_during_a_run_is_lost() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("patient", "sleep 60").limit("timeout", "50s")).await?;
        let (job, pod, forced) =
            tokio::try_join!(lost(j, Victim::Job), lost(j, Victim::Pod), lost(j, Victim::PodByForce))?;
        for ended in [job, pod, forced] {
            let ended = ended.is(Phase::Failed, Reason::SandboxLost);
            assert_eq!(ended.status.attempts, 1, "nothing is tried again unasked");
            j.event(&ended.name, Reason::SandboxLost).await?;
            j.nothing_left(&ended).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_lost_run_is_tried_again_where_that_was_asked_for() -> Result<()> {
    journey(async |j| {
        // Long enough to be lost, short enough to be waited for.
        j.apply(&SkillDraft::shell("steady", "sleep 4; cat").limit("retries", 1)).await?;
        let execution = j.start("steady", json!({ "n": 1 })).await?;
        delete(j, &execution, Victim::Pod).await?;
        let first = format!("run-{}-1", execution.uid().unwrap_or_default());
        let ended = j.ended(&execution).await?.is(Phase::Succeeded, Reason::Succeeded);
        assert_eq!(ended.status.attempts, 2);
        assert_ne!(ended.status.job.as_deref(), Some(first.as_str()), "in another sandbox");
        let shown = ["get", "ske", &ended.name, "-o", "jsonpath={.status.attempts} {.status.phase}"];
        assert_eq!(j.kubectl(&shown, "").await?, "2 Succeeded");
        j.nothing_left(&ended).await?;
        assert_eq!(ended.output(), json!({ "n": 1 }));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_execution_overrides_the_retries_of_its_skill() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("patient", "sleep 60").limit("retries", 2).limit("timeout", "50s"))
            .await?;
        let execution = j.start_with(SkillExecutionSpec { retries: Some(0), ..spec("patient") }).await?;
        delete(j, &execution, Victim::Pod).await?;
        let ended = j.ended(&execution).await?.is(Phase::Failed, Reason::SandboxLost);
        assert_eq!(ended.status.attempts, 1);
        let of = sandbox::of_execution(&ended.uid);
        let jobs = sandbox::jobs(&j.client).list(&ListParams { limit: Some(9), ..of }).await?;
        assert!(jobs.items.len() <= 1, "no second sandbox was made");
        Ok(())
    })
    .await
}

//! An operator that is killed while it releases a sandbox in which nothing ran: the run is not lost.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;
use skillet_api::{Phase, Reason, SkillExecution, SkillExecutionStatus};
use skillet_e2e::{Journey, SkillDraft, eventually, journey_under, operator, sandbox};

use crate::operator_downtime::{begin, job_of, plant};

const WITHIN: Duration = Duration::from_secs(60);

#[tokio::test]
async fn an_operator_killed_while_it_releases_an_unused_sandbox_loses_no_run() -> Result<()> {
    journey_under(json!({}), async |j| {
        j.apply(&SkillDraft::shell("steady", "sleep 3; cat")).await?;
        let first = begin(j, "steady").await?;
        let template = job_of(j, &first).await?;
        let (unused, released) = Box::pin(operator::away(&j.client, async || {
            // Its runner ends without a run, as that of an operator that was killed before it sent one.
            let unused = j.start("steady", json!({ "of": "unused" })).await?;
            plant(j, template, &unused, |pod| {
                pod.insert("activeDeadlineSeconds".into(), json!(1));
                Ok(())
            })
            .await?;
            wait_for_end(j, &unused).await?;
            // As an operator leaves it that is killed right after it has removed such a sandbox.
            let released = j.start("steady", json!({ "of": "released" })).await?;
            let job = format!("run-{}-1", released.uid().context("no uid")?);
            let status = json!({ "phase": "Pending", "reason": "Queued", "attempts": 0, "job": job });
            let patch = Patch::Merge(json!({ "status": status }));
            let api = j.api::<SkillExecution>();
            api.patch_status(&released.name_any(), &PatchParams::default(), &patch).await?;
            Ok((unused, released))
        }))
        .await?;
        eventually("the unused sandbox is recorded", WITHIN, async || {
            let status = status(j, &unused).await?;
            let is_first = status.job.as_deref().is_some_and(|job| job.ends_with("-1"));
            ensure!(!is_first || status.started_at.is_none(), "started, although nothing ran: {status:?}");
            Ok(status.job.is_some().then_some(()))
        })
        .await?;
        operator::delete(&j.client, &DeleteParams::default().grace_period(0)).await?;
        for (execution, of) in [(&unused, "unused"), (&released, "released")] {
            let ended = j.ended(execution).await?.is(Phase::Succeeded, Reason::Succeeded);
            ensure!(ended.status.attempts == 1, "{:?}", ended.status);
            ensure!(
                ended.status.job.as_deref().is_some_and(|job| !job.ends_with("-1")),
                "{:?}",
                ended.status
            );
            assert_eq!(ended.output(), json!({ "of": of }));
        }
        Ok(())
    })
    .await
}

async fn status(j: &Journey, execution: &SkillExecution) -> Result<SkillExecutionStatus> {
    let now = j.api::<SkillExecution>().get(&execution.name_any()).await?;
    Ok(now.status.unwrap_or_default())
}

async fn wait_for_end(j: &Journey, execution: &SkillExecution) -> Result<()> {
    let of = sandbox::of_execution(&execution.uid().context("no uid")?);
    let pods = sandbox::pods(&j.client);
    eventually("the planted sandbox has ended", WITHIN, async || {
        let pods = pods.list(&of).await?.items;
        let phase = |pod: &k8s_openapi::api::core::v1::Pod| pod.status.as_ref()?.phase.clone();
        Ok(pods.iter().any(|pod| matches!(phase(pod).as_deref(), Some("Failed" | "Succeeded"))).then_some(()))
    })
    .await
}

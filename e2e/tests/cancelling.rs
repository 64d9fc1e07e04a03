//! Cancelling, before a run and during one, within two seconds.

use std::time::Duration;

use anyhow::Result;
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;
use skillet_api::{Phase, Reason, SkillExecution};
use skillet_e2e::{Journey, SkillDraft, eventually, journey};

const WITHIN: Duration = Duration::from_secs(2);

async fn running(j: &Journey, skill: &str) -> Result<SkillExecution> {
    let execution = j.start(skill, json!({})).await?;
    let status = j.running(&execution).await?;
    assert!(status.pod.is_some() && status.job.is_some() && status.node.is_some(), "{status:?}");
    assert_eq!((status.attempts, status.resolved_version.as_deref()), (1, Some("1.0.0")));
    Ok(execution)
}

#[tokio::test]
async fn a_run_is_cancelled_within_two_seconds_whatever_it_ignores() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("patient", "echo begun; sleep 60").limit("cpu", "200m")).await?;
        j.apply(&SkillDraft::shell("deaf", "trap '' TERM; while :; do sleep 1; done").limit("cpu", "200m"))
            .await?;
        let cancelled = async |skill: &str| {
            let execution = running(j, skill).await?;
            let (ended, took) = j.cancel(&execution).await?;
            let ended = ended.is(Phase::Cancelled, Reason::Cancelled);
            assert!(took <= WITHIN, "{skill} took {took:?}");
            j.nothing_left(&ended).await?;
            anyhow::Ok(ended)
        };
        let (patient, _) = tokio::try_join!(cancelled("patient"), cancelled("deaf"))?;
        assert_eq!(patient.status.output, None);
        // The first generation was created, the second is the cancelled one.
        let observed: Vec<_> = patient.status.conditions.iter().map(|one| one.observed_generation).collect();
        assert_eq!(observed, [Some(2); 3]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_waits_for_a_place_is_cancelled_without_a_sandbox() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("single", "sleep 30").limit("concurrency", 1)).await?;
        let first = running(j, "single").await?;
        let second = j.start("single", json!({})).await?;
        let (ended, took) = j.cancel(&second).await?;
        let ended = ended.is(Phase::Cancelled, Reason::Cancelled);
        assert!(took <= WITHIN, "{took:?}");
        assert_eq!((ended.status.attempts, &ended.status.job), (0, &None));
        assert!(j.sandboxes(&ended.uid).await?.is_empty());
        j.cancel(&first).await?.0.is(Phase::Cancelled, Reason::Cancelled);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_waits_says_so_and_runs_when_there_is_room() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("single", "sleep 10; cat").limit("concurrency", 1)).await?;
        let first = running(j, "single").await?;
        let second = j.start("single", json!({"n": 2})).await?;
        let name = second.name_any();
        let limit = Duration::from_secs(10);
        let waiting = eventually("the second says that it waits", limit, async || {
            let status = j.api::<SkillExecution>().get(&name).await?.status.unwrap_or_default();
            Ok((status.reason == Some(Reason::Queued)).then_some(status))
        });
        assert_eq!(waiting.await?.phase, Phase::Pending);
        let (first, second) = tokio::try_join!(j.ended(&first), j.ended(&second))?;
        let (first_end, second_start) = (first.status.finished_at.clone(), second.status.started_at.clone());
        assert_eq!(second.output(), json!({"n": 2}));
        first.is(Phase::Succeeded, Reason::Succeeded);
        assert!(second_start.map(|at| at.0) > first_end.map(|at| at.0), "one at a time");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_execution_that_is_deleted_takes_its_sandbox_along() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("patient", "sleep 60")).await?;
        let execution = running(j, "patient").await?;
        let uid = execution.uid().unwrap_or_default();
        j.api::<SkillExecution>().delete(&execution.name_any(), &DeleteParams::default()).await?;
        eventually("its sandbox is gone", Duration::from_secs(20), async || {
            Ok(j.sandboxes(&uid).await?.is_empty().then_some(()))
        })
        .await
    })
    .await
}

#[tokio::test]
async fn nothing_but_cancel_can_be_changed_and_not_taken_back() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("patient", "sleep 30")).await?;
        let execution = running(j, "patient").await?;
        let api = j.api::<SkillExecution>();
        let name = execution.name_any();
        let patch = async |spec| {
            let patch = Patch::Merge(json!({ "spec": spec }));
            api.patch(&name, &PatchParams::default(), &patch).await.err().map(|error| error.to_string())
        };
        let refused = patch(json!({ "skill": "other" })).await.unwrap_or_default();
        assert!(refused.contains("immutable"), "{refused}");
        j.cancel(&execution).await?.0.is(Phase::Cancelled, Reason::Cancelled);
        let refused = patch(json!({ "cancel": false })).await.unwrap_or_default();
        assert!(refused.contains("cannot be taken back"), "{refused}");
        Ok(())
    })
    .await
}

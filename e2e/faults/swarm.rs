//! Very many executions: each gets its end, and another tenant's run is not held up.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use skillet_api::{Phase, Reason, SkillExecution, SkillExecutionSpec};
use skillet_e2e::{Journey, PATIENCE, SkillDraft, amount, eventually, execute, journey_under, operator};
use tokio::time::Instant;

use crate::{load::Neighbor, run_counter::RunCounter};

/// Executions, unless SKILLET_SWARM says otherwise.
const COUNT: usize = 200;
const AT_ONCE: usize = 64;
const ENDED: Duration = Duration::from_secs(300);
/// Another tenant's run may take this much longer than usual, times [`PATIENCE`].
const DELAY: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn executions_of_a_missing_skill_all_fail_and_hold_up_nobody() -> Result<()> {
    let count = amount("SKILLET_SWARM", COUNT);
    // All are counted at the end.
    let policy = json!({ "retention": { "perNamespace": 2 * count } });
    journey_under(policy, async move |j| {
        let neighbor = Neighbor::set_up(j).await?;
        let usual = neighbor.time_run().await?;
        let begun = Instant::now();
        create(j, count, "missing", json!({})).await?;
        println!("{count} executions were made in {:?}", begun.elapsed());
        is_in_time("beside them", &neighbor, usual).await?;
        let ended = all_ended(j, "missing", count).await?;
        let other = ended.iter().find_map(|execution| {
            let status = execution.status.as_ref()?;
            (status.reason != Some(Reason::SkillNotFound)).then_some(status)
        });
        ensure!(other.is_none(), "one ended otherwise: {other:?}");
        // The next leader finds all of them.
        operator::delete(&j.client, &DeleteParams::default().grace_period(0)).await?;
        is_in_time("after the leader was killed", &neighbor, usual).await?;
        neighbor.remove().await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_that_wait_hold_up_nobody_and_none_is_lost() -> Result<()> {
    let count = amount("SKILLET_SWARM", COUNT);
    let policy = json!({
        "concurrency": { "total": 4, "perNamespace": 4 }, "retention": { "perNamespace": 2 * count },
    });
    journey_under(policy, async move |j| {
        let neighbor = Neighbor::set_up(j).await?;
        let usual = neighbor.time_run().await?;
        j.apply(&SkillDraft::shell("echo", "cat")).await?;
        j.ready("echo").await?;
        let counter = RunCounter::open(&j.client, &j.namespace);
        create(j, count, "echo", json!({ "a": 1 })).await?;
        is_in_time("beside those that wait", &neighbor, usual).await?;
        cancel_all(j, count).await?;
        let ended = all_ended(j, "echo", count).await?;
        let mut succeeded = 0;
        for execution in &ended {
            let status = execution.status.as_ref().context("no status")?;
            ensure!([Phase::Succeeded, Phase::Cancelled].contains(&status.phase), "{status:?}");
            succeeded += usize::from(status.phase == Phase::Succeeded);
            ensure!(counter.runs(&execution.uid().unwrap_or_default()) <= 1, "one was run twice: {status:?}");
        }
        println!("{succeeded} of {count} succeeded, the others were cancelled");
        ensure!(succeeded > 0, "none has run");
        neighbor.remove().await
    })
    .await
}

async fn is_in_time(when: &str, neighbor: &Neighbor, usual: Duration) -> Result<()> {
    let time = neighbor.time_run().await?;
    println!("{when}, another tenant's run took {time:?}, usually {usual:?}");
    ensure!(
        time <= usual + DELAY * PATIENCE,
        "{when}, another tenant's run took {time:?}, usually {usual:?}"
    );
    Ok(())
}

fn name_of(skill: &str, number: usize) -> String {
    format!("{skill}-{number:05}")
}

async fn create(j: &Journey, count: usize, skill: &str, input: serde_json::Value) -> Result<()> {
    let api = j.api::<SkillExecution>();
    let spec = SkillExecutionSpec { input: Some(input), ..execute::spec(skill) };
    let created = stream::iter(0..count).map(|number| {
        let (api, execution) = (api.clone(), SkillExecution::new(&name_of(skill, number), spec.clone()));
        async move { api.create(&PostParams::default(), &execution).await.map(drop) }
    });
    Ok(created.buffer_unordered(AT_ONCE).try_collect::<()>().await?)
}

async fn cancel_all(j: &Journey, count: usize) -> Result<()> {
    let api = j.api::<SkillExecution>();
    let cancelled = stream::iter(0..count).map(|number| {
        let (api, cancel) = (api.clone(), Patch::Merge(json!({ "spec": { "cancel": true } })));
        async move { api.patch(&name_of("echo", number), &PatchParams::default(), &cancel).await.map(drop) }
    });
    Ok(cancelled.buffer_unordered(AT_ONCE).try_collect::<()>().await?)
}

/// Returns all executions of a skill once each has its end.
async fn all_ended(j: &Journey, skill: &str, count: usize) -> Result<Vec<SkillExecution>> {
    let of_skill = ListParams::default().fields(&format!("spec.skill={skill}"));
    let api = j.api::<SkillExecution>();
    let ended = eventually("every execution has ended", ENDED, async || {
        let all = api.list(&of_skill).await?.items;
        let is_ended = |execution: &SkillExecution| {
            execution.status.as_ref().is_some_and(|status| status.phase.is_terminal())
        };
        let left = all.iter().filter(|execution| !is_ended(execution)).count();
        ensure!(left == 0, "{left} have not");
        Ok(Some(all))
    })
    .await?;
    ensure!(ended.len() == count, "{} of {count} are there", ended.len());
    Ok(ended)
}

//! Very many executions that cannot run: each gets its end, and another tenant's run is not held up.

use std::{env, time::Duration};

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ListParams, PostParams};
use serde_json::json;
use skillet_api::{Reason, SkillExecution};
use skillet_e2e::{Journey, eventually, execute, journey_under};
use tokio::time::Instant;

use crate::load::Neighbor;

/// Executions, unless SKILLET_SWARM says otherwise.
const COUNT: usize = 1_000;
const AT_ONCE: usize = 64;
const ENDED: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread")]
async fn executions_of_a_missing_skill_all_fail_and_hold_up_nobody() -> Result<()> {
    let count = env::var("SKILLET_SWARM").ok().and_then(|text| text.parse().ok()).unwrap_or(COUNT);
    // All are counted at the end.
    let policy = json!({ "retention": { "perNamespace": 2 * count } });
    journey_under(policy, async move |j| {
        let neighbor = Neighbor::set_up(j).await?;
        let usual = neighbor.time_run().await?;
        let api = j.api::<SkillExecution>();
        let created = stream::iter(0..count).map(|number| {
            let (api, name) = (api.clone(), format!("missing-{number:05}"));
            async move {
                let execution = SkillExecution::new(&name, execute::spec("missing"));
                api.create(&PostParams::default(), &execution).await.map(drop)
            }
        });
        let begun = Instant::now();
        created.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        let beside = neighbor.time_run().await?;
        println!(
            "{count} executions were made in {:?}; another run took {:.1} times its usual {usual:?}",
            begun.elapsed(),
            beside.as_secs_f64() / usual.as_secs_f64()
        );
        all_are_refused(j, count).await?;
        neighbor.remove().await
    })
    .await
}

async fn all_are_refused(j: &Journey, count: usize) -> Result<()> {
    let missing = ListParams::default().fields("spec.skill=missing");
    let api = j.api::<SkillExecution>();
    let ended = eventually("every execution has ended", ENDED, async || {
        let all = api.list(&missing).await?.items;
        let is_ended = |execution: &SkillExecution| {
            execution.status.as_ref().is_some_and(|status| status.phase.is_terminal())
        };
        let left = all.iter().filter(|execution| !is_ended(execution)).count();
        ensure!(left == 0, "{left} have not");
        Ok(Some(all))
    })
    .await?;
    ensure!(ended.len() == count, "{} of {count} are there", ended.len());
    let other = ended.iter().find_map(|execution| {
        let status = execution.status.as_ref()?;
        (status.reason != Some(Reason::SkillNotFound)).then_some(status)
    });
    ensure!(other.is_none(), "one ended otherwise: {other:?}");
    Ok(())
}

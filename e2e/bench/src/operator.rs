//! The operator that leads: the time of a take-over after its crash, and its memory under hostile objects.

use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use kube::{Api, Client, api::PostParams};
use serde_json::json;
use skillet_api::{SkillExecution, SkillExecutionSpec};
use skillet_e2e::{Journey, hostile, operator, process};

use crate::{
    cluster::{client, ready_skill, until, within},
    figure::Figure,
    samples::Samples,
};

const NAMESPACE: &str = "skillet-bench-operator";
const SKILL: &str = "quick";
const SECONDS: u64 = 120;
/// The goals: seconds, and MB.
const TAKEOVER: f64 = 5.0;
const PEAK: f64 = 300.0;

/// The start of a run that is created right after the leader was killed, since the kill.
pub(crate) async fn takeover(kills: usize) -> anyhow::Result<Vec<Figure>> {
    within(&client().await?, NAMESPACE, async |client| {
        ready_skill(client, NAMESPACE, SKILL, &json!({ "runtime": "shell", "script": "cat" })).await?;
        let mut samples = Samples::default();
        for number in 0..kills {
            samples.add(take_over(client, number).await?);
        }
        let median = samples.median();
        println!("{kills} leaders were killed: the next run's program started after {median:?} (median)");
        Ok(vec![Figure::lower("takeover_s", median.as_secs_f64(), TAKEOVER, "s", kills)])
    })
    .await
}

async fn take_over(client: &Client, number: usize) -> anyhow::Result<Duration> {
    let killed = operator::leader(client).await?;
    until("two operators are ready", SECONDS, async || operator::are_ready(client).await).await?;
    process::kill(killed.pid)?;
    let at = Timestamp::now();
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), NAMESPACE);
    let spec = SkillExecutionSpec { skill: SKILL.to_owned(), ..SkillExecutionSpec::default() };
    let name = format!("after-{number}");
    api.create(&PostParams::default(), &SkillExecution::new(&name, spec)).await?;
    let mut started = None;
    until("the next run has ended", SECONDS, async || {
        let status = api.get(&name).await?.status.unwrap_or_default();
        started = status.started_at.map(|at| at.0);
        Ok(status.phase.is_terminal())
    })
    .await?;
    let started = started.context("the run has no start")?;
    Ok(Duration::try_from(started.duration_since(at)).unwrap_or_default())
}

/// Most memory of the operator while one tenant has hostile objects made.
pub(crate) async fn hostile_peak() -> anyhow::Result<Vec<Figure>> {
    within(&client().await?, NAMESPACE, async |client| {
        let journey =
            Journey { client: client.clone(), namespace: NAMESPACE.to_owned(), name: "bench".to_owned() };
        journey.apply(&hostile::count()).await?;
        journey.ready("count").await?;
        let mut peak = 0;
        for (what, act) in hostile::CASES {
            let leader = operator::leader(client).await?;
            process::reset_peak(leader.pid)?;
            act(&journey).await.context(what)?;
            let of_case = process::peak_megabytes(leader.pid).context(what)?;
            println!("{what}: the operator took {of_case} MB at most");
            peak = peak.max(of_case);
        }
        // A number of megabytes is small.
        #[allow(clippy::cast_precision_loss)]
        Ok(vec![Figure::lower("hostile_peak_mb", peak as f64, PEAK, "MB", hostile::CASES.len())])
    })
    .await
}

//! Processes that stop without an end and come back: the operator that leads, the API server, the kubelet. Every program
//! ran at most once, and no result is lost.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt as _;
use serde_json::json;
use skillet_api::{Phase, Reason};
use skillet_e2e::{
    Journey, SkillDraft, amount, eventually, journey_under,
    operator::{self, Leader},
    process::{Frozen, of_node},
};
use tokio::time::sleep;

use crate::{
    kills::random_millis,
    load::{self, Done},
    operator_downtime::begin,
    run_counter::RunCounter,
};

/// Rounds of the leader's test, unless SKILLET_ROUNDS says otherwise.
const ROUNDS: u64 = 1;
/// Rounds that pods serve for.
const ROUNDS_OF_PODS: u64 = 4;
const RUNS_PER_ROUND: u64 = 8;
/// Seconds for which the API server is silent, longer than a Lease, and the kubelet, unless SKILLET_SILENCE sets others.
const SILENCE: u64 = 10;
const KUBELET_SILENCE: u64 = 6;
/// The new leader must take over within this time. Then the old one returns after up to as long as a run takes.
const TAKEN_OVER: Duration = Duration::from_secs(60);
const ENDED: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_leader_that_returns_runs_nothing_twice() -> Result<()> {
    journey_under(json!({ "concurrency": { "total": 6, "perNamespace": 6 } }), async |j| {
        let rounds = amount("SKILLET_ROUNDS", ROUNDS);
        // Some end before the leader changes, some after it.
        let script = "number=$(jq .number); echo \"{\\\"number\\\": $number}\"; sleep $((number % 4))";
        j.apply(&SkillDraft::shell("steady", script)).await?;
        j.ready("steady").await?;
        let counter = RunCounter::open(&j.client, &j.namespace);
        for round in 0..rounds {
            freeze_leader(j, round).await.with_context(|| format!("round {round} of {rounds}"))?;
        }
        let total = usize::try_from(rounds * RUNS_PER_ROUND)?;
        let done = load::all_ended(j, &j.namespace, total, ENDED).await?;
        for Done { uid, number, status, .. } in &done {
            ensure!(status.reason == Some(Reason::Succeeded), "{number} ended otherwise: {status:?}");
            let runs = counter.runs(uid);
            ensure!(runs <= 1, "execution {number} was run {runs} times");
        }
        Ok(())
    })
    .await
}

/// Freezes the leader at a random point of some runs, until another leads and for a random time more.
async fn freeze_leader(j: &Journey, round: u64) -> Result<()> {
    let Leader { pod: name, pid } = operator::leader(&j.client).await?;
    load::start_from(j, "steady", round * RUNS_PER_ROUND, RUNS_PER_ROUND).await?;
    sleep(random_millis(1_500)).await;
    let frozen = Frozen::new(pid)?;
    eventually("another operator leads", TAKEN_OVER, async || {
        Ok(operator::pod(&j.client).await.ok().filter(|pod| pod.name_any() != name).map(drop))
    })
    .await?;
    sleep(random_millis(3_000)).await;
    drop(frozen);
    load::all_ended(j, &j.namespace, usize::try_from((round + 1) * RUNS_PER_ROUND)?, ENDED).await?;
    // The kubelet waits longer before each restart of a container, in the end for minutes. New pods begin anew.
    if (round + 1).is_multiple_of(ROUNDS_OF_PODS) {
        operator::away(&j.client, async || Ok(())).await
    } else {
        Ok(())
    }
}

/// Starts a run of `seconds`, freezes a part of the node in the middle of it, and expects the run's own end.
async fn outlive(j: &Journey, part: &str, silence: Duration) -> Result<()> {
    let seconds = silence.as_secs() / 2;
    let name = format!("outlive-{}-{}", part.replace("kube-", ""), silence.as_secs());
    j.apply(&SkillDraft::shell(&name, &format!("sleep {seconds}; cat"))).await?;
    j.ready(&name).await?;
    let counter = RunCounter::open(&j.client, &j.namespace);
    let begun = begin(j, &name).await?;
    let frozen = Frozen::new(of_node(part)?)?;
    // The program ends meanwhile.
    sleep(silence).await;
    drop(frozen);
    let ended = j.ended(begun.execution()).await?;
    ensure!(ended.status.attempts == 1, "{part} was silent for {silence:?}: {:?}", ended.status);
    ensure!(counter.runs(&ended.uid) <= 1, "it was run twice");
    assert_eq!(ended.output(), json!({ "of": name }));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_an_api_server_that_is_silent() -> Result<()> {
    let silence = Duration::from_secs(amount("SKILLET_SILENCE", SILENCE));
    journey_under(json!({}), async move |j| outlive(j, "kube-apiserver", silence).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_a_kubelet_that_is_silent() -> Result<()> {
    let silence = Duration::from_secs(amount("SKILLET_SILENCE", KUBELET_SILENCE));
    journey_under(json!({}), async move |j| outlive(j, "kubelet", silence).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_limit_holds_while_the_kubelet_is_silent() -> Result<()> {
    journey_under(json!({}), async |j| {
        j.apply(&SkillDraft::shell("late", "sleep 60").limit("timeout", "4s").limit("retries", 1)).await?;
        j.ready("late").await?;
        let begun = begin(j, "late").await?;
        let frozen = Frozen::new(of_node("kubelet")?)?;
        sleep(Duration::from_secs(6)).await;
        drop(frozen);
        let ended = j.ended(begun.execution()).await?.is(Phase::TimedOut, Reason::TimedOut);
        ensure!(
            ended.status.attempts == 1,
            "a time limit is no reason for another attempt: {:?}",
            ended.status
        );
        Ok(())
    })
    .await
}

//! The operator is killed at random points under load: nothing is lost, nothing is run twice.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt as _, api::DeleteParams};
use serde_json::json;
use skillet_api::Reason;
use skillet_e2e::{Journey, SkillDraft, eventually, journey_under, operator};
use tokio::time::{Instant, sleep_until};

use crate::{ledger::Ledger, load};

const KILLS: u32 = 30;
const EXECUTIONS: u64 = 150;
/// Short and long runs, so that kills meet every step of a run.
const SCRIPT: &str =
    r#"number=$(jq .number); echo "{\"number\": $number}"; [ $((number % 5)) -ne 0 ] || sleep 2"#;
const LIMIT: Duration = Duration::from_secs(300);
const BACK_WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn thirty_kills_under_load_lose_nothing_and_run_nothing_twice() -> Result<()> {
    // Under no other policy, but with nobody beside it.
    journey_under(json!({}), async |j| {
        j.apply(&SkillDraft::shell("count", SCRIPT).limit("concurrency", 12).object()).await?;
        j.ready("count").await?;
        let ledger = Ledger::open(&j.client, &j.namespace);
        load::start(j, &j.namespace, "count", EXECUTIONS).await?;
        for kill in 1..=KILLS {
            wait_some_time().await;
            kill_operator(j).await?;
            println!("kill {kill} of {KILLS}");
        }
        let done = load::all_ended(j, &j.namespace, usize::try_from(EXECUTIONS)?, LIMIT).await?;
        for one in &done {
            ensure!(
                one.status.reason == Some(Reason::Succeeded),
                "execution {}: {:?}",
                one.number,
                one.status
            );
            let output = one.status.output.as_ref().map(|output| &output["number"]);
            ensure!(
                output == Some(&one.number.into()),
                "execution {} has another's output: {output:?}",
                one.number
            );
        }
        for one in &done {
            // The pod's last state may be told a moment after the result is in.
            eventually("the receipt of every run is there", BACK_WITHIN, async || {
                Ok((ledger.runs(&one.uid) > 0).then_some(()))
            })
            .await?;
            let runs = ledger.runs(&one.uid);
            ensure!(runs == 1, "execution {} was run {runs} times", one.number);
        }
        Ok(())
    })
    .await
}

/// The points in time are random: between none and two seconds after the last kill.
async fn wait_some_time() {
    let millis = RandomState::new().hash_one(Instant::now()) % 2_000;
    sleep_until(Instant::now() + Duration::from_millis(millis)).await;
}

/// Without grace, as a crash: the pod is gone at once, and its process with it.
async fn kill_operator(journey: &Journey) -> Result<()> {
    let pod =
        eventually("an operator runs", BACK_WITHIN, async || Ok(operator::pod(&journey.client).await.ok()))
            .await?;
    let api: Api<Pod> = Api::namespaced(journey.client.clone(), &pod.namespace().unwrap_or_default());
    let params = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    api.delete(&pod.name_any(), &params).await?;
    Ok(())
}

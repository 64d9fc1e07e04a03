//! A rolling upgrade under a steady load of runs: no request fails, and no run is lost.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream::FuturesUnordered};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::json;
use skillet_e2e::{
    Journey, PATIENCE, SkillDraft,
    agent::{GatewayClient, Request, gateway_client::NAMESPACE},
    amount, eventually, journey_under,
};
use tokio::time::{Instant, interval};

use crate::fixture::{Fixture, of_text};

/// Runs a second, unless SKILLET_RATE says otherwise.
const RATE: f64 = 2.0;
/// Most runs at once. A machine that cannot keep up with the rate leaves some out, and says how many: else each would wait
/// for all before it.
const AT_ONCE: usize = 8;
const ENDED_WITHIN: Duration = Duration::from_secs(30);
const ROLLED_WITHIN: Duration = Duration::from_secs(240);
/// The slowest of a hundred requests takes at most this, times [`PATIENCE`].
const P99: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_upgrade_under_load_fails_no_request() -> Result<()> {
    journey_under(json!({}), async |j| {
        let echo = of_text(SkillDraft::shell("echo", "cat"), "Gives back what it was given.");
        let fixture = Fixture::set_up(j, &[echo]).await?;
        let rate = amount("SKILLET_RATE", RATE);
        let (mut sent, mut number, mut left_out) = (FuturesUnordered::new(), 0, 0);
        let mut times = Vec::new();
        let mut ticks = interval(Duration::from_secs_f64(1.0 / rate));
        let rolled = async {
            for deployment in ["skillet", "skillet-gateway"] {
                restart(j, deployment).await?;
            }
            anyhow::Ok(())
        };
        tokio::pin!(rolled);
        loop {
            tokio::select! {
                done = &mut rolled => break done?,
                Some(time) = sent.next(), if !sent.is_empty() => times.push(time?),
                _ = ticks.tick() => {
                    if sent.len() >= AT_ONCE {
                        left_out += 1;
                        continue;
                    }
                    number += 1;
                    sent.push(run(&fixture.gateway, &fixture.token, number));
                }
            }
        }
        times.extend(sent.try_collect::<Vec<Duration>>().await?);
        times.sort_unstable();
        let at = |part: usize| times.get((times.len() * part / 100).min(times.len() - 1)).copied();
        let (median, p99) = (at(50).unwrap_or_default(), at(99).unwrap_or_default());
        println!(
            "{} runs at {rate} a second during the upgrade, {left_out} left out: median {median:?}, p99 {p99:?}",
            times.len()
        );
        ensure!(p99 <= P99 * PATIENCE, "p99 is {p99:?}");
        Ok(())
    })
    .await
}

/// Runs the skill once, and returns the time until its end is known. A gateway that stops answers 202: the run continues,
/// and the client asks for its end.
async fn run(gateway: &GatewayClient, token: &str, number: usize) -> Result<Duration> {
    let (begun, input) = (Instant::now(), json!({ "text": format!("text {number}") }));
    let body = json!({ "skill": "echo", "input": input });
    let first = gateway.send(token, &Request::post("/api/skills/executions", body)).await?;
    ensure!([200, 202].contains(&first.status), "{} {}", first.status, first.text);
    let mut seen = first.json();
    if first.status == 202 {
        let path = format!("/api/skills/executions/{}", seen["name"].as_str().unwrap_or_default());
        seen = eventually("the run has ended", ENDED_WITHIN, async || {
            let now = gateway.send(token, &Request::get(&path)).await?;
            ensure!(now.status == 200, "{} {}", now.status, now.text);
            Ok(Some(now.json()).filter(|run| !run["finishedAt"].is_null()))
        })
        .await?;
    }
    ensure!(seen["output"] == input, "{seen}");
    Ok(begun.elapsed())
}

/// Replaces all pods of a Deployment, as an upgrade does, and waits until the new ones are ready.
async fn restart(j: &Journey, name: &str) -> Result<()> {
    j.kubectl(&["rollout", "restart", "--namespace", NAMESPACE, &format!("deployment/{name}")], "").await?;
    let api: Api<Deployment> = Api::namespaced(j.client.clone(), NAMESPACE);
    eventually(&format!("{name} is replaced"), ROLLED_WITHIN, async || {
        let deployment = api.get(name).await?;
        let wanted = deployment.spec.and_then(|spec| spec.replicas);
        let status = deployment.status.unwrap_or_default();
        let is_seen = status.observed_generation >= deployment.metadata.generation;
        let is_replaced =
            status.updated_replicas == wanted && status.ready_replicas == wanted && status.replicas == wanted;
        Ok((is_seen && is_replaced).then_some(()))
    })
    .await
}

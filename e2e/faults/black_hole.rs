//! Connections that lose every packet for a while, over programs that end meanwhile: each run has one attempt and its own
//! result.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use serde_json::json;
use skillet_e2e::{
    Journey, SkillDraft, amount, journey_under,
    network::BlackHole,
    operator::{self, Leader},
    process::of_node,
};
use tokio::time::sleep;

use crate::{operator_downtime::begin, run_counter::RunCounter};

/// Longer than a Lease, so another operator takes over. SKILLET_SILENCE sets other seconds.
const SILENCE: u64 = 10;
const KUBELET_SILENCE: u64 = 6;
const KUBELET_PORT: u16 = 10_250;

/// Starts a run that ends in the middle of the silence, and expects its own end.
async fn outlive(
    j: &Journey,
    name: &str,
    silence: Duration,
    cut: impl Fn() -> Result<BlackHole>,
) -> Result<()> {
    let program = SkillDraft::shell(name, &format!("sleep {}; cat", silence.as_secs() / 2));
    j.apply(&program.limit("timeout", format!("{}s", silence.as_secs()))).await?;
    j.ready(name).await?;
    let counter = RunCounter::open(&j.client, &j.namespace);
    let begun = begin(j, name).await?;
    let hole = cut()?;
    sleep(silence).await;
    drop(hole);
    let ended = j.ended(begun.execution()).await?;
    ensure!(ended.status.attempts == 1, "the silence lasted {silence:?}: {:?}", ended.status);
    ensure!(counter.runs(&ended.uid) <= 1, "it was run twice");
    assert_eq!(ended.output(), json!({ "of": name }));
    Ok(())
}

/// The address under which pods reach the API server.
async fn api_server(j: &Journey) -> Result<String> {
    let services: Api<Service> = Api::namespaced(j.client.clone(), "default");
    let spec = services.get("kubernetes").await?.spec.context("no spec")?;
    spec.cluster_ip.context("the API server has no address")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_a_leader_whose_packets_to_the_api_server_are_lost() -> Result<()> {
    journey_under(json!({}), async |j| {
        let api_server = api_server(j).await?;
        let silence = Duration::from_secs(amount("SKILLET_SILENCE", SILENCE));
        let Leader { pid, .. } = operator::leader(&j.client).await?;
        outlive(j, "cut-off", silence, || BlackHole::to_address(pid, &api_server)).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_a_kubelet_whose_packets_are_lost() -> Result<()> {
    journey_under(json!({}), async |j| {
        let kubelet = of_node("kubelet")?;
        let cut = || BlackHole::to_port(kubelet, KUBELET_PORT);
        let silence = Duration::from_secs(amount("SKILLET_SILENCE", KUBELET_SILENCE));
        outlive(j, "kubelet-cut-off", silence, cut).await
    })
    .await
}

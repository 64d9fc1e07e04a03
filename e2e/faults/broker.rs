//! The broker is silent, or has much to carry: programs learn of it, and neither the operator nor other runs do.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt as _, api::ListParams};
use serde_json::json;
use skillet_api::{Phase, Reason};
use skillet_e2e::{
    Journey, SkillDraft, amount, eventually, journey_under, operator, policy,
    process::{self, Frozen, MemoryLimit, peak_megabytes, reset_peak},
    stand_in::{ASK, StandIn},
};
use tokio::time::sleep;

use crate::load::Neighbor;

const NAMESPACE: &str = "skillet-system";

/// Longer than the operator waits for a broker's answer, shorter than the kubelet waits for its probes.
const SILENCE: Duration = Duration::from_secs(18);

/// Most resident memory of broker and operator, in MB.
const MOST: u64 = 200;

/// Megabytes of the download, unless SKILLET_DOWNLOAD_MB says otherwise.
const MEGABYTES: u64 = 300;

/// Time for the broker's next container.
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// Time until a broker whose limit is what it uses needs more.
const OUT_OF_MEMORY_WITHIN: Duration = Duration::from_secs(30);

/// Another run may take so much longer beside a download.
const LONGER: u32 = 8;

/// Asks once, later learns that there is no broker, and asks until there is one again.
const ASKS: &str = r#"
first = ask()
time.sleep(3)
began = time.monotonic()
try:
    refused = ask()
except LOST as error:
    refused = name_of(error)
seconds = time.monotonic() - began
print(json.dumps({"first": first, "refused": refused, "seconds": seconds, "again": ask_again()}))
"#;

/// Holds an answer that it does not read, and reads another of so many bytes.
const LOADS: &str = r#"
unread = get("/zeros/%d" % (1 << 40))
read, buffer, got = get("/zeros/%d" % task["bytes"]), bytearray(1 << 20), 0
while count := read.readinto(buffer):
    got += count
print(json.dumps({"got": got, "unread": unread.read(1)[0]}))
"#;

/// Asks on new connections until one is lost, and then until there is a broker again.
const PRESSES: &str = r#"
asked = 0
try:
    while ask("/zeros/200000") == 200:
        asked += 1
    lost = "status"
except LOST as error:
    lost = name_of(error)
print(json.dumps({"asked": asked, "lost": lost, "again": ask_again()}))
"#;

/// The pod of the one broker.
async fn broker_pod(j: &Journey) -> Result<Pod> {
    let pods: Api<Pod> = Api::namespaced(j.client.clone(), NAMESPACE);
    let found = pods.list(&ListParams::default().labels(operator::BROKER)).await?.items;
    found.into_iter().find(operator::is_ready).context("no broker is ready")
}

/// The process of the one broker.
async fn broker(j: &Journey) -> Result<u32> {
    process::of_pod("broker", &broker_pod(j).await?.name_any())
}

/// Returns how often the broker's container was started again, and why its last one ended.
fn restarts(pod: &Pod) -> Option<(i32, Option<&str>)> {
    let container = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    let ended = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    Some((container.restart_count, ended.and_then(|ended| ended.reason.as_deref())))
}

async fn apply(j: &Journey, host: &StandIn, name: &str, script: &str) -> Result<()> {
    let draft = SkillDraft::python(name, &format!("{ASK}{script}"))
        .spec("network", host.network())
        .limit("timeout", "120s");
    j.apply(&draft.object()).await?;
    j.ready(name).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_broker_holds_up_no_program_and_no_other_run() -> Result<()> {
    journey_under(json!({}), async |j| {
        let host = StandIn::allowed(j).await?;
        apply(j, &host, "asks", ASKS).await?;
        j.apply(&json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": { "name": "calls" },
            "spec": {
                "version": "1.0.0", "network": host.network(),
                "run": { "http": { "method": "POST", "url": host.url("/late") } },
            },
        }))
        .await?;
        j.ready("calls").await?;
        let neighbor = Neighbor::set_up(j).await?;
        let usual = neighbor.time_run().await?;
        let leader = operator::leader(&j.client).await?;

        let execution = j.start("asks", json!({ "to": [host.host, host.port] })).await?;
        host.answered(1, Duration::from_secs(20)).await?;
        let frozen = Frozen::new(broker(j).await?)?;
        let called = j.start("calls", json!({})).await?;
        let beside = neighbor.time_run().await?;
        sleep(SILENCE).await;
        let called = j.ended(&called).await?;
        drop(frozen);

        println!("beside a frozen broker, another run took {beside:?}, usually {usual:?}");
        called.is(Phase::Failed, Reason::BrokerUnavailable);
        let output = j.ended(&execution).await?.output();
        assert_eq!((&output["first"], &output["refused"]), (&json!(200), &json!("ENETUNREACH")), "{output}");
        ensure!(
            output["seconds"].as_f64().is_some_and(|seconds| seconds < SILENCE.as_secs_f64()),
            "{output}"
        );
        assert_eq!(output["again"], 200, "{output}");
        ensure!(beside < usual * LONGER, "another run took {beside:?}, usually {usual:?}");
        ensure!(operator::leader(&j.client).await? == leader, "the operator was replaced");
        neighbor.remove().await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_out_of_memory_ends_connections_and_no_run() -> Result<()> {
    journey_under(json!({}), async |j| {
        let host = StandIn::allowed(j).await?;
        apply(j, &host, "presses", PRESSES).await?;
        let neighbor = Neighbor::set_up(j).await?;
        let leader = operator::leader(&j.client).await?;
        let before = restarts(&broker_pod(j).await?).map_or(0, |(times, _)| times);
        let limit = MemoryLimit::of(broker(j).await?)?;

        let execution = j.start("presses", json!({ "to": [host.host, host.port] })).await?;
        host.answered(3, Duration::from_secs(20)).await?;
        eventually("the kernel ends the broker", OUT_OF_MEMORY_WITHIN, async || {
            // While it has memory that it can do without, its limit follows what it uses.
            Ok((!limit.follow_usage()?).then_some(()))
        })
        .await?;
        neighbor.time_run().await?;
        let output = j.ended(&execution).await?.output();

        assert_eq!(output["again"], 200, "{output}");
        ensure!(output["asked"].as_u64() >= Some(2) && output["lost"] != "status", "{output}");
        eventually("the broker is back after it was out of memory", BACK_WITHIN, async || {
            let pod = broker_pod(j).await?;
            Ok((restarts(&pod) == Some((before + 1, Some("OOMKilled")))).then_some(()))
        })
        .await?;
        ensure!(operator::leader(&j.client).await? == leader, "the operator was replaced");
        println!("{} connections, then a broker out of memory: {}", output["asked"], output["lost"]);
        // The kubelet waits longer before each restart of a container. A new pod begins anew.
        operator::kill_pods(&j.client, operator::BROKER).await?;
        eventually("a new broker is ready", BACK_WITHIN, async || Ok(broker_pod(j).await.ok())).await?;
        neighbor.remove().await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_download_beside_a_slow_reader_takes_bounded_memory() -> Result<()> {
    journey_under(json!({}), async |j| {
        let host = StandIn::start(j, "standin").await?;
        let megabytes = amount("SKILLET_DOWNLOAD_MB", MEGABYTES);
        let bytes = megabytes * 1_000_000;
        let mut spec = host.policy();
        spec["network"]["transferMiB"] = json!(megabytes + 1000);
        policy::change(&j.client, spec).await?;
        apply(j, &host, "loads", LOADS).await?;
        let neighbor = Neighbor::set_up(j).await?;
        let usual = neighbor.time_run().await?;
        let (broker, leader) = (broker(j).await?, operator::leader(&j.client).await?);
        for pid in [broker, leader.pid] {
            reset_peak(pid)?;
        }
        let input = json!({ "to": [host.host, host.port], "bytes": bytes });
        let execution = j.start("loads", input).await?;
        host.answered(2, Duration::from_secs(20)).await?;
        let beside = neighbor.time_run().await?;
        let ended = j.ended(&execution).await?;
        assert_eq!(ended.output(), json!({ "got": bytes, "unread": 0 }));
        let [of_broker, of_operator] = [peak_megabytes(broker)?, peak_megabytes(leader.pid)?];
        println!(
            "{megabytes} MB beside a slow reader: the broker took {of_broker} MB at most, the operator {of_operator} MB; \
             another run took {:.1} times its usual time",
            beside.as_secs_f64() / usual.as_secs_f64()
        );
        ensure!(of_broker <= MOST && of_operator <= MOST, "the broker took {of_broker} MB, the operator {of_operator} MB");
        ensure!(beside < usual * LONGER, "another run took {beside:?}, usually {usual:?}");
        neighbor.remove().await
    })
    .await
}

//! The broker is silent, or has much to carry: programs learn of it, and neither the operator nor other runs do.

use std::{env, time::Duration};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt as _, api::ListParams};
use serde_json::json;
use skillet_api::{Phase, Reason};
use skillet_e2e::{
    Journey, SkillDraft, journey_under, operator, policy,
    process::{self, Frozen, peak_megabytes, reset_peak},
    stand_in::StandIn,
};
use tokio::time::sleep;

use crate::load::Neighbor;

const NAMESPACE: &str = "skillet-system";

/// Longer than the operator waits for a broker's answer, shorter than the kubelet waits for its probes.
const SILENCE: Duration = Duration::from_secs(18);

/// Most resident memory of broker and operator, in MB.
const MOST: u64 = 200;

/// Megabytes of the download, unless SKILLET_DOWNLOAD_MB says otherwise.
const MEGABYTES: u64 = 1000;

/// Another run may take so much longer beside a download.
const LONGER: u32 = 8;

/// Asks once, later learns that there is no broker, and asks until there is one again.
const ASKS: &str = r#"
import errno, json, socket, sys, time
host, port = json.load(sys.stdin)["to"]
def ask():
    with socket.create_connection((host, port), timeout=60) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (host.encode(), port))
        return s.recv(64)[:12].decode()
first = ask()
time.sleep(3)
began = time.monotonic()
try:
    refused = ask()
except OSError as error:
    refused = errno.errorcode.get(error.errno, type(error).__name__)
seconds = time.monotonic() - began
again = None
for _ in range(120):
    try:
        again = ask()
        break
    except OSError:
        time.sleep(0.5)
print(json.dumps({"first": first, "refused": refused, "seconds": seconds, "again": again}))
"#;

/// Holds an answer that it does not read, and reads another of so many bytes.
const LOADS: &str = r#"
import http.client, json, sys
task = json.load(sys.stdin)
def get(length):
    connection = http.client.HTTPConnection(*task["to"], timeout=60)
    connection.request("GET", "/zeros/%d" % length)
    return connection.getresponse()
unread = get(1 << 40)
read, buffer, got = get(task["bytes"]), bytearray(1 << 20), 0
while count := read.readinto(buffer):
    got += count
print(json.dumps({"got": got, "unread": unread.read(1)[0]}))
"#;

/// The process of the one broker.
async fn broker(j: &Journey) -> Result<u32> {
    let pods: Api<Pod> = Api::namespaced(j.client.clone(), NAMESPACE);
    let found = pods.list(&ListParams::default().labels(operator::BROKER)).await?.items;
    let pod = found.into_iter().find(operator::is_ready).context("no broker is ready")?;
    process::of_pod("broker", &pod.name_any())
}

async fn apply(j: &Journey, host: &StandIn, name: &str, script: &str) -> Result<()> {
    let draft = SkillDraft::python(name, script).spec("network", host.network()).limit("timeout", "120s");
    j.apply(&draft.object()).await?;
    j.ready(name).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_broker_holds_up_no_program_and_no_other_run() -> Result<()> {
    journey_under(json!({}), async |j| {
        let host = StandIn::start(j, "standin").await?;
        policy::change(&j.client, host.policy()).await?;
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
        assert_eq!(
            (&output["first"], &output["refused"]),
            (&json!("HTTP/1.1 200"), &json!("ENETUNREACH")),
            "{output}"
        );
        ensure!(
            output["seconds"].as_f64().is_some_and(|seconds| seconds < SILENCE.as_secs_f64()),
            "{output}"
        );
        assert_eq!(output["again"], "HTTP/1.1 200", "{output}");
        ensure!(beside < usual * LONGER, "another run took {beside:?}, usually {usual:?}");
        ensure!(operator::leader(&j.client).await? == leader, "the operator was replaced");
        neighbor.remove().await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_download_beside_a_slow_reader_takes_bounded_memory() -> Result<()> {
    journey_under(json!({}), async |j| {
        let host = StandIn::start(j, "standin").await?;
        let given = env::var("SKILLET_DOWNLOAD_MB").ok().and_then(|text| text.parse().ok());
        let megabytes: u64 = given.unwrap_or(MEGABYTES);
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

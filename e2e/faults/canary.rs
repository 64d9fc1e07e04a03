//! Sandboxes that fill their memory beside a pod of somebody else: it lives.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt as _, api::PostParams};
use serde_json::json;
use skillet_e2e::{Journey, SkillDraft, eventually, journey_under, sandbox};

const SANDBOXES: usize = 8;
const CANARY: &str = "canary";
const WITHIN: Duration = Duration::from_secs(60);
/// Fills nine tenths of its limit, and holds that for some seconds.
const FILL: &str = "import json, sys, time\nheld = bytearray(460 << 20)\nheld[::4096] = b'x' * len(held[::4096])\n\
    time.sleep(5)\nprint(json.dumps({'held': len(held) >> 20}))\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_beside_sandboxes_that_fill_their_memory_lives() -> Result<()> {
    journey_under(json!({ "concurrency": { "total": 12, "perNamespace": 10 } }), async |j| {
        j.apply(&SkillDraft::python("fill", FILL).limit("memory", "512Mi").limit("timeout", "60s")).await?;
        j.ready("fill").await?;
        let executions = try_join_all((0..SANDBOXES).map(|_| j.start("fill", json!({})))).await?;
        let image = reserves_its_limit(j).await?;
        start_canary(j, &image).await?;
        for execution in &executions {
            assert_eq!(j.ended(execution).await?.output(), json!({ "held": 460 }));
        }
        let status = j.api::<Pod>().get(CANARY).await?.status.context("no status")?;
        let restarts: i32 = status.container_statuses.iter().flatten().map(|it| it.restart_count).sum();
        ensure!(status.phase.as_deref() == Some("Running") && restarts == 0, "the canary died: {status:?}");
        Ok(())
    })
    .await
}

/// A sandbox requests all the memory that it may use, so that nodes are not promised twice. Returns its image.
async fn reserves_its_limit(j: &Journey) -> Result<String> {
    let pods = sandbox::pods(&j.client);
    let of = kube::api::ListParams::default().labels("skillet.dev/skill=fill");
    let pod =
        eventually("a sandbox is there", WITHIN, async || Ok(pods.list(&of).await?.items.pop())).await?;
    let spec = pod.spec.as_ref().context("no spec")?;
    let container = spec.containers.first().context("no container")?;
    let resources = container.resources.clone().unwrap_or_default();
    let memory = |of: Option<std::collections::BTreeMap<_, _>>| of.unwrap_or_default().get("memory").cloned();
    let (requested, limit) = (memory(resources.requests), memory(resources.limits));
    ensure!(limit.is_some() && requested == limit, "{}: {requested:?} of {limit:?}", pod.name_any());
    container.image.clone().context("no image")
}

async fn start_canary(j: &Journey, image: &str) -> Result<()> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": CANARY },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": CANARY, "image": image, "imagePullPolicy": "IfNotPresent",
                "command": ["/usr/bin/python3", "-c", "import time; time.sleep(600)"],
                "resources": { "requests": { "memory": "32Mi" } },
            }],
        },
    }))?;
    let api = j.api::<Pod>();
    api.create(&PostParams::default(), &pod).await?;
    eventually("the canary runs", WITHIN, async || {
        let status = api.get(CANARY).await?.status.unwrap_or_default();
        Ok((status.phase.as_deref() == Some("Running")).then_some(()))
    })
    .await
}

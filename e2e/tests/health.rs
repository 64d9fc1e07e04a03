//! Health of the objects in GitOps tools: by kstatus, which Flux reads, and in Argo CD with the health script of the chart.
//!
//! `e2e/health/build.sh` makes the program that both run in; it is looked for on the PATH.

use std::{collections::BTreeMap, process::Stdio, time::Duration};

use anyhow::{Context as _, Result, ensure};
use kube::{
    ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::json;
use skillet_api::ApiKey;
use skillet_e2e::{Journey, SkillDraft, eventually, journey, package_folder};
use tokio::{io::AsyncWriteExt as _, process::Command};

const SCRIPT: &str = "../charts/skillet/files/argocd-health.lua";
/// The gateway looks at its keys once a minute.
const KEY_REPORTED_WITHIN: Duration = Duration::from_secs(90);

/// Kstatus and Argo CD's health by kind and name.
async fn health(j: &Journey) -> Result<BTreeMap<String, String>> {
    let kinds = "skills,skillversions,skillexecutions,apikeys,skillpolicies";
    let list = j.kubectl(&["get", kinds, "-o", "json"], "").await?;
    let mut program = Command::new("gitops-health")
        .arg(package_folder().join(SCRIPT))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("could not start gitops-health; e2e/health/build.sh makes it")?;
    program.stdin.take().context("no standard input")?.write_all(list.as_bytes()).await?;
    let output = program.wait_with_output().await?;
    ensure!(output.status.success(), "gitops-health: {:?}", output.status);
    let line = |line: &str| {
        let mut words = line.splitn(3, ' ');
        Some((format!("{} {}", words.next()?, words.next()?), words.next()?.to_owned()))
    };
    Ok(String::from_utf8(output.stdout)?.lines().filter_map(line).collect())
}

async fn expired_key(j: &Journey) -> Result<()> {
    j.kubectl(&["skill", "key", "create", "expired"], "").await?;
    let ends = Patch::Merge(json!({ "spec": { "expiresAt": "2020-01-01T00:00:00Z" } }));
    j.api::<ApiKey>().patch("expired", &PatchParams::default(), &ends).await?;
    Ok(())
}

#[tokio::test]
async fn flux_and_argo_cd_read_every_object_rightly() -> Result<()> {
    journey(async |j| {
        expired_key(j).await?;
        j.apply(&SkillDraft::shell("good", "cat")).await?;
        j.apply(&SkillDraft::shell("failing", "exit 3")).await?;
        j.apply(&SkillDraft::shell("patient", "sleep 60")).await?;
        j.apply(&SkillDraft::shell("bad", "cat").input_schema(json!({ "type": "strnig" }))).await?;
        j.observed("bad").await?;
        let succeeded = j.run("good", json!({})).await?.name;
        let failed = j.run("failing", json!({})).await?.name;
        let running = j.start("patient", json!({})).await?;
        j.running(&running).await?;
        let name = running.name_any();
        let expected = [
            ("Skill good".to_owned(), "Current Healthy"),
            ("Skill bad".to_owned(), "Failed Degraded"),
            ("SkillVersion good-1.0.0".to_owned(), "Current Healthy"),
            (format!("SkillExecution {succeeded}"), "Current Healthy"),
            (format!("SkillExecution {failed}"), "Failed Degraded"),
            (format!("SkillExecution {name}"), "InProgress Progressing"),
            ("SkillPolicy default".to_owned(), "Current Healthy"),
        ];
        let seen = health(j).await?;
        for (object, health) in expected {
            ensure!(
                seen.get(&object).is_some_and(|seen| seen == health),
                "{object}: not {health} in {seen:#?}"
            );
        }
        j.cancel(&running).await?;
        eventually("the key is reported", KEY_REPORTED_WITHIN, async || {
            let seen = health(j).await?;
            Ok(seen.get("ApiKey expired").is_some_and(|seen| seen == "Failed Degraded").then_some(()))
        })
        .await
    })
    .await
}

//! A change to a Skill is in force for the next request within 100 ms of the API server's acknowledgement.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use skillet_api::Skill;
use skillet_e2e::{agent::Ask, journey_under};
use tokio::time::Instant;

use crate::stage::{Stage, word_count};

const IN_FORCE_WITHIN: Duration = Duration::from_millis(100);
/// Then it is given up; the failure tells that it took longer.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_skill_is_offered_otherwise_in_the_next_request() -> Result<()> {
    journey_under(json!({}), async |j| {
        let stage = Stage::set(j, &[word_count()]).await?;
        let api = j.api::<Skill>();
        let changed = async |spec: Value| {
            let patch = Patch::Merge(json!({ "spec": spec }));
            api.patch("word-count", &PatchParams::default(), &patch).await.context("could not change")?;
            anyhow::Ok(Instant::now())
        };
        for (spec, is_offered) in [
            (json!({ "mode": "off" }), false),
            (json!({ "mode": "auto" }), true),
            (json!({ "enabled": false }), false),
            (json!({ "enabled": true }), true),
            (json!({ "version": "1.1.0" }), true),
            (json!({ "invocation": "manual" }), false),
            (json!({ "invocation": "auto", "mode": "on" }), true),
        ] {
            let acknowledged = changed(spec.clone()).await?;
            let version = spec["version"].as_str();
            is_in_force(&stage, acknowledged, (is_offered, version))
                .await
                .with_context(|| spec.to_string())?;
        }
        api.delete("word-count", &DeleteParams::default()).await?;
        is_in_force(&stage, Instant::now(), (false, None)).await.context("deleted")
    })
    .await
}

/// Requests one after the other without a pause. What counts is when the first one that sees the change was sent.
async fn is_in_force(stage: &Stage<'_>, acknowledged: Instant, wanted: (bool, Option<&str>)) -> Result<()> {
    let (is_offered, version) = wanted;
    loop {
        let sent = acknowledged.elapsed();
        let offered = offered(stage).await?;
        let is_right = version.is_none_or(|version| offered["version"] == version);
        if offered.is_object() == is_offered && is_right {
            ensure!(sent <= IN_FORCE_WITHIN, "in force only for a request sent {sent:?} later");
            return Ok(());
        }
        ensure!(sent < GIVEN_UP_AFTER, "not in force after {sent:?}");
    }
}

async fn offered(stage: &Stage<'_>) -> Result<Value> {
    let request = json!({ "model": "m", "messages": [{ "role": "user", "content": "word-count this" }] });
    let answer =
        stage.ask(&Ask::post("/v1/inject", json!({ "dialect": "openai-chat", "request": request }))).await?;
    ensure!(answer.status == 200, "{answer:?}");
    Ok(answer.json()["offered"]["word-count"].clone())
}

//! A change to a Skill is in force for the next request within 100 ms of the API server's acknowledgement.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use skillet_api::Skill;
use skillet_e2e::{SkillDraft, agent::Request, journey_under};
use tokio::time::Instant;

use crate::fixture::{Fixture, of_text, word_count};

const IN_FORCE_WITHIN: Duration = Duration::from_millis(100);
/// On a machine that does other work, too, one of so many times is quick.
const TIMES: u32 = 10;
const DELETED: [&str; 3] = ["first", "second", "third"];
/// The limit of a wait; a failure says that it took longer.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_skill_is_offered_otherwise_in_the_next_request() -> Result<()> {
    journey_under(json!({}), async |j| {
        let deleted =
            DELETED.map(|name| of_text(SkillDraft::shell(name, "cat"), "Is deleted.").spec("mode", "on"));
        let skills: Vec<SkillDraft> = [word_count()].into_iter().chain(deleted).collect();
        let fixture = Fixture::set_up(j, &skills).await?;
        let api = j.api::<Skill>();
        let changed = async |spec: Value| {
            let patch = Patch::Merge(json!({ "spec": spec }));
            api.patch("word-count", &PatchParams::default(), &patch).await.context("could not change")?;
            anyhow::Ok(Instant::now())
        };
        let mut quickest: Vec<(Value, Duration)> = Vec::new();
        for time in 1..=TIMES {
            let delays = every_change(time, async |spec, is_offered| {
                let acknowledged = changed(spec.clone()).await?;
                let wanted = (is_offered, spec["version"].as_str());
                in_force_after(&fixture, "word-count", acknowledged, wanted)
                    .await
                    .with_context(|| spec.to_string())
            })
            .await?;
            for (index, (spec, delay)) in delays.into_iter().enumerate() {
                match quickest.get_mut(index) {
                    Some(best) if best.1 <= delay => {}
                    Some(best) => *best = (spec, delay),
                    None => quickest.push((spec, delay)),
                }
            }
            if quickest.iter().all(|(_, delay)| *delay <= IN_FORCE_WITHIN) {
                break;
            }
        }
        let slow: Vec<_> = quickest.iter().filter(|(_, delay)| *delay > IN_FORCE_WITHIN).collect();
        ensure!(slow.is_empty(), "in force only for a request sent later: {slow:?}");
        let mut delays = Vec::new();
        for name in DELETED {
            api.delete(name, &DeleteParams::default()).await?;
            delays.push(
                in_force_after(&fixture, name, Instant::now(), (false, None)).await.context("deleted")?,
            );
        }
        let is_quick = delays.iter().any(|delay| *delay <= IN_FORCE_WITHIN);
        ensure!(is_quick, "deleted, in force only for a request sent later: {delays:?}");
        Ok(())
    })
    .await
}

/// Every kind of change, one after the other, and after how long each was in force. Whether the skill is offered then.
async fn every_change(
    time: u32,
    mut make: impl AsyncFnMut(&Value, bool) -> Result<Duration>,
) -> Result<Vec<(Value, Duration)>> {
    let mut delays = Vec::new();
    for (spec, is_offered) in [
        (json!({ "mode": "off" }), false),
        (json!({ "mode": "auto" }), true),
        (json!({ "enabled": false }), false),
        (json!({ "enabled": true }), true),
        (json!({ "version": format!("1.{time}.0") }), true),
        (json!({ "invocation": "manual" }), false),
        (json!({ "invocation": "auto", "mode": "on" }), true),
    ] {
        let delay = make(&spec, is_offered).await?;
        delays.push((spec, delay));
    }
    Ok(delays)
}

/// Requests one after the other without a pause. What counts is when the first one that sees the change was sent.
async fn in_force_after(
    fixture: &Fixture<'_>,
    skill: &str,
    acknowledged: Instant,
    wanted: (bool, Option<&str>),
) -> Result<Duration> {
    let (is_offered, version) = wanted;
    loop {
        let sent = acknowledged.elapsed();
        let offered = offered(fixture, skill).await?;
        let is_right = version.is_none_or(|version| offered["version"] == version);
        if offered.is_object() == is_offered && is_right {
            return Ok(sent);
        }
        ensure!(sent < ATTEMPT_LIMIT, "not in force after {sent:?}");
    }
}

async fn offered(fixture: &Fixture<'_>, skill: &str) -> Result<Value> {
    let request = json!({ "model": "m", "messages": [{ "role": "user", "content": "word-count this" }] });
    let response = fixture
        .send(&Request::post("/v1/inject", json!({ "dialect": "openai-chat", "request": request })))
        .await?;
    ensure!(response.status == 200, "{response:?}");
    Ok(response.json()["offered"][skill].clone())
}

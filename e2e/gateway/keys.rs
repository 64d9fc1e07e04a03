//! API keys, as a person makes and deletes them with kubectl.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use skillet_e2e::{agent::Request, eventually, journey_under};

use crate::fixture::{Fixture, word_count};

const IN_FORCE_WITHIN: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_what_its_service_account_may_until_it_is_deleted() -> Result<()> {
    journey_under(json!({}), async |j| {
        let fixture = Fixture::set_up(j, &[word_count()]).await?;
        let made = j.kubectl(&["skill", "key", "create", "ci", "--service-account", "agent"], "").await?;
        let key = made.trim();
        ensure!(key.starts_with("skillet_") && !key.contains(char::is_whitespace), "printed {made:?}");
        let list = Request::get("/api/skills");
        let responses = async |status: u16| {
            eventually(&format!("the key is answered {status}"), IN_FORCE_WITHIN, async || {
                Ok((fixture.gateway.send(key, &list).await?.status == status).then_some(()))
            })
            .await
        };
        responses(200).await?;
        let run = json!({ "skill": "word-count", "input": { "text": "by a key" } });
        let ran = fixture.gateway.send(key, &Request::post("/api/skills/executions", run)).await?;
        ensure!(ran.json()["output"]["words"] == 3, "{ran:?}");
        // The cluster holds nothing from which it could be made again.
        let held = j.kubectl(&["get", "secrets,apikeys", "--output", "json"], "").await?;
        ensure!(!held.contains(key.trim_start_matches("skillet_")), "the key is in an object");
        let listed = j.kubectl(&["skill", "key", "list"], "").await?;
        ensure!(listed.contains("ci") && !listed.contains(key), "{listed}");
        j.kubectl(&["skill", "key", "delete", "ci"], "").await?;
        responses(401).await
    })
    .await
}

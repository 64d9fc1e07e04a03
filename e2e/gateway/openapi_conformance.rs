//! The REST interface does what its own document says, whatever is sent to it.

use std::{env, fs};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use skillet_e2e::{
    SkillDraft,
    agent::{Request, tenant},
    journey_under,
};

use crate::fixture::{Fixture, of_text};

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_of_the_rest_interface_is_a_documented_one() -> Result<()> {
    journey_under(json!({}), async |j| {
        let skill = of_text(SkillDraft::shell("tried-out", "cat"), "Gives back what it was given.");
        let fixture = Fixture::set_up(j, &[skill]).await?;
        let run = Request::post(
            "/api/skills/executions",
            json!({ "skill": "tried-out", "input": { "text": "documented" } }),
        );
        let ran = fixture.send(&run).await?;
        ensure!(ran.status == 200, "{ran:?}");
        let id = ran.json()["name"].as_str().context("no name")?.to_owned();
        // Else every switch would be refused before it is looked at.
        tenant::allow(&j.client, &j.namespace, "switch", &["patch"]).await?;
        let folder = env::temp_dir().join(&j.namespace);
        fs::create_dir_all(&folder)?;
        let known = [("path.name", "tried-out"), ("path.execution", id.as_str())];
        let tried = fixture.clients.try_out(fixture.way(), &known, &folder).await;
        fs::remove_dir_all(&folder)?;
        tried
    })
    .await
}

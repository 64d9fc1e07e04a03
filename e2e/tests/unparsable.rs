//! Objects that the API server takes and the operator cannot read, such as from another version of it or a number that is
//! too large: reported by event and metric with object and field, while others keep running.

use std::time::Duration;

use anyhow::Result;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use skillet_api::{Phase, Reason, SkillExecution};
use skillet_e2e::{Journey, SkillDraft, eventually, journey, metrics::Metrics};

/// A duration by the pattern in the schema, and more milliseconds than there are numbers for.
pub(crate) const TOO_LONG: &str = "99999999999999999999s";

async fn others_go_on(j: &Journey) -> Result<()> {
    j.apply(&SkillDraft::shell("sound", "cat")).await?;
    assert_eq!(j.run("sound", json!({ "n": 1 })).await?.output(), json!({ "n": 1 }));
    Ok(())
}

#[tokio::test]
async fn a_skill_that_does_not_parse_is_named_with_its_field() -> Result<()> {
    journey(async |j| {
        let before = Metrics::scrape(&j.client).await?;
        j.apply(&SkillDraft::shell("broken", "cat").limit("timeout", TOO_LONG)).await?;
        let note = j.event("broken", Reason::ParseFailed).await?;
        assert!(note.contains("timeout") && note.contains(TOO_LONG), "{note}");
        others_go_on(j).await?;
        let labels = [("kind", "Skill"), ("reason", "ParseFailed")];
        let count = |metrics: &Metrics| metrics.sum("skillet_problems_total", &labels);
        let after = Metrics::scrape(&j.client).await?;
        assert!(count(&after) > count(&before));
        // It never runs, and executions of it are refused for that reason.
        let ended = j.run("broken", json!({})).await?.is(Phase::Failed, Reason::SkillNotReady);
        assert_eq!(ended.status.attempts, 0);
        // Mended, it runs.
        j.apply(&SkillDraft::shell("broken", "cat").limit("timeout", "5s")).await?;
        assert_eq!(j.run("broken", json!({ "n": 2 })).await?.output(), json!({ "n": 2 }));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_skill_that_no_longer_parses_keeps_serving_its_sealed_version() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("greet", "echo from 1.0.0")).await?;
        j.ready("greet").await?;
        j.apply(&SkillDraft::shell("greet", "echo from 1.1.0").version("1.1.0").limit("timeout", TOO_LONG))
            .await?;
        j.event("greet", Reason::ParseFailed).await?;
        assert_eq!(j.run("greet", json!({})).await?.output(), json!({ "output": "from 1.0.0" }));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_execution_that_does_not_parse_is_named_with_its_field() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("sound", "cat")).await?;
        let types = ApiResource::erase::<SkillExecution>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(j.client.clone(), &j.namespace, &types);
        let broken = DynamicObject::new("broken", &types)
            .data(json!({ "spec": { "skill": "sound", "timeout": TOO_LONG } }));
        api.create(&PostParams::default(), &broken).await?;
        let note = j.event("broken", Reason::ParseFailed).await?;
        assert!(note.contains("timeout") && note.contains(TOO_LONG), "{note}");
        others_go_on(j).await
    })
    .await
}

#[tokio::test]
async fn a_status_from_another_version_keeps_nobody_from_running() -> Result<()> {
    journey(async |j| {
        others_go_on(j).await?;
        let ended = j.run("sound", json!({})).await?;
        let types = ApiResource::erase::<SkillExecution>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(j.client.clone(), &j.namespace, &types);
        let status = json!({ "status": { "reason": "NotYetInvented" } });
        let patched = api.patch_status(&ended.name, &PatchParams::default(), &Patch::Merge(&status)).await?;
        assert_eq!(patched.data["status"]["reason"], "NotYetInvented");
        others_go_on(j).await?;
        // It has ended, and is left as it is.
        eventually("the status stays", Duration::from_secs(5), async || {
            let status: Value = api.get(&ended.name).await?.data["status"].clone();
            Ok((status["phase"] == "Succeeded" && status["reason"] == "NotYetInvented").then_some(()))
        })
        .await
    })
    .await
}

//! Decisions of the cluster's SkillPolicy. These journeys change the one object there is, so each runs alone and puts
//! everything back.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use kube::Api;
use serde_json::json;
use skillet_api::{IsolationLevel, Phase, Reason, SkillPolicy, names::POLICY_NAME};
use skillet_e2e::{
    PATIENCE, SkillDraft,
    execute::spec,
    image, journey_under,
    observe::{condition, event},
    policy,
};

use crate::{confinement::all_are_refused, unparsable::TOO_LONG};

#[tokio::test]
async fn the_master_switch_refuses_what_is_new_and_lets_go_on_what_runs() -> Result<()> {
    journey_under(json!({}), async |j| {
        j.apply(&SkillDraft::shell("steady", "sleep 5; cat")).await?;
        let running = j.start("steady", json!({ "n": 1 })).await?;
        j.running(&running).await?;
        policy::change(&j.client, json!({ "executionEnabled": false })).await?;
        j.refused(spec("steady"), Reason::ExecutionDisabled, &["SkillPolicy", "executionEnabled"]).await?;
        assert_eq!(j.ended(&running).await?.output(), json!({ "n": 1 }));
        policy::change(&j.client, json!({ "executionEnabled": true })).await?;
        assert_eq!(j.run("steady", json!({ "n": 2 })).await?.output(), json!({ "n": 2 }));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_the_policy_no_longer_allows_does_not_run_though_it_is_sealed() -> Result<()> {
    journey_under(json!({}), async |j| {
        let image = image::without_runner().await?;
        let sandbox = json!({ "image": image, "command": ["/bin/busybox", "true"] });
        j.apply(&SkillDraft::new("own-image", sandbox)).await?;
        j.apply(&SkillDraft::shell("slow", "cat").limit("timeout", "2m")).await?;
        tokio::try_join!(j.ready("own-image"), j.ready("slow"))?;
        policy::change(&j.client, json!({ "allowedImages": [], "maximums": { "timeout": "1m" } })).await?;
        j.refused(spec("own-image"), Reason::ImageNotAllowed, &[&image]).await?;
        j.refused(spec("slow"), Reason::LimitTooHigh, &["timeout", "1m"]).await?;
        for (name, reason) in [("own-image", Reason::ImageNotAllowed), ("slow", Reason::LimitTooHigh)] {
            j.event(name, reason).await?;
            let status = j.observed(name).await?;
            let ready =
                condition(&status.conditions, "Ready").map(|c| (c.status.as_str(), c.reason.as_str()));
            assert_eq!(ready, Some(("False", reason.as_str())), "{name}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_missing_image_is_reported_within_the_start_limit() -> Result<()> {
    // One from a registry that refuses, and one from where nobody answers.
    let images = ["localhost:1/absent:1".to_owned(), format!("{}absent:1", policy::IMAGES)];
    let limits = json!({ "startTimeout": "8s", "allowedImages": images });
    journey_under(limits, async move |j| {
        let runs = ["refusing", "silent"].into_iter().zip(&images).map(async |(name, image)| {
            j.apply(&SkillDraft::new(name, json!({ "image": image, "command": ["true"] }))).await?;
            j.ready(name).await?;
            let asked = Instant::now();
            let ended = j.run(name, json!({})).await?;
            let ended = ended.is(Phase::Failed, Reason::ImageUnavailable).says(&[image]);
            assert!(asked.elapsed() <= Duration::from_secs(10) * PATIENCE, "{:?}", asked.elapsed());
            assert_eq!(ended.status.attempts, 1);
            assert!(j.event(&ended.name, Reason::ImageUnavailable).await?.contains(image));
            j.nothing_left(&ended).await
        });
        try_join_all(runs).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn defaults_apply_to_skills_that_set_no_limits() -> Result<()> {
    let defaults = json!({ "timeout": "1s", "outputBytes": 10 });
    journey_under(json!({ "defaults": defaults }), async |j| {
        j.apply(&SkillDraft::shell("slow", "sleep 20")).await?;
        j.apply(&SkillDraft::shell("wordy", "echo a text of some length")).await?;
        let (slow, wordy) = tokio::try_join!(j.run("slow", json!({})), j.run("wordy", json!({})))?;
        slow.is(Phase::TimedOut, Reason::TimedOut).says(&["1s"]);
        assert!(wordy.status.truncated, "{wordy:?}");
        assert_eq!(wordy.output(), json!({ "output": "a text of" }));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn every_attack_is_refused_at_the_other_level_too() -> Result<()> {
    journey_under(json!({}), async |j| {
        let policy: SkillPolicy = Api::all(j.client.clone()).get(POLICY_NAME).await?;
        let other = match policy.spec.isolation {
            IsolationLevel::Strict => IsolationLevel::Compatible,
            IsolationLevel::Compatible => IsolationLevel::Strict,
        };
        policy::change(&j.client, json!({ "isolation": format!("{other:?}") })).await?;
        let policy: SkillPolicy = Api::all(j.client.clone()).get(POLICY_NAME).await?;
        let status = policy.status.context("no status")?;
        let proven = condition(&status.conditions, "IsolationProven").map(|c| c.status.as_str());
        assert_eq!(proven, Some("True"), "{:?}", status.nodes);
        all_are_refused(j, other).await
    })
    .await
}

#[tokio::test]
async fn a_policy_that_does_not_parse_is_named_and_the_last_one_stays_in_force() -> Result<()> {
    journey_under(json!({ "defaults": { "outputBytes": 10 } }), async |j| {
        j.apply(&SkillDraft::shell("wordy", "echo a text of some length")).await?;
        j.ready("wordy").await?;
        let broken = json!({ "startTimeout": TOO_LONG, "defaults": { "outputBytes": 20 } });
        policy::write(&j.client, broken).await?;
        let note = event(&j.client, None, POLICY_NAME, Reason::ParseFailed).await?;
        assert!(note.contains("startTimeout") && note.contains(TOO_LONG), "{note}");
        assert_eq!(j.run("wordy", json!({})).await?.output(), json!({ "output": "a text of" }));
        Ok(())
    })
    .await
}

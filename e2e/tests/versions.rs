//! Versions are sealed and never change; which of them runs; what changes without a new one.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;
use skillet_api::{Reason, Skill, SkillExecutionSpec, SkillVersion, skill::Mode};
use skillet_e2e::{Journey, SkillDraft, eventually, execute::spec, journey, observe::condition};

fn greeting(version: &str) -> SkillDraft {
    SkillDraft::shell("greet", &format!("echo from {version}")).version(version)
}

async fn seal(j: &Journey, version: &str) -> Result<()> {
    j.apply(&greeting(version)).await?;
    let status = j.ready("greet").await?;
    ensure!(status.versions.iter().any(|sealed| sealed == version), "{version} is not sealed: {status:?}");
    Ok(())
}

#[tokio::test]
async fn a_sealed_version_does_not_change_and_keeps_serving() -> Result<()> {
    journey(async |j| {
        seal(j, "1.0.0").await?;
        let sealed = j.api::<SkillVersion>().get("greet-1.0.0").await?;
        let digest = j.ready("greet").await?.digest;
        assert_eq!(digest.as_ref(), Some(&sealed.spec.digest));
        let other = SkillDraft::shell("greet", "echo changed");
        let refused = j.apply(&other).await.err().context("other content was taken")?;
        assert!(format!("{refused:?}").contains("this version is sealed; raise spec.version"), "{refused:?}");
        // The API server sees only the content of the present version.
        seal(j, "1.0.1").await?;
        j.apply(&other).await?;
        let status = j.observed("greet").await?;
        let said = condition(&status.conditions, "Sealed").context("no condition Sealed")?;
        assert_eq!((said.status.as_str(), said.reason.as_str()), ("False", "VersionConflict"));
        assert!(
            said.message.contains("1.0.0") && said.message.contains("raise spec.version"),
            "{}",
            said.message
        );
        assert!(j.event("greet", Reason::VersionConflict).await?.contains("raise spec.version"));
        let ready = condition(&status.conditions, "Ready").map(|c| c.status.as_str());
        assert_eq!(ready, Some("True"), "the sealed content still serves");
        assert_eq!(j.run("greet", json!({})).await?.output(), json!({ "output": "from 1.0.0" }));
        assert_eq!(j.api::<SkillVersion>().get("greet-1.0.0").await?.spec, sealed.spec);
        // With a version of its own the change is taken.
        j.apply(&other.version("1.1.0")).await?;
        assert_eq!(j.run("greet", json!({})).await?.output(), json!({ "output": "changed" }));
        // A revert rolls back.
        seal(j, "1.0.0").await?;
        let ended = j.run("greet", json!({})).await?;
        assert_eq!(ended.status.digest.as_ref(), digest.as_ref());
        assert_eq!(ended.output(), json!({ "output": "from 1.0.0" }));
        let newest = SkillExecutionSpec { version: Some("latest".into()), ..spec("greet") };
        let execution = j.start_with(newest).await?;
        assert_eq!(j.ended(&execution).await?.output(), json!({ "output": "changed" }));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_number_keeps_its_content_although_its_skill_was_made_again() -> Result<()> {
    journey(async |j| {
        seal(j, "1.0.0").await?;
        j.api::<Skill>().delete("greet", &DeleteParams::default()).await?;
        eventually("the sealed version is gone", Duration::from_secs(30), async || {
            let left = j.api::<SkillVersion>().list(&ListParams::default()).await?;
            Ok(left.items.is_empty().then_some(()))
        })
        .await?;
        j.apply(&SkillDraft::shell("greet", "echo changed")).await?;
        let status = j.observed("greet").await?;
        for type_ in ["Sealed", "Ready"] {
            let said = condition(&status.conditions, type_).context("no condition")?;
            assert_eq!((said.status.as_str(), said.reason.as_str()), ("False", "VersionConflict"), "{type_}");
        }
        // The same content may come back.
        seal(j, "1.0.0").await?;
        assert_eq!(j.run("greet", json!({})).await?.output(), json!({ "output": "from 1.0.0" }));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_yanked_version_runs_only_after_it_is_given_back() -> Result<()> {
    journey(async |j| {
        seal(j, "1.0.0").await?;
        seal(j, "1.1.0").await?;
        j.apply(&greeting("1.1.0").spec("yankedVersions", json!(["1.1.0"]))).await?;
        j.observed("greet").await?;
        assert_eq!(j.run("greet", json!({})).await?.output(), json!({ "output": "from 1.0.0" }));
        let pinned = SkillExecutionSpec { version: Some("1.1.0".into()), ..spec("greet") };
        j.refused(pinned, Reason::VersionYanked, &["1.1.0"]).await?;
        j.apply(&greeting("1.1.0").spec("yankedVersions", json!([]))).await?;
        j.observed("greet").await?;
        assert_eq!(j.run("greet", json!({})).await?.output(), json!({ "output": "from 1.1.0" }));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_run_right_after_a_change_gets_the_change() -> Result<()> {
    journey(async |j| {
        // Nothing is waited for between apply and run: the order of arrival must not matter.
        for version in ["1.0.0", "1.0.1", "1.1.0"] {
            j.apply(&greeting(version)).await?;
            let ended = j.run("greet", json!({})).await?;
            assert_eq!(ended.status.resolved_version.as_deref(), Some(version));
            assert_eq!(ended.output(), json!({ "output": format!("from {version}") }));
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_constraint_runs_the_newest_version_that_fits() -> Result<()> {
    journey(async |j| {
        for version in ["1.0.0", "1.2.0", "1.2.3", "2.0.0"] {
            seal(j, version).await?;
        }
        assert_eq!(j.ready("greet").await?.versions, ["2.0.0", "1.2.3", "1.2.0", "1.0.0"]);
        let cases = [
            (None, "2.0.0"),
            (Some("latest"), "2.0.0"),
            (Some("^1.0.0"), "1.2.3"),
            (Some("~1.2.0"), "1.2.3"),
            (Some("1.2.0"), "1.2.0"),
            (Some(">=1.0.0 <1.2.3"), "1.2.0"),
            (Some(">1.0.0, <=1.2.0"), "1.2.0"),
            (Some("==1.0.0"), "1.0.0"),
        ];
        let runs = cases.map(async |(constraint, expected)| {
            let with = SkillExecutionSpec { version: constraint.map(Into::into), ..spec("greet") };
            let execution = j.start_with(with).await?;
            let ended = j.ended(&execution).await?;
            assert_eq!(ended.status.resolved_version.as_deref(), Some(expected), "for {constraint:?}");
            assert_eq!(ended.output(), json!({ "output": format!("from {expected}") }), "for {constraint:?}");
            anyhow::Ok(())
        });
        try_join_all(runs).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_oldest_versions_go_over_the_history_limit() -> Result<()> {
    journey(async |j| {
        // The limit of SkillPolicy, which nobody but the journeys that run alone may change.
        let policy: skillet_api::SkillPolicy =
            kube::Api::all(j.client.clone()).get(skillet_api::names::POLICY_NAME).await?;
        let limit = usize::try_from(policy.spec.version_history)?;
        ensure!(limit <= 50, "a history of {limit} is more than this test fills");
        for number in 0..limit + 2 {
            seal(j, &format!("0.{number}.0")).await?;
        }
        let status = j.ready("greet").await?;
        assert_eq!(status.versions.len(), limit);
        assert_eq!(status.versions.last().map(String::as_str), Some("0.2.0"));
        eventually("the oldest are deleted", Duration::from_secs(10), async || {
            let left = j.api::<SkillVersion>().list(&ListParams::default()).await?;
            let has_old =
                left.iter().any(|v| ["greet-0.0.0", "greet-0.1.0"].contains(&v.name_any().as_str()));
            Ok((left.items.len() == limit && !has_old).then_some(()))
        })
        .await?;
        let gone = SkillExecutionSpec { version: Some("0.1.0".into()), ..spec("greet") };
        let newest = format!("0.{}.0", limit + 1);
        j.refused(gone, Reason::VersionNotFound, &["0.1.0", &newest]).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn mode_changes_without_a_new_version_as_kubectl_writes_it() -> Result<()> {
    journey(async |j| {
        let yaml = |mode: &str| {
            format!(
                "apiVersion: skillet.dev/v1alpha1\nkind: Skill\nmetadata: {{name: greet}}\nspec:\n  version: 1.0.0\n  mode: {mode}\n  run: {{sandbox: {{runtime: shell, script: echo hello}}}}\n"
            )
        };
        let mut digests = Vec::new();
        for (mode, parsed) in [("on", Mode::On), ("off", Mode::Off), ("auto", Mode::Auto), ("\"on\"", Mode::On)] {
            // kubectl reads a bare `on` as a boolean.
            j.kubectl(&["apply", "-f", "-"], &yaml(mode)).await?;
            let skill = j.api::<Skill>().get("greet").await?;
            assert_eq!(skill.spec.mode, parsed, "mode: {mode}");
            digests.push(j.ready("greet").await?.digest);
            if parsed == Mode::Off {
                j.refused(spec("greet"), Reason::SkillOff, &["greet", "mode"]).await?;
            }
        }
        assert_eq!(j.run("greet", json!({})).await?.output(), json!({ "output": "hello" }));
        digests.dedup();
        assert_eq!(digests.len(), 1, "the content is the same");
        assert_eq!(j.api::<SkillVersion>().list(&ListParams::default()).await?.items.len(), 1);
        Ok(())
    })
    .await
}

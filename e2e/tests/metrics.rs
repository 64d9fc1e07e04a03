//! The same words in metrics as in status and event.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use skillet_api::{Phase, Reason, SkillExecutionSpec};
use skillet_e2e::{SkillDraft, eventually, execute::spec, journey, metrics::Metrics};

/// Counts for the namespaces and skills with the most runs, of which there is a bounded number.
const BUSIEST: [&str; 2] = ["skillet_namespace_executions", "skillet_skill_executions"];

#[tokio::test]
async fn every_end_is_counted_under_its_phase_and_reason() -> Result<()> {
    journey(async |j| {
        let before = Metrics::scrape(&j.client).await?;
        j.apply(&SkillDraft::shell("echo", "cat").input_schema(json!({ "required": ["n"] }))).await?;
        j.apply(&SkillDraft::shell("failing", "exit 3")).await?;
        j.apply(&SkillDraft::shell("slow", "sleep 20").limit("timeout", "1s")).await?;
        let version = SkillExecutionSpec { version: Some("^9.0.0".into()), ..spec("echo") };
        let (succeeded, failing, slow, _, _, _) = tokio::try_join!(
            j.run("echo", json!({ "n": 1 })),
            j.run("failing", json!({})),
            j.run("slow", json!({})),
            j.refused(spec("nowhere"), Reason::SkillNotFound, &[]),
            j.refused(spec("echo"), Reason::InputInvalid, &[]),
            j.refused(version, Reason::VersionNotFound, &[]),
        )?;
        succeeded.is(Phase::Succeeded, Reason::Succeeded);
        failing.is(Phase::Failed, Reason::ExitCode);
        slow.is(Phase::TimedOut, Reason::TimedOut);
        let counted = [
            ("Succeeded", "Succeeded"),
            ("Failed", "ExitCode"),
            ("TimedOut", "TimedOut"),
            ("Failed", "SkillNotFound"),
            ("Failed", "InputInvalid"),
            ("Failed", "VersionNotFound"),
        ];
        let after = eventually("all are counted", Duration::from_secs(10), async || {
            let after = Metrics::scrape(&j.client).await?;
            let count = |metrics: &Metrics, (phase, reason): (&str, &str)| {
                metrics.sum("skillet_executions_total", &[("phase", phase), ("reason", reason)])
            };
            Ok(counted.iter().all(|of| count(&after, *of) > count(&before, *of)).then_some(after))
        })
        .await?;
        for histogram in ["skillet_execution_duration_seconds_count", "skillet_sandbox_start_seconds_count"] {
            assert!(after.sum(histogram, &[]) >= before.sum(histogram, &[]) + 3.0, "{histogram}");
        }
        let names = |line: &&str| {
            line.contains(&j.namespace) && !BUSIEST.iter().any(|metric| line.starts_with(metric))
        };
        assert_eq!(after.text().lines().find(names), None, "names of objects are labels of the busiest only");
        Ok(())
    })
    .await
}

//! Secrets reach the program and nothing else: not the manifest, not the pod's log, not the output.

use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::{ResourceExt, api::ListParams};
use serde_json::json;
use skillet_api::{Phase, Reason};
use skillet_e2e::{Journey, SkillDraft, eventually, journey, sandbox};

const VALUE: &str = "s3cr3t-Value/with\"quote";

async fn with_secret(j: &Journey, draft: SkillDraft) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "api-access" }, "stringData": { "token": VALUE },
    });
    j.apply(&secret).await?;
    let from = json!([{ "name": "TOKEN", "secret": "api-access", "key": "token" }]);
    j.apply(&draft.sandbox("secretEnv", from)).await?;
    Ok(())
}

#[tokio::test]
async fn a_program_gets_its_secret_and_cannot_print_it() -> Result<()> {
    journey(async |j| {
        // The length proves that the program had the value; everything it prints of it is masked.
        let script = r#"
import json, os, sys
token = os.environ["TOKEN"]
sys.stderr.write(f"using {token} now\n")
sys.stdout.write("{\"plain\": \"<" + token.replace('"', '\\"') + ">\", ")
sys.stdout.flush()
sys.stdout.write('"length": ' + str(len(token)) + ', "dumped": ' + json.dumps(token) + "}")
"#;
        with_secret(j, SkillDraft::python("caller", script)).await?;
        let status = j.run("caller", json!({})).await?.is(Phase::Succeeded, Reason::Succeeded).status;
        let masked = json!({ "plain": "<***>", "length": VALUE.len(), "dumped": "***" });
        assert_eq!(status.output, Some(masked));
        assert_eq!(status.stderr.map(|s| s.head), Some("using *** now\n".into()));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_secret_is_in_no_manifest_no_log_and_no_message() -> Result<()> {
    journey(async |j| {
        with_secret(j, SkillDraft::shell("caller", "echo \"$TOKEN\"; echo \"$TOKEN\" >&2; sleep 3; exit 1"))
            .await?;
        let execution = j.start("caller", json!({})).await?;
        let status = j.running(&execution).await?;
        let pod = status.pod.context("no pod in the status")?;
        let of = sandbox::of_execution(&execution.uid().unwrap_or_default());
        let pods = serde_json::to_string(&sandbox::pods(&j.client).list(&of).await?.items)?;
        let jobs = serde_json::to_string(&sandbox::jobs(&j.client).list(&of).await?.items)?;
        assert!(pods.contains(&pod) && jobs.len() > 100, "there is something to look at");
        let written = eventually("the program's output is in the log", Duration::from_secs(5), async || {
            Ok(Some(j.sandbox_log(&pod).await?).filter(|log| log.contains("***")))
        });
        let log = written.await?;
        let ended = j.ended(&execution).await?.is(Phase::Failed, Reason::ExitCode).says(&["***"]);
        let events = j.event(&ended.name, Reason::ExitCode).await?;
        let status = serde_json::to_string(&ended.status)?;
        for (place, text) in
            [("pod", &pods), ("job", &jobs), ("log", &log), ("event", &events), ("status", &status)]
        {
            assert!(!text.contains("s3cr3t-Value"), "the secret is in the {place}: {text}");
            assert!(!text.contains("czNjcjN0LVZhbHVl"), "the secret is in the {place} in base64: {text}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_secret_that_changed_is_used_by_the_next_run() -> Result<()> {
    journey(async |j| {
        with_secret(j, SkillDraft::shell("length", "printf %s \"$TOKEN\" | wc -c")).await?;
        assert_eq!(j.run("length", json!({})).await?.output(), json!({ "value": VALUE.len() }));
        j.apply("{apiVersion: v1, kind: Secret, metadata: {name: api-access}, stringData: {token: another}}")
            .await?;
        assert_eq!(j.run("length", json!({})).await?.output(), json!({ "value": 7 }));
        let versions = j.api::<skillet_api::SkillVersion>().list(&ListParams::default()).await?.items;
        assert_eq!(versions.len(), 1, "a secret is no content of a version");
        Ok(())
    })
    .await
}

//! The workspace of a caller: the plugin and the runs of the same caller see the same files, and nobody else does.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ServiceAccount;
use serde_json::{Value, json};
use skillet_api::{Phase, Reason, execution::SkillExecutionSpec};
use skillet_e2e::{Journey, eventually, execute::Ended, journey_under};

/// Skills that read and write files, and the right of the service account to run them.
async fn prepare(j: &Journey) -> Result<()> {
    for (name, builtin) in [("reads", "file_read"), ("writes", "file_write")] {
        j.apply(&json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": { "name": name },
            "spec": { "version": "1.0.0", "run": { "builtin": builtin } },
        }))
        .await?;
        j.ready(name).await?;
    }
    // The controller manager makes it a moment after the namespace.
    eventually("the namespace has its service account", Duration::from_secs(60), async || {
        Ok(j.api::<ServiceAccount>().get_opt("default").await?.map(drop))
    })
    .await?;
    let (verbs, account) = (["--verb", "get,list,execute"], format!("{}:default", j.namespace));
    let role = [&["create", "role", "use", "--resource", "skills.skillet.dev"], &verbs[..]].concat();
    j.kubectl(&role, "").await?;
    j.kubectl(&["create", "rolebinding", "use", "--role", "use", "--serviceaccount", &account], "").await?;
    Ok(())
}

/// Runs a skill as the gateway does it for a service account.
async fn run_as(j: &Journey, account: &str, skill: &str, input: Value) -> Result<Ended> {
    let caller = format!("{}/{account}", j.namespace);
    let spec = SkillExecutionSpec {
        skill: skill.to_owned(),
        caller: Some(caller),
        input: Some(input),
        ..Default::default()
    };
    let execution = j.start_with(spec).await?;
    j.ended(&execution).await
}

#[tokio::test]
async fn files_of_runs_and_of_the_plugin_are_those_of_one_caller() -> Result<()> {
    journey_under(json!({ "builtins": ["file_read", "file_write"] }), async |j| {
        prepare(j).await?;
        let workspace =
            async |arguments: &[&str]| j.kubectl(&[&["skill", "workspace"], arguments].concat(), "").await;
        let first = json!({ "path": "out/a.txt", "content": "one\n" });
        let written = run_as(j, "default", "writes", first).await?.output();
        ensure!(written["bytesWritten"] == 4, "{written}");
        let more = json!({ "path": "out/a.txt", "content": "two\n", "append": true });
        run_as(j, "default", "writes", more).await?;

        // The role of the service account reaches the gateway a moment later.
        let listed = eventually("the plugin lists the file", Duration::from_secs(30), async || {
            let listed = workspace(&["ls", "-o", "json"]).await.unwrap_or_default();
            Ok(listed.contains("out/a.txt").then_some(listed))
        })
        .await?;
        ensure!(listed.contains(": 8"), "{listed}");
        let folder = tempfile::tempdir()?;
        let (there, back) = (folder.path().join("there.txt"), folder.path().join("back.txt"));
        let (there, back) = (there.to_string_lossy().into_owned(), back.to_string_lossy().into_owned());
        workspace(&["cp", "workspace:out/a.txt", &back]).await?;
        ensure!(std::fs::read_to_string(&back)? == "one\ntwo\n");

        std::fs::write(&there, "from here")?;
        workspace(&["cp", &there, "workspace:in/there.txt"]).await?;
        let read = run_as(j, "default", "reads", json!({ "path": "in/there.txt" })).await?.output();
        ensure!(read["content"] == "from here", "{read}");

        let other = run_as(j, "other", "reads", json!({ "path": "in/there.txt" })).await?;
        other.is(Phase::Failed, Reason::FileNotFound);
        workspace(&["rm", "in"]).await?;
        let gone = run_as(j, "default", "reads", json!({ "path": "in/there.txt" })).await?;
        gone.is(Phase::Failed, Reason::FileNotFound);
        Ok(())
    })
    .await
}

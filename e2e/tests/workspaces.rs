//! Workspaces: files that runs and the plugin write, each of their own caller.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ServiceAccount;
use serde_json::json;
use skillet_api::{Phase, Reason};
use skillet_e2e::{Journey, eventually, journey_under};

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

#[tokio::test]
async fn the_plugin_has_the_files_of_its_caller_and_runs_without_a_caller_have_others() -> Result<()> {
    journey_under(json!({ "builtins": ["file_read", "file_write"] }), async |j| {
        prepare(j).await?;
        let first = json!({ "path": "out/a.txt", "content": "one\n" });
        let written = j.run("writes", first).await?.output();
        ensure!(written["bytesWritten"] == 4, "{written}");
        j.run("writes", json!({ "path": "out/a.txt", "content": "two\n", "append": true })).await?;
        let read = j.run("reads", json!({ "path": "out/a.txt" })).await?.output();
        ensure!(read["content"] == "one\ntwo\n", "{read}");

        let workspace =
            async |arguments: &[&str]| j.kubectl(&[&["skill", "workspace"], arguments].concat(), "").await;
        let folder = tempfile::tempdir()?;
        let (there, back) = (folder.path().join("there.txt"), folder.path().join("back.txt"));
        let (there, back) = (there.to_string_lossy().into_owned(), back.to_string_lossy().into_owned());
        std::fs::write(&there, "from here")?;
        // The role of the service account reaches the gateway a moment later.
        eventually("the plugin copies a file", Duration::from_secs(30), async || {
            Ok(workspace(&["cp", &there, "workspace:in/there.txt"]).await.ok().map(drop))
        })
        .await?;
        let listed = workspace(&["ls"]).await?;
        ensure!(listed.contains("in/there.txt") && !listed.contains("a.txt"), "{listed}");
        workspace(&["cp", "workspace:in/there.txt", &back]).await?;
        ensure!(std::fs::read_to_string(&back)? == "from here");
        j.run("reads", json!({ "path": "in/there.txt" })).await?.is(Phase::Failed, Reason::FileNotFound);
        workspace(&["rm", "in"]).await?;
        let listed = workspace(&["ls"]).await?;
        ensure!(!listed.contains("there.txt"), "{listed}");
        Ok(())
    })
    .await
}

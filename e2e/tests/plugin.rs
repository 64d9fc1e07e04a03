//! A day with the plugin: from an empty directory to a tested skill, its runs and their results.

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ServiceAccount;
use serde_json::{Value, json};
use skillet_e2e::{eventually, journey};

/// A directory that is removed at the end of the test.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[tokio::test]
async fn a_skill_in_files_is_written_tested_run_and_switched_off() -> Result<()> {
    journey(async |j| {
        let parent = Directory(std::env::temp_dir().join(format!("{}-plugin", j.namespace)));
        let path = parent.0.join("count-words");
        let directory = path.to_string_lossy().into_owned();
        let skill = async |arguments: &[&str]| j.kubectl(&[&["skill"], arguments].concat(), "").await;

        skill(&["init", &directory, "--runtime", "shell"]).await?;
        skill(&["lint", &directory]).await?;
        let tested = skill(&["test", &directory]).await?;
        ensure!(tested.contains("count-words: example: passed"), "{tested}");
        ensure!(skill(&["apply", &directory, "--wait"]).await?.contains("count-words is ready"));
        ensure!(skill(&["list", "-o", "name"]).await? == "skill.skillet.dev/count-words\n");
        let ready = skill(&["list", "-o", "jsonpath={.items[?(@.name=='count-words')].ready}"]).await?;
        ensure!(ready == "True", "{ready}");
        let described = skill(&["describe", "count-words"]).await?;
        for part in ["Ready:          True", "Input schema:", "kubectl skill run count-words", "Succeeded"] {
            ensure!(described.contains(part), "{part} is not in\n{described}");
        }

        let execution = skill(&["run", "count-words", "--set", "text=one two", "--detach"]).await?;
        let execution = execution.trim();
        let result: Value =
            serde_json::from_str(&skill(&["result", execution, "--wait", "-o", "json"]).await?)?;
        ensure!(result == json!({ "words": 2 }), "{result}");
        let logged: Value = serde_json::from_str(&skill(&["logs", execution]).await?)?;
        ensure!(logged == result, "{logged}");
        let again: Value = serde_json::from_str(&skill(&["rerun", execution, "-o", "json"]).await?)?;
        ensure!(again == result, "{again}");

        skill(&["disable", "count-words"]).await?;
        let refused = skill(&["run", "count-words", "--set", "text=x"]).await.unwrap_err().to_string();
        ensure!(refused.contains("SkillDisabled"), "{refused}");
        skill(&["enable", "count-words"]).await?;
        skill(&["mode", "count-words", "on"]).await?;
        skill(&["run", "count-words", "--set", "text=x"]).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_gateway_explains_an_offer_through_the_api_server() -> Result<()> {
    journey(async |j| {
        j.kubectl(&["apply", "-f", "-"], include_str!("../../examples/csv-statistics.yaml")).await?;
        j.kubectl(
            &["create", "role", "use", "--resource", "skills.skillet.dev", "--verb", "get,execute"],
            "",
        )
        .await?;
        let account = format!("{}:default", j.namespace);
        j.kubectl(&["create", "rolebinding", "use", "--role", "use", "--serviceaccount", &account], "")
            .await?;
        let explain = ["skill", "explain", "describe the columns of this csv table", "-o", "json"];
        let explained =
            skillet_e2e::eventually("it is offered", std::time::Duration::from_secs(20), async || {
                let explained: Value =
                    serde_json::from_str(&j.kubectl(&explain, "").await?).unwrap_or_default();
                Ok(explained[0]["offered"].as_bool().filter(|offered| *offered).map(|_| explained))
            })
            .await?;
        ensure!(explained[0]["name"] == "csv-statistics", "{explained}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_key_has_a_successor_while_the_old_one_still_works() -> Result<()> {
    journey(async |j| {
        // The controller manager makes it a moment after the namespace.
        eventually("the namespace has its service account", Duration::from_secs(60), async || {
            Ok(j.api::<ServiceAccount>().get_opt("default").await?.map(drop))
        })
        .await?;
        let first = j.kubectl(&["skill", "key", "create", "ci"], "").await?;
        let second = j.kubectl(&["skill", "key", "rotate", "ci", "--grace", "1h"], "").await?;
        ensure!(first != second, "the successor is another key");
        let listed: Value =
            serde_json::from_str(&j.kubectl(&["skill", "key", "list", "-o", "json"], "").await?)?;
        let names: Vec<&str> =
            listed.as_array().into_iter().flatten().filter_map(|key| key["name"].as_str()).collect();
        ensure!(names == ["ci", "ci-2"], "{listed}");
        ensure!(listed[0]["expiresAt"].is_string() && listed[1]["expiresAt"].is_null(), "{listed}");
        Ok(())
    })
    .await
}

//! Skills of a git repository: they run, follow their repository, and go with their source.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use skillet_api::{Skill, SkillExecutionSpec, SkillSource, SkillSourceStatus, execution::BundleScript};
use skillet_e2e::{
    Journey, eventually, execute::spec, journey_under, network, observe::is_ready, operator, policy,
};
use skillet_sources::testing::{GitServer, Repository};

const NAME: &str = "tools";
const LABELS: &str = "app.kubernetes.io/name=skillet,app.kubernetes.io/component=sources";
const SYNCED_WITHIN: Duration = Duration::from_secs(60);
const GONE_WITHIN: Duration = Duration::from_secs(120);

/// A SKILL.md of a public kind, and the script that it names.
fn greeting(greeting: &str) -> [(&'static str, String); 2] {
    let manual = "---\nname: greet\ndescription: Greets people by their names. Use it when somebody new writes.\n---\n\n# Greet\n\nRun `scripts/greet.sh NAME`.\n";
    [("greet/SKILL.md", manual.to_owned()), ("greet/scripts/greet.sh", format!("echo {greeting} $1\n"))]
}

fn commit(repository: &Repository, files: &[(&str, String)]) -> String {
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    repository.commit(&files)
}

/// Waits until the source is at a commit.
async fn synced(j: &Journey, commit: &str) -> Result<SkillSourceStatus> {
    eventually(&format!("the source is at commit {commit}"), SYNCED_WITHIN, async || {
        let status = j.api::<SkillSource>().get(NAME).await?.status.unwrap_or_default();
        let is_there = status.revision.as_deref().is_some_and(|revision| revision.ends_with(commit));
        let is_ready = is_ready(&status.conditions);
        Ok((is_there && is_ready).then_some(status))
    })
    .await
}

/// Runs the script of the skill.
async fn greet(j: &Journey) -> Result<Value> {
    j.ready("greet").await?;
    let script = BundleScript {
        path: "scripts/greet.sh".to_owned(),
        args: vec!["Ada".to_owned()],
        stdin: String::new(),
    };
    let execution = j.start_with(SkillExecutionSpec { script: Some(script), ..spec("greet") }).await?;
    Ok(j.ended(&execution).await?.output())
}

/// Ends the process that looks at repositories, without a farewell, and waits until another is there.
async fn kill_the_process(j: &Journey) -> Result<()> {
    let killed = operator::kill_pods(&j.client, LABELS).await?;
    ensure!(killed > 0, "no pod looks at repositories");
    Ok(())
}

#[tokio::test]
async fn a_repository_becomes_skills_that_run_and_follow_it() -> Result<()> {
    journey_under(json!({}), async |j| {
        let server = GitServer::start_on(network::own_address(&j.client).await?).await;
        policy::change(&j.client, json!({ "sources": { "allowedHosts": [server.host] } })).await?;
        let repository = server.repository("skills");
        let broken = [("broken/SKILL.md", "---\ndescription: 42\n---\n".to_owned())];
        let first = commit(&repository, &[&greeting("hello")[..], &broken].concat());
        let source = json!({
            "apiVersion": "skillet.dev/v1alpha1",
            "kind": "SkillSource",
            "metadata": { "name": NAME },
            "spec": { "git": { "url": server.url("skills") }, "interval": "1h" },
        });
        j.apply(&source).await?;
        let status = synced(j, &first).await?;
        assert_eq!((status.skills, status.refused.len()), (1, 1), "{:?}", status.refused);
        assert_eq!(greet(j).await?, json!({ "output": "hello Ada" }));

        commit(&repository, &greeting("welcome"));
        let said = j.kubectl(&["skill", "sync", NAME], "").await?;
        assert_eq!(greet(j).await?, json!({ "output": "welcome Ada" }), "{said}");

        // The next process sees what happened while there was none.
        kill_the_process(j).await?;
        let third = commit(&repository, &greeting("good day"));
        synced(j, &third).await?;
        assert_eq!(greet(j).await?, json!({ "output": "good day Ada" }));

        j.api::<SkillSource>().delete(NAME, &DeleteParams::default()).await?;
        eventually("the Skill goes with its source", GONE_WITHIN, async || {
            Ok(j.api::<Skill>().get_opt("greet").await?.is_none().then_some(()))
        })
        .await
    })
    .await
}

//! The first sync of a repository of 100 skills against what a person does without a SkillSource: `git clone`, then
//! `kubectl apply` of the same objects.

use std::{
    fmt::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};
use skillet_api::{Skill, SkillSource};
use skillet_e2e::{network, observe, policy};
use skillet_sources::testing::GitServer;
use tokio::process::Command;

use crate::{
    cluster::{client, until, within},
    figure::Figure,
    samples::Samples,
};

const NAMESPACE: &str = "skillet-bench-sources";
const BY_HAND: &str = "skillet-bench-by-hand";
const NAME: &str = "bench";
const SKILLS: usize = 100;
const ROUNDS: usize = 5;
/// Bytes of each body, some.
const BODY: usize = 4_000;

pub(crate) async fn measure() -> anyhow::Result<Vec<Figure>> {
    let client = client().await?;
    let server = GitServer::start_on(network::own_address(&client).await?).await;
    let repository = server.repository("skills");
    for number in 0..SKILLS {
        let folder = repository.work.join(format!("skill-{number}"));
        tokio::fs::create_dir_all(&folder).await?;
        tokio::fs::write(folder.join("SKILL.md"), manual(number)).await?;
    }
    repository.commit_all();
    let _alone = policy::alone().await?;
    let hosts = json!({ "sources": { "allowedHosts": [server.host] } });
    policy::under(&client, hosts, async || {
        within(&client, NAMESPACE, async |client| {
            within(client, BY_HAND, async |client| compare(client, &server.url("skills")).await).await
        })
        .await
    })
    .await
}

fn manual(number: usize) -> String {
    let mut text = format!(
        "---\nname: skill-{number}\ndescription: Does work number {number}. Use it for that work.\n---\n\n"
    );
    for line in 0.. {
        if text.len() >= BODY {
            break;
        }
        writeln!(text, "{line}. Do step {line} of work {number} with care.").expect("a String takes all");
    }
    text
}

async fn compare(client: &Client, url: &str) -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let (mut synced, mut by_hand) = (Samples::default(), Samples::default());
    for round in 0..ROUNDS {
        synced.add(sync(client, url).await?);
        if round == 0 {
            write_objects(client, folder.path()).await?;
        }
        clear(client, NAMESPACE).await?;
        by_hand.add(clone_and_apply(url, folder.path()).await?);
        clear(client, BY_HAND).await?;
    }
    println!("SkillSource created -> Ready:        {synced}");
    println!("git clone and kubectl apply:         {by_hand}");
    let ratio = synced.median().as_secs_f64() / by_hand.median().as_secs_f64();
    Ok(vec![Figure::lower("source_sync_ratio", ratio, 1.2, "ratio", ROUNDS)])
}

async fn sync(client: &Client, url: &str) -> anyhow::Result<Duration> {
    let api: Api<SkillSource> = Api::namespaced(client.clone(), NAMESPACE);
    let source: SkillSource = serde_json::from_value(json!({
        "apiVersion": "skillet.dev/v1alpha1",
        "kind": "SkillSource",
        "metadata": { "name": NAME },
        "spec": { "git": { "url": url }, "interval": "1h" },
    }))?;
    let started = Instant::now();
    api.create(&PostParams::default(), &source).await?;
    until("the source is Ready: does `skillet sources` run?", 120, async || {
        let status = api.get(NAME).await?.status.unwrap_or_default();
        Ok(observe::is_ready(&status.conditions))
    })
    .await?;
    let took = started.elapsed();
    let skills =
        Api::<Skill>::namespaced(client.clone(), NAMESPACE).list_metadata(&ListParams::default()).await?;
    ensure!(skills.items.len() == SKILLS, "{} Skills came of {SKILLS}", skills.items.len());
    Ok(took)
}

/// Writes what a person would apply: the same Skills, one file each.
async fn write_objects(client: &Client, folder: &Path) -> anyhow::Result<()> {
    let skills = Api::<Skill>::namespaced(client.clone(), NAMESPACE).list(&ListParams::default()).await?;
    tokio::fs::create_dir(folder.join("objects")).await?;
    for skill in skills {
        let name = skill.name_any();
        let object: Value = json!({
            "apiVersion": "skillet.dev/v1alpha1",
            "kind": "Skill",
            "metadata": { "name": name },
            "spec": skill.spec,
        });
        tokio::fs::write(folder.join(format!("objects/{name}.json")), object.to_string()).await?;
    }
    Ok(())
}

async fn clone_and_apply(url: &str, folder: &Path) -> anyhow::Result<Duration> {
    let clone = folder.join("clone");
    tokio::fs::remove_dir_all(&clone).await.ok();
    let started = Instant::now();
    let mut git = Command::new("git");
    succeed(git.args(["clone", "--quiet", "--depth", "1", url]).arg(&clone)).await?;
    let mut kubectl = Command::new("kubectl");
    succeed(kubectl.args(["apply", "--namespace", BY_HAND, "--filename"]).arg(folder.join("objects")))
        .await?;
    Ok(started.elapsed())
}

async fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().await.with_context(|| format!("could not start {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Removes everything that a round made, and waits until it is gone.
async fn clear(client: &Client, namespace: &str) -> anyhow::Result<()> {
    let all = (DeleteParams::background(), ListParams::default());
    Api::<SkillSource>::namespaced(client.clone(), namespace).delete_collection(&all.0, &all.1).await?;
    let skills: Api<Skill> = Api::namespaced(client.clone(), namespace);
    skills.delete_collection(&all.0, &all.1).await?;
    until("the Skills are gone", 120, async || {
        Ok(skills.list_metadata(&ListParams::default()).await?.items.is_empty())
    })
    .await
}

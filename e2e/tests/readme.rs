//! The README's way to a skill of one's own, played as it stands there. The rest of it is played with the gateway.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use skillet_e2e::{Journey, journey};
use tokio::time::timeout;

const README: &str = include_str!("../../README.md");
/// A slow typist's keys in a minute.
const KEYS_PER_MINUTE: usize = 200;
const MINUTES_OF_TYPING: usize = 5;
/// Longest time of the machine for one block of commands.
const PATIENCE: Duration = Duration::from_secs(90);

/// The first block of commands after a line of the README.
fn block(after: &str) -> Result<&'static str> {
    let opening = "```sh\n";
    let (_, rest) = README.split_once(after).with_context(|| format!("no {after:?} in the README"))?;
    let (_, rest) = rest.split_once(opening).context("no code block follows")?;
    rest.split_once("\n```").map(|(block, _)| block).context("the code block has no end")
}

/// The outputs that comments behind the commands promise, as JSON.
fn promised(commands: &str) -> Vec<Value> {
    let comment = |line: &str| serde_json::from_str(line.rsplit_once("# ")?.1).ok();
    commands.lines().filter_map(comment).collect()
}

/// Runs commands in a directory, in the journey's namespace. Returns the JSON objects of standard output.
async fn play(j: &Journey, directory: &Path, commands: &str) -> Result<Vec<Value>> {
    let config = directory.join("kubeconfig");
    let flat = j.kubectl(&["config", "view", "--raw", "--flatten", "--minify"], "").await?;
    fs::write(&config, flat)?;
    let place = format!("kubectl config set-context --current --namespace {} >/dev/null\n", j.namespace);
    let mut shell = Command::new("bash");
    shell
        .args(["-euo", "pipefail", "-c", &(place + commands)])
        .current_dir(directory)
        .env("KUBECONFIG", config);
    let run = tokio::task::spawn_blocking(move || shell.output());
    let output = timeout(PATIENCE, run).await.context("the commands take too long")???;
    let text = format!("\n{}", String::from_utf8_lossy(&output.stdout));
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}{text}");
    let from_braces = text.match_indices("\n{").map(|(at, _)| &text[at..]);
    let values =
        from_braces.filter_map(|rest| serde_json::Deserializer::from_str(rest).into_iter().next()?.ok());
    Ok(values.collect())
}

async fn check(j: &Journey, directory: &Path, commands: &str) -> Result<()> {
    let printed = play(j, directory, commands).await?;
    let promised = promised(commands);
    ensure!(!promised.is_empty(), "no command promises an output");
    for output in promised {
        ensure!(printed.contains(&output), "{output} is not in {printed:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_skill_of_ones_own_is_written_tested_and_run() -> Result<()> {
    journey(async |j| {
        let directory = std::env::temp_dir().join(format!("{}-readme", j.namespace));
        fs::create_dir_all(&directory)?;
        let played = check(j, &directory, block("## A skill of your own")?).await;
        fs::remove_dir_all(&directory)?;
        played
    })
    .await
}

#[test]
fn a_skill_of_ones_own_takes_less_than_five_minutes_of_typing() -> Result<()> {
    let keys = block("## A skill of your own")?.chars().count();
    ensure!(keys <= KEYS_PER_MINUTE * MINUTES_OF_TYPING, "{keys} keys");
    Ok(())
}

#[test]
fn only_comments_of_json_promise_an_output() {
    assert_eq!(promised("a   # {\"b\": 1}\nc # words\nd"), [serde_json::json!({ "b": 1 })]);
}

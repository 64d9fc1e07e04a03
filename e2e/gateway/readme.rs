//! The README is true: its first skill, its agent's rights, its curl and its Python run as they stand there.
//!
//! The test sets up a reader's environment: a kubectl whose namespace is the journey's, and the gateway's URL.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use skillet_api::Phase;
use skillet_e2e::{
    Journey, PATIENCE,
    agent::{chat, gateway_client},
    eventually, examples, journey_under,
};
use tokio::{process::Command, time::timeout};

use crate::fixture::{Fixture, upside_down};

const TEXT: &str = "to be or not to be";
/// As the scripted model tells what the skill gave it: `{"words": 6}`.
const REPLY: &str = "words 6";
/// As the scripted model tells that it called the tool that reads instructions.
const READ: &str = "I asked skill";
/// A slow typist's keys in a minute.
const KEYS_PER_MINUTE: usize = 200;
const MINUTES_OF_TYPING: usize = 5;
const BLOCK_WITHIN: Duration = Duration::from_secs(90);
const ALLOWED_WITHIN: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_the_readme_comes_to_an_answer() -> Result<()> {
    journey_under(serde_json::json!({}), async |j| {
        let folder = env::temp_dir().join(&j.namespace);
        fs::create_dir_all(&folder)?;
        let read = follow(j, &folder).await;
        fs::remove_dir_all(&folder)?;
        read
    })
    .await
}

async fn follow(j: &Journey, folder: &Path) -> Result<()> {
    let fixture = Fixture::set_up(j, &[upside_down()]).await?;
    let readme = fs::read_to_string(skillet_e2e::package_folder().join("../README.md"))?;
    let reader = Reader::new(&fixture, folder).await?;

    let first = section(&readme, "A first skill")?;
    fs::write(folder.join("word-count.yaml"), only(&blocks(first, "yaml"))?)?;
    let said = reader.runs(&only(&blocks(first, "sh"))?).await?;
    ensure!(said.contains("\"words\":6") || said.contains("\"words\": 6"), "{said}");

    let own = section(&readme, "A skill of your own")?;
    let steps = &only(&blocks(own, "sh"))?;
    let promise = steps.trim_end().rsplit_once("# ").context("the last step promises no output")?.1;
    let promise: Value = serde_json::from_str(promise)?;
    let said = format!("\n{}", reader.runs(steps).await?);
    let printed = said.rfind("\n{").map(|at| serde_json::from_str::<Value>(&said[at..])).transpose()?;
    ensure!(printed.as_ref() == Some(&promise), "{said}");

    let agent = section(&readme, "An agent")?;
    let url = format!("http://{}.{}/v1", gateway_client::SERVICE, gateway_client::NAMESPACE);
    ensure!(agent.contains(&url), "the README does not tell the URL {url}");
    let [rights, curl, import] = &blocks(agent, "sh")[..] else {
        anyhow::bail!("rights, curl and import are not there")
    };
    reader.runs(rights).await?;
    reader.is_allowed().await?;
    fs::write(folder.join("agent.py"), only(&blocks(agent, "python"))?)?;
    let token = curl_token(curl)?;
    let said = reader.runs(&format!("{curl}\necho; echo ----; python agent.py")).await?;
    let (curl, python) = said.split_once("\n----\n").context("there are not two answers")?;
    let response: Value = serde_json::from_str(curl).with_context(|| format!("no answer: {curl}"))?;
    let content = response.pointer("/choices/0/message/content").and_then(Value::as_str).unwrap_or_default();
    ensure!(content.contains(REPLY), "curl: {curl}");
    ensure!(python.contains(REPLY), "Python: {python}");
    symlink(examples::folder(), folder.join("examples"))?;
    eventually("the model calls the tool that reads the imported skill", ALLOWED_WITHIN, async || {
        let said = reader.runs(&format!("{token}\n{import}")).await?;
        Ok(said.contains(READ).then_some(()))
    })
    .await?;

    let runs = fixture.executions_with(TEXT).await?;
    ensure!(runs.len() == 3, "one by kubectl, curl and Python each, and there are {}", runs.len());
    let has_succeeded = |run: &skillet_api::SkillExecution| {
        run.status.as_ref().is_some_and(|status| status.phase == Phase::Succeeded)
    };
    ensure!(runs.iter().all(has_succeeded), "{runs:?}");
    nothing_offered(&fixture).await
}

/// The line of a block that makes the agent's token.
fn curl_token(block: &str) -> Result<&str> {
    block.lines().find(|line| line.starts_with("export OPENAI_API_KEY=")).context("no line makes a token")
}

/// The scripted model has no other way to the answer.
async fn nothing_offered(fixture: &Fixture<'_>) -> Result<()> {
    let request = chat("readme", &format!("What is the word count of this text: {TEXT}?"));
    let response = fixture.send(&request.with("x-skillet-skills", "off")).await?;
    ensure!(response.status == 200 && response.text.contains("I have nothing"), "{response:?}");
    Ok(())
}

/// Somebody with a shell, and what the README takes for granted.
struct Reader {
    namespace: String,
    folder: PathBuf,
    path: String,
    url: String,
}

impl Reader {
    async fn new(fixture: &Fixture<'_>, folder: &Path) -> Result<Self> {
        let namespace = fixture.j.namespace.clone();
        let all = fixture.j.kubectl(&["config", "view", "--raw", "--flatten"], "").await?;
        fs::write(folder.join("config"), all)?;
        let path = env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", fixture.clients.python_programs().display());
        let reader =
            Self { namespace, folder: folder.to_owned(), path, url: format!("{}/v1", fixture.gateway.url) };
        reader.runs("kubectl config set-context --current --namespace \"$NAMESPACE\"").await?;
        Ok(reader)
    }

    /// Runs a block as it stands; what it prints.
    async fn runs(&self, block: &str) -> Result<String> {
        let mut shell = Command::new("bash");
        shell
            .args(["-euo", "pipefail", "-c", block])
            .current_dir(&self.folder)
            .env_clear()
            .envs([("PATH", &self.path), ("NAMESPACE", &self.namespace), ("OPENAI_BASE_URL", &self.url)])
            .env("KUBECONFIG", self.folder.join("config"))
            .env("HOME", &self.folder)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = timeout(BLOCK_WITHIN * PATIENCE, shell.output()).await.context("not over in time")??;
        let (said, complained) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "{}\n{block}\n{said}{complained}", output.status);
        Ok(said.into_owned())
    }

    /// Waits until the API server has heard of the agent's rights, as somebody who types does.
    async fn is_allowed(&self) -> Result<()> {
        let who = format!("--as system:serviceaccount:{}:my-agent", self.namespace);
        let request = format!("kubectl auth can-i execute skills.skillet.dev {who}");
        eventually("the agent has its rights", ALLOWED_WITHIN, async || {
            Ok((self.runs(&request).await?.trim() == "yes").then_some(()))
        })
        .await
    }
}

/// A section of a page, up to the next one.
pub(crate) fn section<'a>(page: &'a str, title: &str) -> Result<&'a str> {
    let (_, rest) =
        page.split_once(&format!("\n## {title}\n")).with_context(|| format!("no section {title:?}"))?;
    Ok(rest.split("\n## ").next().unwrap_or(rest))
}

/// Its fenced blocks in one language.
pub(crate) fn blocks(section: &str, language: &str) -> Vec<String> {
    let fence = format!("\n```{language}\n");
    let opened = section.split(&fence).skip(1);
    opened.filter_map(|rest| Some(format!("{}\n", rest.split_once("\n```")?.0))).collect()
}

fn only(blocks: &[String]) -> Result<String> {
    let [block] = blocks else { anyhow::bail!("{} blocks where one is expected", blocks.len()) };
    Ok(block.clone())
}

#[test]
fn a_skill_of_ones_own_takes_less_than_five_minutes_of_typing() -> Result<()> {
    let steps = blocks(section(include_str!("../../README.md"), "A skill of your own")?, "sh");
    let keys = steps.first().context("no steps")?.chars().count();
    ensure!(keys <= KEYS_PER_MINUTE * MINUTES_OF_TYPING, "{keys} keys");
    Ok(())
}

#[test]
fn the_blocks_of_a_section_are_found_by_their_language() {
    let page = "# A\n\n## One\n\n```sh\na\nb\n```\n\n```yaml\nc: 1\n```\n\n## Two\n\n```sh\nd\n```\n";
    assert_eq!(blocks(section(page, "One").unwrap(), "sh"), ["a\nb\n"]);
    assert_eq!(blocks(section(page, "One").unwrap(), "yaml"), ["c: 1\n"]);
    assert_eq!(only(&blocks(section(page, "Two").unwrap(), "sh")).unwrap(), "d\n");
    assert!(section(page, "Three").is_err() && only(&[]).is_err());
}

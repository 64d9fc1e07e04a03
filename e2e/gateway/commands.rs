//! Commands of instructions: a model reads what they print, from sandboxes of this cluster, and only where the policy lets them
//! run.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::ListParams;
use serde_json::json;
use skillet_api::SkillExecution;
use skillet_e2e::{SkillDraft, agent::chat, eventually, journey_under, policy};

use crate::fixture::{Fixture, word_count};

/// From a change of the policy to a request that obeys it.
const OBEYED_WITHIN: Duration = Duration::from_secs(60);
const NONCE: &str = "head -c 9 /dev/urandom | base64";

fn always() -> SkillDraft {
    let body = format!("Number of the day: <!`{NONCE}`>.");
    let instructions = json!({ "body": body, "dynamic": "Run", "activation": "Always" });
    SkillDraft::bundle("numbers", &[]).spec("instructions", instructions)
}

fn read() -> SkillDraft {
    let body = "Notes: !`echo \"$1 and $tag of $(cat lib/text.txt)\"`. Failed: !`echo no >&2; exit 3`";
    let instructions = json!({ "body": body, "dynamic": "Run", "inputs": [{ "name": "tag" }] });
    SkillDraft::bundle("notes", &[("lib/text.txt", "größer")])
        .spec("instructions", instructions)
        .spec("description", "Tells what is new.")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_reads_what_commands_print_where_they_may_run() -> Result<()> {
    journey_under(json!({}), async |j| {
        let fixture = &Fixture::set_up(j, &[word_count()]).await?;
        for draft in [always(), read()] {
            let name = j.apply(&draft).await?.metadata.name.unwrap_or_default();
            j.ready(&name).await?;
        }
        let as_written = format!("<!`{NONCE}`>");
        eventually("the text is in a request, as it is written", OBEYED_WITHIN, async || {
            Ok(number(fixture, "before").await?.filter(|number| *number == as_written))
        })
        .await?;
        ensure!(commands(fixture).await?.is_empty(), "a command ran that the policy does not allow");
        let allowed = json!({ "dynamicContent": { "namespaces": [j.namespace], "cacheTtl": "1000h" } });
        policy::change(&j.client, allowed).await?;
        let first = eventually("the text has an output", OBEYED_WITHIN, async || {
            Ok(number(fixture, "first").await?.filter(|number| number.len() == "<abcdefghijkl>".len()))
        })
        .await?;
        let second = number(fixture, "second").await?;
        ensure!(second.as_deref() == Some(first.as_str()), "{first} and then {second:?}");
        ensure!(commands(fixture).await? == [NONCE], "one window, and more than one run");
        a_call_gives_the_values(fixture).await?;
        a_dry_run_starts_nothing(fixture).await
    })
    .await
}

/// The output in the request that the model gets.
async fn number(fixture: &Fixture<'_>, model: &str) -> Result<Option<String>> {
    let response = fixture.send(&chat(model, "say hi")).await?;
    ensure!(response.status == 200, "{} {}", response.status, response.text);
    let asked = fixture.model.asked(fixture.j, model).await?;
    Ok(number_in(&asked.last().context("the model was not asked")?.body.to_string()))
}

fn number_in(request: &str) -> Option<String> {
    let (_, behind) = request.split_once("Number of the day: ")?;
    Some(behind.split_once(">.")?.0.to_owned() + ">")
}

/// The commands that ran, or are to run.
async fn commands(fixture: &Fixture<'_>) -> Result<Vec<String>> {
    let all = fixture.j.api::<SkillExecution>().list(&ListParams::default()).await?.items;
    Ok(all.into_iter().filter_map(|run| Some(run.spec.command?.text)).collect())
}

async fn a_call_gives_the_values(fixture: &Fixture<'_>) -> Result<()> {
    let script = r#"call skill {"name": "notes", "arguments": "v1 tag='a;id'"}; then say done"#;
    let response = fixture.send(&chat("reading", script)).await?;
    ensure!(response.status == 200, "{} {}", response.status, response.text);
    let asked = fixture.model.asked(fixture.j, "reading").await?;
    let request = asked.last().context("the model was not asked")?.body.to_string();
    for words in ["Notes: v1 and a;id of größer.", "exited with code 3: no"] {
        ensure!(request.contains(words), "does not say {words:?}: {request}");
    }
    Ok(())
}

async fn a_dry_run_starts_nothing(fixture: &Fixture<'_>) -> Result<()> {
    let before = commands(fixture).await?.len();
    let response = fixture.send(&chat("dry", "say hi").with("x-skillet-dry-run", "true")).await?;
    ensure!(number_in(&response.text) == Some(format!("<!`{NONCE}`>")), "{}", response.text);
    ensure!(commands(fixture).await?.len() == before, "a dry run started a command");
    Ok(())
}

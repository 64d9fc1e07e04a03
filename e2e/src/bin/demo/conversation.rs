//! The demo's end: an agent asks a model through the gateway, the model calls a skill, and has the last word. Then the
//! model reads an imported SKILL.md and runs its script.
//!
//! The model is scripted, and for that time stands in OpenAI's place in the cluster's SkillPolicy, which is put back
//! whatever happens. A provider that somebody has set up is left alone: agents may be using it.

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result};
use kube::{Api, Client, api::ListParams};
use serde_json::Value;
use skillet_api::{
    Phase, SkillExecution, SkillExecutionStatus, SkillPolicy,
    gateway::{Provider, Providers},
    names::POLICY_NAME,
};
use skillet_e2e::{
    Journey,
    agent::{GatewayClient, Model, Response, chat, tenant},
    examples, policy,
};

use crate::{
    example::place,
    interruption::Interruption,
    page::{INDENT, Paint, lines},
};

/// The folder of examples that is imported.
const IMPORTED: &str = "release-notes";

/// A question, and what should come of it.
struct Task {
    title: &'static str,
    question: &'static str,
    /// A tool that should be among the offered ones.
    tool: &'static str,
    /// The skill that should run.
    skill: &'static str,
    /// In the result of the skill, and so in the model's words.
    answer: &'static str,
}

const TASKS: [Task; 2] = [
    Task {
        title: "An agent asks a model through the gateway",
        // About logs, too, so that more than one skill fits.
        question: "Would you redact the text of this log line: Ada <ada@example.com> came from 192.0.2.17?",
        tool: "redact-text",
        skill: "redact-text",
        answer: "Ada <[email]> came from [ip]",
    },
    Task {
        title: "A model reads an imported SKILL.md and runs its script",
        // The scripted model does what the question says.
        question: r#"call skill {"name": "release-notes"}; then call run_skill_script {"name": "release-notes", "path": "scripts/sort_commits.py", "stdin": "feat: search in attachments\nfix(parser): read empty lines"}; then say The notes are of these changes."#,
        tool: "run_skill_script",
        skill: "release-notes",
        answer: "search in attachments",
    },
];

/// The result of the question.
struct Conversation {
    response: Response,
    runs: Vec<SkillExecution>,
    took: Duration,
}

/// Has the conversations and prints them; whether each is as it should be, or nothing where they cannot be had.
pub(crate) async fn show(journey: &Journey, paint: &Paint) -> Result<Vec<bool>> {
    let client = &journey.client;
    let _held = policy::alone().await?;
    let mut interruption = Interruption::new()?;
    // What a demo left that was killed.
    policy::restore(client).await?;
    Model::stop(journey).await?;
    if let Some(why) = why_none(GatewayClient::is_installed(client).await?, &openai(client).await?) {
        println!("\n{}", paint.dim(&lines("", &format!("No conversation of an agent: {why}."), 0)));
        return Ok(Vec::new());
    }
    let had = in_place_of_openai(journey, &mut interruption).await;
    let stopped = Model::stop(journey).await;
    let had = had?;
    stopped?;
    Ok(TASKS.iter().zip(&had).map(|(task, had)| print(task, had, paint)).collect())
}

async fn openai(client: &Client) -> Result<Provider> {
    let api: Api<SkillPolicy> = Api::all(client.clone());
    let policy = api.get(POLICY_NAME).await.context("could not read the policy")?;
    Ok(policy.spec.gateway.providers.openai)
}

/// The reason why no conversation is possible, if there is one.
fn why_none(has_gateway: bool, openai: &Provider) -> Option<&'static str> {
    if !has_gateway {
        return Some("the gateway is not installed in this cluster");
    }
    let is_set_up = *openai != Providers::default().openai;
    is_set_up.then_some("SkillPolicy says where OpenAI's requests go, and agents may be using that")
}

async fn in_place_of_openai(journey: &Journey, interruption: &mut Interruption) -> Result<Vec<Conversation>> {
    let model = interruption.ends(Model::start(journey)).await?;
    let change = model.policy(&["openai"]);
    policy::under(&journey.client, change, async || interruption.ends(converse_all(journey)).await).await
}

async fn converse_all(journey: &Journey) -> Result<Vec<Conversation>> {
    let Journey { client, namespace, .. } = journey;
    journey.kubectl(&["skill", "import", &examples::folder().join(IMPORTED).to_string_lossy()], "").await?;
    journey.ready(IMPORTED).await?;
    tenant::make(client, namespace).await?;
    let (gateway, token) = tokio::try_join!(GatewayClient::open(), tenant::token(client, namespace))?;
    gateway.offers(&token, &[TASKS[0].tool.to_owned()]).await?;
    let mut had = Vec::new();
    for task in &TASKS {
        had.push(converse(journey, &gateway, &token, task).await?);
    }
    Ok(had)
}

async fn converse(
    journey: &Journey,
    gateway: &GatewayClient,
    token: &str,
    task: &Task,
) -> Result<Conversation> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis();
    let session = format!("demo-{now}");
    let asked = Instant::now();
    let response =
        gateway.send(token, &chat("scripted", task.question).with("x-skillet-session", &session)).await?;
    let took = asked.elapsed();
    let mut runs = journey.api::<SkillExecution>().list(&ListParams::default()).await?.items;
    runs.retain(|run| run.spec.session_id.as_ref() == Some(&session));
    Ok(Conversation { response, runs, took })
}

fn print(task: &Task, had: &Conversation, paint: &Paint) -> bool {
    let Conversation { response, runs, took } = had;
    let wrong = differences(task, had);
    let is_answered = response.status == 200;
    let how = if is_answered { "Answered".to_owned() } else { format!("Status {}", response.status) };
    let end = format!("{how} in {} ms", took.as_millis());
    println!("\n{}", paint.heading(wrong.is_empty(), task.title, (is_answered, &end)));
    println!(
        "{}",
        paint.dim(&lines("", "The model is scripted; everything else is as it is with a real one", 0))
    );
    println!("{}", lines("question", task.question, INDENT));
    println!("{}", lines("offered", &response.names("x-skillet-offered").join(", "), INDENT));
    for run in runs {
        let input = run.spec.input.as_ref().map(Value::to_string);
        let what = run.spec.script.as_ref().map(|script| script.path.clone()).or(input).unwrap_or_default();
        println!("{}", lines("call", &format!("{} {what}", run.spec.skill), INDENT));
        println!("{}", paint.dim(&lines("sandbox", &place(&status(run)), INDENT)));
    }
    println!("{}", lines("answer", &words(response), INDENT));
    for difference in &wrong {
        println!("{}", paint.red(&lines("wrong", difference, INDENT)));
    }
    wrong.is_empty()
}

/// Descriptions of everything that is wrong.
fn differences(task: &Task, Conversation { response, runs, .. }: &Conversation) -> Vec<String> {
    let Task { tool, skill, answer, .. } = task;
    let mut found = Vec::new();
    if response.status != 200 {
        found.push(format!("the request should be answered, and ended with {}", response.status));
    }
    if !response.names("x-skillet-offered").iter().any(|name| name == tool) {
        found.push(format!("{tool} should be offered, and is not"));
    }
    let calls: Vec<String> =
        runs.iter().map(|run| format!("{} {:?}", run.spec.skill, status(run).phase)).collect();
    if calls != [format!("{skill} {:?}", Phase::Succeeded)] {
        found.push(format!("one call of {skill} should succeed, and there are {calls:?}"));
    }
    if !words(response).contains(answer) {
        found.push(format!("the answer should hold {answer:?}, and does not"));
    }
    found
}

fn status(run: &SkillExecution) -> SkillExecutionStatus {
    run.status.clone().unwrap_or_default()
}

/// The model's words, or the whole answer where there are none.
fn words(response: &Response) -> String {
    let body = response.json();
    let content = body.pointer("/choices/0/message/content").and_then(Value::as_str);
    content.unwrap_or(&response.text).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skillet_api::gateway::KeySecret;

    use super::*;

    fn had(content: &str, phase: Phase) -> Conversation {
        let text = json!({ "choices": [{ "message": { "content": content } }] }).to_string();
        let headers = [("x-skillet-offered".parse().unwrap(), "redact-text,log-summary".parse().unwrap())];
        let mut run = SkillExecution::new("run", skillet_e2e::execute::spec(TASKS[0].skill));
        run.status = Some(SkillExecutionStatus { phase, ..SkillExecutionStatus::default() });
        let response = Response { status: 200, headers: headers.into_iter().collect(), text };
        Conversation { response, runs: vec![run], took: Duration::ZERO }
    }

    #[test]
    fn a_conversation_is_right_when_the_skill_ran_and_its_result_is_in_the_answer() {
        let right = had("It says: Ada <[email]> came from [ip].", Phase::Succeeded);
        assert_eq!(differences(&TASKS[0], &right), [""; 0]);
    }

    #[test]
    fn every_problem_of_a_conversation_is_described() {
        assert!(
            differences(&TASKS[0], &had("It says: Ada.", Phase::Succeeded))[0]
                .contains("the answer should hold")
        );
        assert!(
            differences(&TASKS[0], &had(TASKS[0].answer, Phase::Failed))[0].contains("redact-text Failed")
        );
        let mut none = had(TASKS[0].answer, Phase::Succeeded);
        none.runs.clear();
        none.response =
            Response { status: 502, headers: [].into_iter().collect(), text: "no model".to_owned() };
        assert_eq!(differences(&TASKS[0], &none).len(), 4);
        assert_eq!(words(&none.response), "no model");
    }

    #[test]
    fn without_a_gateway_or_with_a_provider_that_is_set_up_there_is_no_conversation() {
        let untouched = Providers::default().openai;
        assert_eq!(why_none(true, &untouched), None);
        assert!(why_none(false, &untouched).unwrap().contains("not installed"));
        for set_up in [
            Provider { base_url: "https://router.example.com".to_owned(), ..untouched.clone() },
            Provider { client_key: Some(true), ..untouched.clone() },
            Provider { key_secret: Some(KeySecret::default()), ..untouched },
        ] {
            assert!(why_none(true, &set_up).unwrap().contains("OpenAI"), "{set_up:?}");
        }
    }

    #[tokio::test]
    async fn work_ends_with_its_own_result_or_on_interrupt() {
        let mut interruption = Interruption::new().unwrap();
        assert_eq!(interruption.ends(async { Ok(7) }).await.unwrap(), 7);
        let me = std::process::id().to_string();
        let stop = async {
            std::process::Command::new("kill").args(["-TERM", &me]).status()?;
            std::future::pending::<Result<()>>().await
        };
        assert_eq!(interruption.ends(stop).await.unwrap_err().to_string(), "stopped by SIGTERM");
    }
}

//! The gateway is told to stop, and killed, under conversations.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::future::try_join_all;
use kube::{ResourceExt as _, api::DeleteParams};
use serde_json::json;
use skillet_api::{Phase, SkillExecution};
use skillet_e2e::{
    SkillDraft,
    agent::{Answer, Ask, Gateway, chat},
    eventually, journey_under, operator,
};
use tokio::time::{Instant, sleep};

use crate::stage::{Stage, object_in, of_text};

const CLIENTS: usize = 24;
const KILLS: usize = 3;
/// Longer than a pod takes to come back, a few times over.
const ANSWERED_WITHIN: Duration = Duration::from_secs(150);
const BACK_WITHIN: Duration = Duration::from_secs(60);
/// Between two tries of a client.
const PAUSE: Duration = Duration::from_millis(500);

fn slow() -> SkillDraft {
    of_text(SkillDraft::shell("slow-echo", "sleep 3; cat"), "Gives back what it was given, slowly.")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_stops_ends_the_conversation_under_way() -> Result<()> {
    journey_under(json!({}), async |j| {
        let stage = Stage::set(j, &[slow()]).await?;
        let script = r#"call slow-echo {"text": "one"}; call slow-echo {"text": "two"}; then say farewell"#;
        let ask = chat("stopping", script);
        let (answer, ()) = tokio::try_join!(stage.ask(&ask), stop_under_a_run(&stage))?;
        ensure!(answer.status == 200, "{} {}", answer.status, answer.text);
        ensure!(answer.text.contains("farewell"), "{}", answer.text);
        for text in ["one", "two"] {
            let runs = stage.executions_with(text).await?;
            let [run] = &runs[..] else { bail!("{} executions of {text}", runs.len()) };
            ensure!(run.status.as_ref().is_some_and(|status| status.phase == Phase::Succeeded), "{run:?}");
        }
        Ok(())
    })
    .await
}

/// Tells the pod to stop when the first call's run goes on, and waits for the next one.
async fn stop_under_a_run(stage: &Stage<'_>) -> Result<()> {
    eventually("a run goes on", BACK_WITHIN, async || {
        let runs = stage.executions_with("one").await?;
        let is_running =
            |run: &SkillExecution| run.status.as_ref().is_some_and(|status| status.phase == Phase::Running);
        Ok(runs.iter().any(is_running).then_some(()))
    })
    .await?;
    let stopped = operator::delete(&stage.j.client, &DeleteParams::default()).await?;
    eventually("another operator works", BACK_WITHIN, async || {
        let there = operator::pod(&stage.j.client).await.ok();
        Ok(there.filter(|pod| pod.name_any() != stopped).map(drop))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_ask_again_get_their_answer_once_though_the_gateway_is_killed() -> Result<()> {
    journey_under(json!({}), async |j| {
        let stage = &Stage::set(j, &[slow()]).await?;
        let clients = try_join_all((0..CLIENTS).map(|number| insist(stage, number)));
        let ((), _) = tokio::try_join!(kill_some_times(stage), clients)?;
        for number in 0..CLIENTS {
            let runs = stage.executions_with(&text_of(number)).await?;
            ensure!(runs.len() == 1, "{} executions for client {number}", runs.len());
        }
        Ok(())
    })
    .await
}

fn text_of(number: usize) -> String {
    format!("client {number}")
}

/// Asks with the same key until it is answered.
async fn insist(stage: &Stage<'_>, number: usize) -> Result<()> {
    let input = json!({ "text": text_of(number) });
    let ask = chat("insisting", &format!("call slow-echo {input}; then say done"))
        .with("idempotency-key", &format!("client-{number}"));
    let since = Instant::now();
    loop {
        match once(stage, &ask).await {
            Ok(answer) if answer.status == 200 => {
                let body = answer.json();
                let content = body.pointer("/choices/0/message/content").context("no message")?;
                let said = object_in(content.as_str().unwrap_or_default());
                ensure!(said == Some(input), "{content}");
                return Ok(());
            }
            Ok(answer) => ensure!(answer.status >= 500, "{} {}", answer.status, answer.text),
            Err(_) => {}
        }
        ensure!(since.elapsed() < ANSWERED_WITHIN, "client {number} was not answered");
        sleep(PAUSE).await;
    }
}

/// By a way of its own: the one before may have led to a pod that is gone.
async fn once(stage: &Stage<'_>, ask: &Ask) -> Result<Answer> {
    Gateway::open().await?.send(&stage.token, ask).await
}

/// Each time when a client is waiting for its run.
async fn kill_some_times(stage: &Stage<'_>) -> Result<()> {
    for kill in 1..=KILLS {
        eventually(&format!("a run goes on before kill {kill}"), ANSWERED_WITHIN, async || {
            let mut going_on = 0;
            for number in 0..CLIENTS {
                let runs = stage.executions_with(&text_of(number)).await?;
                going_on += usize::from(runs.iter().any(|run| !is_over(run)));
            }
            Ok((going_on > 0).then_some(()))
        })
        .await?;
        operator::delete(&stage.j.client, &DeleteParams::default().grace_period(0)).await?;
        eventually("an operator works", BACK_WITHIN, async || Ok(operator::pod(&stage.j.client).await.ok()))
            .await?;
    }
    Ok(())
}

fn is_over(run: &SkillExecution) -> bool {
    run.status.as_ref().is_some_and(|status| status.phase.is_terminal())
}

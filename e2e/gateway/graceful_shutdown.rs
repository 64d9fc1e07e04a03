//! The gateway's pods are stopped, and killed with the operator, during conversations.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::future::try_join_all;
use kube::api::DeleteParams;
use serde_json::json;
use skillet_api::{Phase, SkillExecution};
use skillet_e2e::{
    SkillDraft,
    agent::{GatewayClient, Request, Response, chat},
    eventually, gateway, journey_under, operator,
};
use tokio::time::{Instant, sleep};

use crate::fixture::{Fixture, object_in, of_text};

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
        let fixture = Fixture::set_up(j, &[slow()]).await?;
        let script = r#"call slow-echo {"text": "one"}; call slow-echo {"text": "two"}; then say farewell"#;
        let request = chat("stopping", script);
        let (response, ()) = tokio::try_join!(fixture.send(&request), stop_under_a_run(&fixture))?;
        ensure!(response.status == 200, "{} {}", response.status, response.text);
        ensure!(response.text.contains("farewell"), "{}", response.text);
        for text in ["one", "two"] {
            let runs = fixture.executions_with(text).await?;
            let [run] = &runs[..] else { bail!("{} executions of {text}", runs.len()) };
            ensure!(run.status.as_ref().is_some_and(|status| status.phase == Phase::Succeeded), "{run:?}");
        }
        Ok(())
    })
    .await
}

/// Stops the gateway's pods during the first call's run, and waits for the next ones.
async fn stop_under_a_run(fixture: &Fixture<'_>) -> Result<()> {
    eventually("a run is underway", BACK_WITHIN, async || {
        let runs = fixture.executions_with("one").await?;
        let is_running =
            |run: &SkillExecution| run.status.as_ref().is_some_and(|status| status.phase == Phase::Running);
        Ok(runs.iter().any(is_running).then_some(()))
    })
    .await?;
    let client = &fixture.j.client;
    let stopped = gateway::pods(client).await?;
    gateway::delete_all(client, &DeleteParams::default()).await?;
    eventually("other gateways are there", BACK_WITHIN, async || {
        let pods = gateway::pods(client).await?;
        Ok((pods.iter().filter(|pod| !stopped.contains(pod)).count() == stopped.len()).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_ask_again_get_their_answer_once_though_the_gateway_is_killed() -> Result<()> {
    journey_under(json!({}), async |j| {
        let fixture = &Fixture::set_up(j, &[slow()]).await?;
        let clients = try_join_all((0..CLIENTS).map(|number| insist(fixture, number)));
        let ((), _) = tokio::try_join!(kill_some_times(fixture), clients)?;
        for number in 0..CLIENTS {
            let runs = fixture.executions_with(&text_of(number)).await?;
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
async fn insist(fixture: &Fixture<'_>, number: usize) -> Result<()> {
    let input = json!({ "text": text_of(number) });
    let request = chat("insisting", &format!("call slow-echo {input}; then say done"))
        .with("idempotency-key", &format!("client-{number}"));
    let since = Instant::now();
    loop {
        match once(fixture, &request).await {
            Ok(response) if response.status == 200 => {
                let body = response.json();
                let content = body.pointer("/choices/0/message/content").context("no message")?;
                let said = object_in(content.as_str().unwrap_or_default());
                ensure!(said == Some(input), "{content}");
                return Ok(());
            }
            Ok(response) => ensure!(response.status >= 500, "{} {}", response.status, response.text),
            Err(_) => {}
        }
        ensure!(since.elapsed() < ANSWERED_WITHIN, "client {number} was not answered");
        sleep(PAUSE).await;
    }
}

/// By a way of its own: the one before may have led to a pod that is gone.
async fn once(fixture: &Fixture<'_>, request: &Request) -> Result<Response> {
    GatewayClient::open().await?.send(&fixture.token, request).await
}

/// Each time when a client is waiting for its run.
async fn kill_some_times(fixture: &Fixture<'_>) -> Result<()> {
    for kill in 1..=KILLS {
        eventually(&format!("a run is underway before kill {kill}"), ANSWERED_WITHIN, async || {
            let mut underway = 0;
            for number in 0..CLIENTS {
                let runs = fixture.executions_with(&text_of(number)).await?;
                underway += usize::from(runs.iter().any(|run| !is_over(run)));
            }
            Ok((underway > 0).then_some(()))
        })
        .await?;
        let at_once = DeleteParams::default().grace_period(0);
        gateway::delete_all(&fixture.j.client, &at_once).await?;
        operator::delete(&fixture.j.client, &at_once).await?;
        eventually("an operator works", BACK_WITHIN, async || {
            Ok(operator::pod(&fixture.j.client).await.ok())
        })
        .await?;
    }
    Ok(())
}

fn is_over(run: &SkillExecution) -> bool {
    run.status.as_ref().is_some_and(|status| status.phase.is_terminal())
}

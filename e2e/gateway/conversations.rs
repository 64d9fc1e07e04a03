//! Conversations that do not go straight: two calls at once, failures, limits, clients that leave or
//! ask twice. One journey, in which all of it happens at the same time.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::{FutureExt as _, future::join_all};
use kube::api::ListParams;
use serde_json::{Value, json};
use skillet_api::{Phase, SkillExecution};
use skillet_e2e::{
    SkillDraft,
    agent::{Request, chat},
    eventually, journey_under,
};

use crate::fixture::{Fixture, object_in, of_text, upside_down, word_count};

/// From the client's leaving to the end of what ran for it.
const CANCELLED_WITHIN: Duration = Duration::from_secs(10);

fn broken() -> SkillDraft {
    let script = "echo \"there is no city $(jq -r .text)\" >&2; exit 3";
    of_text(SkillDraft::shell("broken-weather", script), "Tells the weather.")
}

fn endless() -> SkillDraft {
    of_text(SkillDraft::shell("endless-wait", "sleep 60"), "Waits too long.").limit("timeout", "1s")
}

fn patient() -> SkillDraft {
    of_text(SkillDraft::shell("patient-wait", "sleep 50"), "Waits long.").limit("timeout", "1m")
}

fn once() -> SkillDraft {
    of_text(SkillDraft::shell("once-only", "cat"), "Gives back what it was given.")
}

fn asking() -> SkillDraft {
    of_text(SkillDraft::shell("pay-bill", "cat"), "Pays a bill.").spec("invocation", "hybrid")
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_that_do_not_go_straight_end_well() -> Result<()> {
    journey_under(json!({}), async |j| {
        let skills = [word_count(), upside_down(), broken(), endless(), patient(), once(), asking()];
        let fixture = &Fixture::set_up(j, &skills).await?;
        let scenes = [
            ("two calls at once", two_calls_at_once(fixture).boxed_local()),
            ("a failing skill", a_failing_skill_tells_the_model_why(fixture).boxed_local()),
            ("a skill that takes too long", a_time_out_is_a_result(fixture).boxed_local()),
            ("a client that leaves", a_client_that_leaves_takes_its_run_along(fixture).boxed_local()),
            ("ten rounds", ten_rounds_stop_at_eight(fixture).boxed_local()),
            ("fewer rounds", a_request_may_ask_for_fewer_rounds(fixture).boxed_local()),
            ("the same key twice", the_same_key_runs_once(fixture).boxed_local()),
            ("skills switched off", skills_are_switched_off_by_request(fixture).boxed_local()),
            ("a dry run", a_dry_run_asks_nobody(fixture).boxed_local()),
            ("a call that a person confirms", a_person_confirms_a_call(fixture).boxed_local()),
            ("inject and intercept", a_router_asks_the_model_itself(fixture).boxed_local()),
        ];
        let ended = join_all(scenes.map(async |(name, scene)| (name, scene.await))).await;
        let wrong =
            ended.into_iter().filter_map(|(name, result)| Some(format!("{name}: {:#}", result.err()?)));
        let wrong: Vec<String> = wrong.collect();
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    })
    .await
}

/// The model's words in a whole chat answer, which is a 200.
async fn said(fixture: &Fixture<'_>, request: &Request) -> Result<String> {
    let response = fixture.send(request).await?;
    ensure!(response.status == 200, "{} {}", response.status, response.text);
    let body = response.json();
    let content = &body.pointer("/choices/0/message/content").context("no message")?;
    Ok(content.as_str().unwrap_or_default().to_owned())
}

async fn runs_of(fixture: &Fixture<'_>, skill: &str) -> Result<Vec<SkillExecution>> {
    let all = fixture.j.api::<SkillExecution>().list(&ListParams::default()).await?.items;
    Ok(all.into_iter().filter(|run| run.spec.skill == skill).collect())
}

fn phase(run: &SkillExecution) -> Phase {
    run.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

async fn two_calls_at_once(fixture: &Fixture<'_>) -> Result<()> {
    let script = r#"call word-count {"text": "two at once"} and call upside-down {"text": "two at once"}; then say both"#;
    let response = fixture.send(&chat("two", script)).await?;
    ensure!(response.status == 200, "{} {}", response.status, response.text);
    let text = response.text.replace("\\\"", "\"");
    ensure!(text.contains("\"words\":3") && text.contains("\"reversed\":\"ecno ta owt\""), "{text}");
    ensure!(response.names("x-skillet-ran") == ["word-count", "upside-down"], "{:?}", response.headers);
    let runs = fixture.executions_with("two at once").await?;
    let times = |run: &SkillExecution| {
        let status = run.status.as_ref()?;
        Some((status.started_at.as_ref()?.0, status.finished_at.as_ref()?.0))
    };
    let [first, second] = &runs[..] else { anyhow::bail!("{} executions", runs.len()) };
    let (first, second) = (times(first).context("not run")?, times(second).context("not run")?);
    // Each was made before the other was over.
    let made = |run: &SkillExecution| run.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let made: Vec<_> = runs.iter().filter_map(made).collect();
    ensure!(made.iter().all(|made| *made <= first.1 && *made <= second.1), "one after the other");
    let asked = fixture.model.asked(fixture.j, "two").await?;
    ensure!(asked.len() == 2, "asked {} times", asked.len());
    Ok(())
}

async fn a_failing_skill_tells_the_model_why(fixture: &Fixture<'_>) -> Result<()> {
    let script = r#"call broken-weather {"text": "Atlantis"}; then say so it is"#;
    let text = said(fixture, &chat("broken", script)).await?;
    for word in ["ExitCode", "there is no city Atlantis", "so it is"] {
        ensure!(text.contains(word), "does not say {word:?}: {text}");
    }
    Ok(())
}

async fn a_time_out_is_a_result(fixture: &Fixture<'_>) -> Result<()> {
    let text =
        said(fixture, &chat("endless", r#"call endless-wait {"text": "x"}; then say so it is"#)).await?;
    ensure!(text.contains("TimedOut") && text.contains("so it is"), "{text}");
    Ok(())
}

async fn a_client_that_leaves_takes_its_run_along(fixture: &Fixture<'_>) -> Result<()> {
    let mut request = chat("leaving", r#"say let me see and call patient-wait {"text": "leaving"}"#);
    if let Some(body) = &mut request.body {
        body["stream"] = true.into();
    }
    let mut response = fixture.gateway.begin(&fixture.token, &request).await?;
    let mut seen = String::new();
    // What is not ours comes at once, while the skill runs.
    while !seen.contains("let me") {
        let chunk = response.chunk().await?.context("the stream ended before the skill did")?;
        seen.push_str(&String::from_utf8_lossy(&chunk));
    }
    let is = async |wanted: fn(Phase) -> bool| {
        eventually("the run is so", CANCELLED_WITHIN, async || {
            Ok(runs_of(fixture, "patient-wait").await?.iter().any(|run| wanted(phase(run))).then_some(()))
        })
        .await
    };
    is(|phase| phase == Phase::Running).await.context("running")?;
    drop(response);
    is(|phase| phase == Phase::Cancelled).await.context("cancelled")?;
    let asked = fixture.model.asked(fixture.j, "leaving").await?;
    ensure!(asked.len() == 1, "the model was asked again for nobody");
    Ok(())
}

async fn ten_rounds_stop_at_eight(fixture: &Fixture<'_>) -> Result<()> {
    let response =
        fixture.send(&chat("rounds", r#"loop 10 word-count {"text": "rounds"}; then say done"#)).await?;
    ensure!(response.status == 200, "{} {}", response.status, response.text);
    ensure!(response.json().pointer("/choices/0/message/tool_calls").is_none(), "{}", response.text);
    let (runs, asked) =
        (fixture.executions_with("rounds").await?, fixture.model.asked(fixture.j, "rounds").await?);
    ensure!((runs.len(), asked.len()) == (8, 10), "{} runs, {} questions", runs.len(), asked.len());
    let last = asked.last().context("no question")?;
    ensure!(last.body["tool_choice"] == "none" && last.body.to_string().contains("LimitReached"), "{last:?}");
    Ok(())
}

async fn a_request_may_ask_for_fewer_rounds(fixture: &Fixture<'_>) -> Result<()> {
    let request =
        chat("fewer", r#"loop 3 word-count {"text": "fewer"}; then say done"#).with("x-skillet-rounds", "1");
    said(fixture, &request).await?;
    ensure!(fixture.executions_with("fewer").await?.len() == 1, "more than one run");
    Ok(())
}

async fn the_same_key_runs_once(fixture: &Fixture<'_>) -> Result<()> {
    let request =
        chat("once", r#"call once-only {"text": "once"}; then say done"#).with("idempotency-key", "key-1");
    let (first, second) = tokio::try_join!(said(fixture, &request), said(fixture, &request))?;
    let third = said(fixture, &request).await?;
    ensure!(object_in(&first) == Some(json!({ "text": "once" })), "{first}");
    ensure!(first == second && second == third, "{first} {second} {third}");
    let run = Request::post(
        "/api/skills/executions",
        json!({ "skill": "once-only", "input": { "text": "once, too" } }),
    );
    let run = run.with("idempotency-key", "key-2");
    let (first, second) = (fixture.send(&run).await?, fixture.send(&run).await?);
    ensure!(first.status == 200 && first.json()["output"] == json!({ "text": "once, too" }), "{first:?}");
    ensure!(first.json()["name"] == second.json()["name"], "{first:?} {second:?}");
    let runs = runs_of(fixture, "once-only").await?;
    ensure!(runs.len() == 2, "two keys, and {} executions", runs.len());
    Ok(())
}

async fn skills_are_switched_off_by_request(fixture: &Fixture<'_>) -> Result<()> {
    let request = chat("off", r#"call word-count {"text": "off"}"#);
    for (header, value) in [
        ("x-skillet-skills", "off"),
        ("x-skillet-skills", "only=upside-down"),
        ("x-skillet-own-skills", "off"),
    ] {
        let text = said(fixture, &request.clone().with(header, value)).await?;
        ensure!(text.contains("NOT OFFERED word-count"), "{header}: {value}: {text}");
    }
    ensure!(fixture.executions_with("off").await?.is_empty(), "a skill was run that was not offered");
    Ok(())
}

async fn a_dry_run_asks_nobody(fixture: &Fixture<'_>) -> Result<()> {
    let request = chat("dry", r#"call word-count {"text": "dry"}"#).with("x-skillet-dry-run", "true");
    let response = fixture.send(&request).await?.json();
    ensure!(response["offered"]["word-count"]["namespace"] == fixture.j.namespace, "{response}");
    ensure!(response["request"]["tools"][0]["function"]["name"] == "word-count", "{response}");
    ensure!(fixture.model.asked(fixture.j, "dry").await?.is_empty(), "the model was asked");
    Ok(())
}

/// The call comes to the client with a question, and is run once when the next request says yes, however often it does.
async fn a_person_confirms_a_call(fixture: &Fixture<'_>) -> Result<()> {
    let request = chat("asking", r#"call pay-bill {"text": "bill"}; then say done"#);
    let asked = fixture.send(&request).await?.json();
    let message = asked.pointer("/choices/0/message").context("no message")?;
    ensure!(message["tool_calls"][0]["function"]["name"] == "pay-bill", "{asked}");
    ensure!(fixture.executions_with("bill").await?.is_empty(), "it was run before anybody said yes");
    let text = message["content"].as_str().unwrap_or_default();
    let word = text
        .match_indices('{')
        .find_map(|(at, _)| object_in(&text[at..]).filter(|it| it["token"].is_string()));
    let word = word.with_context(|| format!("no token in {text}"))?;
    let response = async |word: &Value| {
        let mut next = request.clone();
        let messages =
            next.body.as_mut().and_then(|body| body["messages"].as_array_mut()).context("no messages")?;
        let result = json!({ "role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": word.to_string() });
        messages.extend([message.clone(), result]);
        said(fixture, &next).await
    };
    let refused = response(&json!({ "skillet": "refuse" })).await?;
    ensure!(refused.contains("NotConfirmed"), "{refused}");
    ensure!(fixture.executions_with("bill").await?.is_empty(), "it was run although it was refused");
    let (first, second) = (response(&word).await?, response(&word).await?);
    ensure!(object_in(&first) == Some(json!({ "text": "bill" })) && first == second, "{first} {second}");
    ensure!(fixture.executions_with("bill").await?.len() == 1, "run more than once");
    Ok(())
}

/// A router that calls the model itself has its request made ready, and its answer carried on.
async fn a_router_asks_the_model_itself(fixture: &Fixture<'_>) -> Result<()> {
    let asked =
        chat("router", r#"call word-count {"text": "router"}; then say done"#).body.unwrap_or_default();
    let injected = fixture
        .send(&Request::post("/v1/inject", json!({ "dialect": "openai-chat", "request": asked })))
        .await?;
    ensure!(injected.status == 200, "{injected:?}");
    let injected = injected.json();
    let arguments = json!({ "text": "router" }).to_string();
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "word-count", "arguments": arguments } });
    let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let response = json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "tool_calls" }] });
    let intercept = json!({
        "dialect": "openai-chat", "request": injected["request"], "offered": injected["offered"], "answer": response,
    });
    let intercepted = fixture.send(&Request::post("/v1/intercept", intercept)).await?;
    ensure!(intercepted.status == 200, "{intercepted:?}");
    let next = &intercepted.json()["nextRequest"];
    let last = next["messages"].as_array().and_then(|messages| messages.last()).context("no next request")?;
    let result: Value = serde_json::from_str(last["content"].as_str().unwrap_or_default())?;
    ensure!(last["tool_call_id"] == "c1" && result["words"] == 1, "{last}");
    Ok(())
}

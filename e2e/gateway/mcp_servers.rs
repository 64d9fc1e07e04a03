//! MCP servers of skills: a model reads a skill, gets the tools of its server, and calls them in one session of the conversation.

use anyhow::{Context as _, Result, ensure};
use kube::api::ListParams;
use serde_json::{Value, json};
use skillet_api::SkillExecution;
use skillet_e2e::{
    agent::{Request, chat},
    journey_under,
    notes::{notes, token},
};

use crate::fixture::{Fixture, word_count};

#[tokio::test(flavor = "multi_thread")]
async fn a_model_calls_the_tools_of_a_server_whose_skill_it_has_read() -> Result<()> {
    journey_under(json!({}), async |j| {
        let fixture = &Fixture::set_up(j, &[word_count()]).await?;
        j.apply(&token()).await?;
        let described = notes().spec("description", "Keeps notes.");
        let name = j.apply(&described).await?.metadata.name.unwrap_or_default();
        j.ready(&name).await?;
        let script = r#"call skill {"name": "notes"}; then call mcp__python__add {"a": 1}; then call mcp__python__add {"a": 2}; then say done"#;
        let request = chat("keeper", script);
        let answer = send(fixture, &request).await?;
        let asked = fixture.model.asked(fixture.j, "keeper").await?;
        let last = asked.last().context("the model was not asked")?.body.to_string();
        ensure!(last.contains("noted 1 hello") && last.contains("noted 2 hello"), "{last}");
        ensure!(!last.contains("hunter2"), "the model reads a secret");
        let next = r#"call mcp__python__add {"a": 3}; then say done"#;
        let messages = json!([{ "role": "user", "content": script }, answer["choices"][0]["message"],
            { "role": "user", "content": next }]);
        let mut later = request.clone();
        later.body.as_mut().context("no body")?["messages"] = messages;
        send(fixture, &later).await?;
        let asked = fixture.model.asked(fixture.j, "keeper").await?;
        let last = asked.last().context("the model was not asked")?.body.to_string();
        ensure!(last.contains("noted 3 hello"), "the server lost its state: {last}");
        let all = fixture.j.api::<SkillExecution>().list(&ListParams::default()).await?.items;
        let sessions = all.iter().filter(|made| made.spec.mcp_server.as_deref() == Some("python")).count();
        ensure!(sessions == 1, "{sessions} sessions of one conversation");
        Ok(())
    })
    .await
}

async fn send(fixture: &Fixture<'_>, request: &Request) -> Result<Value> {
    let response = fixture.send(request).await?;
    ensure!(response.status == 200, "{} {}", response.status, response.text);
    Ok(response.json())
}

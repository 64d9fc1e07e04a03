//! MCP servers of a skill in sandboxes: a session that keeps its state, its calls, its end, and what it may not do.

use anyhow::{Result, ensure};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use skillet_api::{Phase, Reason, SkillExecution, SkillExecutionSpec, mcp::McpCall};
use skillet_e2e::{
    Journey,
    execute::spec,
    journey,
    notes::{notes, token},
};

async fn apply(j: &Journey) -> Result<()> {
    j.apply(&token()).await?;
    j.apply(&notes()).await?;
    Ok(())
}

async fn open(j: &Journey, server: &str) -> Result<SkillExecution> {
    j.start_with(SkillExecutionSpec { mcp_server: Some(server.to_owned()), ..spec("notes") }).await
}

async fn start(
    j: &Journey,
    session: &SkillExecution,
    tool: Option<&str>,
    input: Value,
) -> Result<SkillExecution> {
    let call = McpCall { session: session.name_any(), tool: tool.map(ToOwned::to_owned) };
    let input = tool.is_some().then_some(input);
    j.start_with(SkillExecutionSpec { mcp_call: Some(call), input, ..spec("notes") }).await
}

#[tokio::test]
async fn a_server_keeps_its_state_between_calls_and_tells_of_failures() -> Result<()> {
    journey(async |j| {
        apply(j).await?;
        let session = open(j, "python").await?;
        let call = async |input: Value| {
            let execution = start(j, &session, Some("add"), input).await?;
            j.ended(&execution).await
        };
        let listed = start(j, &session, None, Value::Null).await?;
        let listed = j.ended(&listed).await?.output();
        ensure!(listed["tools"][0]["name"] == "add", "{listed}");
        for count in 1..4 {
            let text = format!("noted {count} hello ***");
            let expected = json!({ "content": [{ "type": "text", "text": text }] });
            ensure!(call(json!({})).await?.output() == expected, "{text}");
        }
        let failed = call(json!({ "do": "fail" })).await?;
        failed.is(Phase::Failed, Reason::ToolFailed).says(&["no such note"]);
        let large = call(json!({ "do": "large" })).await?;
        ensure!(
            large.output()["content"][0]["text"].as_str().map(str::len) == Some(300_000),
            "a large answer"
        );
        let network = call(json!({ "do": "network" })).await?.output();
        ensure!(!network.to_string().contains("connected"), "{network}");
        call(json!({ "do": "sleep" })).await?.is(Phase::TimedOut, Reason::TimedOut);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_server_that_ends_ends_its_calls_and_one_that_nobody_calls_ends_itself() -> Result<()> {
    journey(async |j| {
        apply(j).await?;
        let (python, node) = tokio::try_join!(open(j, "python"), open(j, "node"))?;
        let ends = async {
            let exit = start(j, &python, Some("add"), json!({ "do": "exit" })).await?;
            j.ended(&exit).await?.is(Phase::Failed, Reason::SessionEnded).says(&[&python.name_any()]);
            j.ended(&python).await?.is(Phase::Failed, Reason::ExitCode).says(&["greet"]);
            let late = start(j, &python, Some("add"), json!({})).await?;
            j.ended(&late).await?.is(Phase::Failed, Reason::SessionEnded).says(&["spec.mcpServer"]);
            anyhow::Ok(())
        };
        let idles = async {
            let hi = start(j, &node, Some("hi"), json!({})).await?;
            ensure!(j.ended(&hi).await?.output()["content"][0]["text"] == "node", "node answers");
            ensure!(j.ended(&node).await?.output() == json!({ "calls": 1 }), "an idle server ends");
            anyhow::Ok(())
        };
        tokio::try_join!(ends, idles)?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_cannot_be_called_says_why() -> Result<()> {
    journey(async |j| {
        apply(j).await?;
        let absent =
            j.start_with(SkillExecutionSpec { mcp_server: Some("none".into()), ..spec("notes") }).await?;
        j.ended(&absent).await?.is(Phase::Failed, Reason::ServerNotFound).says(&["node, python"]);
        let nobody = start(j, &absent, Some("add"), json!({})).await?;
        j.ended(&nobody).await?.is(Phase::Failed, Reason::SessionEnded);
        let session = open(j, "python").await?;
        let text = start(j, &session, Some("add"), json!("text")).await?;
        j.ended(&text).await?.is(Phase::Failed, Reason::InputInvalid).says(&["spec.input"]);
        j.cancel(&session).await?.0.is(Phase::Cancelled, Reason::Cancelled);
        Ok(())
    })
    .await
}

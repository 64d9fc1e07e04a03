//! Sessions with MCP servers whose operator is killed: no call is delivered twice, nothing hangs, and a new session works.

use anyhow::{Result, ensure};
use kube::{ResourceExt as _, api::DeleteParams};
use serde_json::{Value, json};
use skillet_api::{Phase, Reason, SkillExecution, SkillExecutionSpec, mcp::McpCall};
use skillet_e2e::{
    Journey,
    execute::spec,
    journey_under,
    notes::{notes, token},
    operator,
};

async fn open(j: &Journey) -> Result<SkillExecution> {
    j.start_with(SkillExecutionSpec { mcp_server: Some("python".into()), ..spec("notes") }).await
}

async fn start(j: &Journey, session: &SkillExecution, input: Value) -> Result<SkillExecution> {
    let call = McpCall { session: session.name_any(), tool: Some("add".into()) };
    j.start_with(SkillExecutionSpec { mcp_call: Some(call), input: Some(input), ..spec("notes") }).await
}

#[tokio::test]
async fn a_session_ends_with_its_operator_and_the_next_one_starts_anew() -> Result<()> {
    journey_under(json!({}), async |j| {
        j.apply(&token()).await?;
        j.apply(&notes().spec("limits", json!({ "timeout": "5m" }))).await?;
        let session = open(j).await?;
        let first = start(j, &session, json!({})).await?;
        ensure!(j.ended(&first).await?.output().to_string().contains("noted 1"), "the server answers");
        let waiting = start(j, &session, json!({ "do": "sleep" })).await?;
        operator::delete(&j.client, &DeleteParams::default().grace_period(0)).await?;
        j.ended(&waiting).await?.is(Phase::Failed, Reason::SessionEnded);
        // However it ended, it did: the input of its server was closed.
        let ended = j.ended(&session).await?;
        ensure!(ended.status.phase.is_terminal(), "{:?}", ended.status);
        let late = start(j, &session, json!({})).await?;
        j.ended(&late).await?.is(Phase::Failed, Reason::SessionEnded);
        let next = open(j).await?;
        let call = start(j, &next, json!({})).await?;
        ensure!(j.ended(&call).await?.output().to_string().contains("noted 1"), "a new session is new");
        Ok(())
    })
    .await
}

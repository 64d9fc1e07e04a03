//! Every provider's own SDK carries conversations to their end: a skill is offered, called, run in a sandbox,
//! answered, and the model's last words come back. Whole and streamed, alone, beside a tool of the client's own, and
//! after a person's word.

use std::collections::HashMap;

use anyhow::{Context as _, Result, ensure};
use futures::future::{join_all, try_join_all};
use kube::api::ListParams;
use serde_json::{Value, json};
use skillet_api::{Phase, SkillExecution};
use skillet_e2e::journey_under;

use crate::{
    clients::Language,
    fixture::{Fixture, object_in, upside_down, word_count, word_tally},
};

/// A script of `clients/`, and what it can speak.
const SDKS: [(Language, &str, &[&str]); 6] = [
    (Language::Python, "openai_sdk", &["chat", "responses"]),
    (Language::Python, "anthropic_sdk", &["messages"]),
    (Language::Python, "google_sdk", &["generate"]),
    (Language::Node, "openai_sdk", &["chat", "responses"]),
    (Language::Node, "anthropic_sdk", &["messages"]),
    (Language::Node, "google_sdk", &["generate"]),
];
/// Characters that arguments escape, and some that take more than a byte.
const AWKWARD: &str = "\"quoted\" \\ back\nslash é 网页";
const OWN_RESULT: &str = "sunny";

/// The side that runs a call of a conversation.
#[derive(Clone, Copy, PartialEq)]
enum Calls {
    Skill,
    /// The client's own tool, too.
    Beside,
    /// A skill that is run when the client says yes.
    Confirmed,
}

/// One conversation of one SDK.
struct Conversation {
    /// The model's name in it, by which it is found in log and executions.
    name: String,
    api: &'static str,
    is_streamed: bool,
    calls: Calls,
}

impl Conversation {
    fn all_of(language: Language, script: &str, apis: &[&'static str]) -> Vec<Self> {
        let mut all = Vec::new();
        for &api in apis {
            for (calls, of) in
                [(Calls::Skill, ""), (Calls::Beside, "-beside"), (Calls::Confirmed, "-confirmed")]
            {
                for (is_streamed, streamed) in [(false, ""), (true, "-streamed")] {
                    let name = format!("{language:?}-{script}-{api}{streamed}{of}").to_lowercase();
                    all.push(Self { name, api, is_streamed, calls });
                }
            }
        }
        all
    }

    fn skill(&self) -> &'static str {
        match self.calls {
            Calls::Skill | Calls::Beside => "word-count",
            Calls::Confirmed => "word-tally",
        }
    }

    /// The skill's input.
    fn text(&self) -> String {
        format!("{} {AWKWARD}", self.name)
    }

    fn words(&self) -> usize {
        self.text().split_whitespace().count()
    }

    fn task(&self) -> Value {
        let input = json!({ "text": self.text() });
        let is_beside = self.calls == Calls::Beside;
        let own_call = if is_beside { r#" and call look-up {"city": "Zürich"}"# } else { "" };
        let calls = format!("{} {input}{own_call}", self.skill());
        let own = is_beside.then(|| json!({ "name": "look-up", "result": OWN_RESULT }));
        json!({
            "model": self.name, "api": self.api, "stream": self.is_streamed, "own": own,
            "confirm": self.calls == Calls::Confirmed, "prompt": format!("say let me see and call {calls}; then say done"),
        })
    }

    /// Checks the client's output.
    fn check(&self, response: &Value) -> Result<()> {
        ensure!(response["error"].is_null(), "failed: {response}");
        ensure!(response["streamed"] == self.is_streamed, "streamed: {response}");
        let text = response["text"].as_str().context("no text")?;
        let then = response["then"].as_str().unwrap_or_default();
        match self.calls {
            Calls::Skill => {
                self.check_result(text)?;
                ensure!(response["toolCalls"] == json!([]), "a call of ours reached the client: {response}");
                ensure!(text.contains("done"), "not the model's last words: {response}");
                ensure!(response["usage"] == json!([20, 10]), "usage is not that of two rounds: {response}");
            }
            Calls::Beside => {
                ensure!(object_in(text).is_none(), "the model's turn has a result of a skill: {response}");
                let own = json!([{ "name": "look-up", "input": { "city": "Zürich" } }]);
                ensure!(response["toolCalls"] == own, "not the client's call: {response}");
                ensure!(then.contains("done") && then.contains(OWN_RESULT), "not continued: {response}");
                self.check_result(then).context("the model does not know the skill's result")?;
            }
            Calls::Confirmed => {
                let asked = json!([{ "name": self.skill(), "input": { "text": self.text() } }]);
                ensure!(
                    response["toolCalls"] == asked,
                    "the call is not the client's to confirm: {response}"
                );
                self.check_result(then)?;
                ensure!(then.contains("done"), "not continued: {response}");
            }
        }
        Ok(())
    }

    fn check_result(&self, text: &str) -> Result<()> {
        let result = object_in(text).with_context(|| format!("no result in {text:?}"))?;
        let expected = json!({ "words": self.words(), "text": self.text() });
        ensure!(result == expected, "another result: {text}");
        Ok(())
    }

    /// Checks the model's requests and the cluster's executions.
    async fn check_behind(
        &self,
        fixture: &Fixture<'_>,
        runs: &HashMap<String, Vec<SkillExecution>>,
    ) -> Result<()> {
        let asked = fixture.model.asked(fixture.j, &self.name).await?;
        ensure!(asked.len() == 2, "the model was asked {} times", asked.len());
        for asked in &asked {
            let tools = asked.tools();
            let skill = self.skill();
            ensure!(tools.iter().any(|tool| tool == skill), "not offered {skill}: {tools:?}");
            ensure!(!tools.iter().any(|tool| tool == "upside-down"), "offered what does not fit: {tools:?}");
            ensure!(asked.keys.is_empty(), "keys reached the provider: {:?}", asked.keys);
            ensure!(!asked.headers.to_string().contains(&fixture.token), "the token reached the provider");
        }
        let runs = runs.get(&self.text()).map_or(&[][..], Vec::as_slice);
        let [run] = runs else { anyhow::bail!("there are {} executions, not one", runs.len()) };
        let status = run.status.clone().unwrap_or_default();
        ensure!(status.phase == Phase::Succeeded && status.job.is_some(), "ended otherwise: {status:?}");
        let caller = run.spec.caller.as_deref().unwrap_or_default();
        ensure!(caller.contains(&fixture.j.namespace), "no execution names its caller: {caller:?}");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_sdk_carries_its_conversations_to_their_end() -> Result<()> {
    journey_under(json!({}), async |j| {
        let fixture = Fixture::set_up(j, &[word_count(), word_tally(), upside_down()]).await?;
        let spoken = try_join_all(SDKS.map(async |(language, script, apis)| {
            let conversations = Conversation::all_of(language, script, apis);
            let tasks: Vec<Value> = conversations.iter().map(Conversation::task).collect();
            let responses = fixture.clients.run(language, script, fixture.way(), &tasks).await?;
            anyhow::Ok(conversations.into_iter().zip(responses).collect::<Vec<_>>())
        }));
        let (spoken, mcp, inspector) =
            tokio::join!(spoken, mcp_client_lists_and_calls(&fixture), inspector_lists_and_calls(&fixture));
        let mut wrong = Vec::new();
        wrong.extend(mcp.err().map(|error| format!("the MCP client: {error:#}")));
        wrong.extend(inspector.err().map(|error| format!("the MCP inspector: {error:#}")));
        let runs = by_text(&fixture).await?;
        let spoken = spoken?.into_iter().flatten();
        let checked = join_all(spoken.map(async |(conversation, response)| {
            let behind = conversation.check_behind(&fixture, &runs).await;
            let found = [conversation.check(&response), behind].map(Result::err).into_iter().flatten();
            found.map(|error| format!("{}: {error:#}", conversation.name)).collect::<Vec<_>>()
        }));
        wrong.extend(checked.await.into_iter().flatten());
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    })
    .await
}

async fn by_text(fixture: &Fixture<'_>) -> Result<HashMap<String, Vec<SkillExecution>>> {
    let mut found: HashMap<String, Vec<SkillExecution>> = HashMap::new();
    for run in fixture.j.api::<SkillExecution>().list(&ListParams::default()).await? {
        let text = run.spec.input.as_ref().and_then(|input| input["text"].as_str()).unwrap_or_default();
        found.entry(text.to_owned()).or_default().push(run);
    }
    Ok(found)
}

/// Both of today's protocol and of the one before, which opens a session.
async fn mcp_client_lists_and_calls(fixture: &Fixture<'_>) -> Result<()> {
    for mode in ["auto", "legacy"] {
        let text = format!("mcp-{mode} {AWKWARD}");
        let tasks = [
            json!({ "mode": mode, "list": true }),
            json!({ "mode": mode, "call": "word-count", "arguments": { "text": text } }),
            json!({ "mode": mode, "call": "word-count", "arguments": { "txt": 1 } }),
        ];
        let responses = fixture.clients.run(Language::Python, "mcp_sdk", fixture.way(), &tasks).await?;
        let [listed, called, refused] = &responses[..] else { anyhow::bail!("{responses:?}") };
        lists_the_skills(&listed["tools"]).with_context(|| mode)?;
        let words = text.split_whitespace().count();
        let expected = json!({ "words": words, "text": text });
        ensure!(called["isError"] == false && called["structured"] == expected, "{mode}: {called}");
        ensure!(refused["isError"] == true, "{mode}: {refused}");
        ensure!(refused["text"].as_str().unwrap_or_default().contains("InputInvalid"), "{mode}: {refused}");
        let runs = fixture.executions_with(&text).await?;
        ensure!(runs.len() == 1, "{mode}: {} executions", runs.len());
    }
    Ok(())
}

async fn inspector_lists_and_calls(fixture: &Fixture<'_>) -> Result<()> {
    let listed = fixture.clients.inspect(fixture.way(), &["--method", "tools/list"]);
    let call = ["--method", "tools/call", "--tool-name", "upside-down", "--tool-arg", "text=abc"];
    let (listed, called) = tokio::try_join!(listed, fixture.clients.inspect(fixture.way(), &call))?;
    lists_the_skills(&listed["tools"])?;
    ensure!(called["structuredContent"]["reversed"] == "cba", "{called}");
    Ok(())
}

/// Whatever a request's text fits to, MCP lists every skill that may be run.
fn lists_the_skills(tools: &Value) -> Result<()> {
    let tools = tools.as_array().context("no list of tools")?;
    for name in ["word-count", "upside-down"] {
        let tool = tools.iter().find(|tool| tool["name"] == name);
        let tool = tool.with_context(|| format!("{name} is not listed: {tools:?}"))?;
        ensure!(tool["inputSchema"]["properties"]["text"]["type"] == "string", "another schema: {tool}");
    }
    Ok(())
}

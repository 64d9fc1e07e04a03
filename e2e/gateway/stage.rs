//! What every journey of this lane begins with: the model, the way to the gateway, an agent with its token, skills.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use kube::api::ListParams;
use serde_json::{Value, json};
use skillet_api::SkillExecution;
use skillet_e2e::{Journey, SkillDraft, eventually, policy};

use crate::{
    access::{Answer, Ask, Gateway},
    clients::Clients,
    model::Model,
    tenant,
};

/// Rights that were refused are remembered for some seconds by the gateway, and new ones are not there at once.
const SET_WITHIN: Duration = Duration::from_secs(40);

pub(crate) struct Stage<'a> {
    pub(crate) j: &'a Journey,
    pub(crate) gateway: Gateway,
    pub(crate) model: Model,
    pub(crate) clients: &'static Clients,
    pub(crate) token: String,
}

impl<'a> Stage<'a> {
    /// Everything is there and in force when this returns.
    pub(crate) async fn set(j: &'a Journey, skills: &[SkillDraft]) -> Result<Self> {
        let agent = async {
            tenant::make(&j.client, &j.namespace).await?;
            tenant::token(&j.client, &j.namespace).await
        };
        let there = try_join_all(skills.iter().map(async |draft| {
            let name = j.apply(draft).await?.metadata.name.unwrap_or_default();
            j.ready(&name).await?;
            anyhow::Ok(name)
        }));
        let model = async {
            let model = Model::start(j).await?;
            policy::change(&j.client, model.policy()).await?;
            Ok(model)
        };
        let (gateway, clients, token, names, model) =
            tokio::try_join!(Gateway::open(), Clients::installed(), agent, there, model)?;
        let stage = Self { j, gateway, model, clients, token };
        eventually("the model answers through the gateway, offered every skill", SET_WITHIN, async || {
            let answer = stage.offered_exactly(&names).await?;
            ensure!(answer.status == 200, "{} {}", answer.status, answer.text);
            let offered = answer.names("x-skillet-offered");
            Ok(names.iter().all(|name| offered.contains(name)).then_some(()))
        })
        .await?;
        Ok(stage)
    }

    async fn offered_exactly(&self, names: &[String]) -> Result<Answer> {
        let ask =
            chat("setting", "say ready").with("x-skillet-skills", &format!("exactly={}", names.join(",")));
        self.ask(&ask).await
    }

    /// Asks as the agent.
    pub(crate) async fn ask(&self, ask: &Ask) -> Result<Answer> {
        self.gateway.send(&self.token, ask).await
    }

    /// URL and token, for a client.
    pub(crate) fn way(&self) -> (&str, &str) {
        (&self.gateway.url, &self.token)
    }

    /// Executions whose input has this text.
    pub(crate) async fn executions_with(&self, text: &str) -> Result<Vec<SkillExecution>> {
        let all = self.j.api::<SkillExecution>().list(&ListParams::default()).await?.items;
        let has = |value: &Option<Value>| value.as_ref().is_some_and(|input| input["text"] == text);
        Ok(all.into_iter().filter(|execution| has(&execution.spec.input)).collect())
    }
}

/// A chat request with a script for the model.
pub(crate) fn chat(model: &str, script: &str) -> Ask {
    let messages = json!([{ "role": "user", "content": script }]);
    Ask::post("/v1/chat/completions", json!({ "model": model, "messages": messages }))
}

/// The first JSON object in a text.
pub(crate) fn object_in(text: &str) -> Option<Value> {
    let (at, _) = text.char_indices().find(|(_, c)| *c == '{')?;
    serde_json::Deserializer::from_str(text.get(at..)?).into_iter().next()?.ok()
}

const TEXT: &str = r#"{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": false}"#;

/// A skill whose input is a text.
pub(crate) fn of_text(draft: SkillDraft, description: &str) -> SkillDraft {
    draft.input_schema(serde_json::from_str(TEXT).unwrap_or_default()).spec("description", description)
}

/// Counts words, and gives back what it was given.
pub(crate) fn word_count() -> SkillDraft {
    let script = "import json, sys\n\
        text = json.load(sys.stdin)['text']\n\
        print(json.dumps({'words': len(text.split()), 'text': text}))\n";
    of_text(SkillDraft::python("word-count", script), "Counts the words of a text.")
}

/// Counts characters, in the other language.
pub(crate) fn char_count() -> SkillDraft {
    let script = "jq -c '{characters: (.text | length), text: .text}'";
    of_text(SkillDraft::shell("char-count", script), "Counts the characters of a text.")
}

#[test]
fn the_first_object_of_a_text_is_found() {
    assert_eq!(object_in("RESULT {\"a\": \"}\"}\nmore {"), Some(json!({ "a": "}" })));
    assert_eq!(object_in("nothing"), None);
}

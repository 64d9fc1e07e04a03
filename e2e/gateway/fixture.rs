//! The start of every journey in this lane: the model, the way to the gateway, an agent with its token, skills.

use anyhow::Result;
use futures::future::try_join_all;
use kube::api::ListParams;
use serde_json::{Value, json};
use skillet_api::SkillExecution;
use skillet_e2e::{
    Journey, SkillDraft,
    agent::{GatewayClient, Model, Request, Response, model::PROVIDERS, tenant},
    policy,
};

use crate::clients::Clients;

pub(crate) struct Fixture<'a> {
    pub(crate) j: &'a Journey,
    pub(crate) gateway: GatewayClient,
    pub(crate) model: Model,
    pub(crate) clients: &'static Clients,
    pub(crate) token: String,
}

impl<'a> Fixture<'a> {
    /// Everything is there and in force when this returns.
    pub(crate) async fn set_up(j: &'a Journey, skills: &[SkillDraft]) -> Result<Self> {
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
            policy::change(&j.client, model.policy(&PROVIDERS)).await?;
            Ok(model)
        };
        let (gateway, clients, token, names, model) =
            tokio::try_join!(GatewayClient::open(), Clients::installed(), agent, there, model)?;
        gateway.offers(&token, &names).await?;
        Ok(Self { j, gateway, model, clients, token })
    }

    /// Asks as the agent.
    pub(crate) async fn send(&self, request: &Request) -> Result<Response> {
        self.gateway.send(&self.token, request).await
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
    counting("word-count")
}

/// The same, when a person has said yes.
pub(crate) fn word_tally() -> SkillDraft {
    counting("word-tally").spec("invocation", "hybrid")
}

fn counting(name: &str) -> SkillDraft {
    let script = "import json, sys\n\
        text = json.load(sys.stdin)['text']\n\
        print(json.dumps({'words': len(text.split()), 'text': text}))\n";
    of_text(SkillDraft::python(name, script), "Counts the words of a text.")
}

/// Turns a text around, in the other language. No word of it is in a request that does not ask for it.
pub(crate) fn upside_down() -> SkillDraft {
    let script = "jq -c '{reversed: (.text | explode | reverse | implode)}'";
    of_text(SkillDraft::shell("upside-down", script), "Reverses characters.")
}

#[test]
fn the_first_object_of_a_text_is_found() {
    assert_eq!(object_in("RESULT {\"a\": \"}\"}\nmore {"), Some(json!({ "a": "}" })));
    assert_eq!(object_in("nothing"), None);
}

//! The world of every row: skills to run and to be refused, callers with and without rights, a directory for files.

use std::{collections::BTreeMap, env, fs, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use skillet_api::{ApiKey, Skill};
use skillet_e2e::{
    Journey, SkillDraft,
    agent::{GatewayClient, Request, tenant},
    eventually,
};

const ALLOWED_WITHIN: Duration = Duration::from_secs(20);
const SOMEBODY_ELSE: &str = "https://kubernetes.default.svc";

pub(crate) struct Stage<'a> {
    pub(crate) j: &'a Journey,
    pub(crate) gateway: GatewayClient,
    pub(crate) http: reqwest::Client,
    pub(crate) directory: PathBuf,
    tokens: BTreeMap<&'static str, String>,
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.directory).ok();
    }
}

/// Providers that answer nothing, wherever this runs: one refuses connections, one lacks its key.
pub(crate) fn policy() -> Value {
    json!({ "gateway": { "providers": {
        "openai": { "baseUrl": "http://127.0.0.1:9" },
        "additional": [
            { "name": "keyless", "dialect": "OpenAI", "models": ["keyless*"], "keySecret": { "name": "no-such-secret" } },
        ],
    } } })
}

impl<'a> Stage<'a> {
    pub(crate) async fn set_up(j: &'a Journey) -> Result<Self> {
        tenant::make(&j.client, &j.namespace).await?;
        for draft in skills() {
            let applied = j.apply(&draft).await?;
            j.observed(&applied.metadata.name.unwrap_or_default()).await?;
        }
        let directory = env::temp_dir().join(format!("{}-mistakes", j.namespace));
        fs::create_dir_all(&directory)?;
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build()?;
        let (gateway, tokens) = (GatewayClient::open().await?, tokens(j).await?);
        let stage = Self { j, gateway, http, directory, tokens };
        eventually("the agent may use its skills", ALLOWED_WITHIN, async || {
            let token = stage.token("agent")?;
            let found = stage.gateway.send(token, &Request::get("/api/skills/any")).await?;
            Ok((found.status == 200).then_some(()))
        })
        .await?;
        Ok(stage)
    }

    pub(crate) fn token(&self, caller: &str) -> Result<&str> {
        self.tokens.get(caller).map(String::as_str).with_context(|| format!("no caller {caller}"))
    }

    /// The conditions of a Skill as `kubectl describe` shows them.
    pub(crate) async fn conditions(&self, skill: &str) -> Result<String> {
        let status = self.j.api::<Skill>().get(skill).await?.status.unwrap_or_default();
        let line = |condition: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
            format!("{} {} {}: {}\n", condition.type_, condition.status, condition.reason, condition.message)
        };
        Ok(status.conditions.iter().map(line).collect())
    }
}

/// A name of an object and a file, from the words of a mistake.
pub(crate) fn name_of(mistake: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = mistake.chars().take(48).map(plain).collect();
    name.trim_matches('-').to_owned()
}

fn skills() -> Vec<SkillDraft> {
    let described = |name: &str| SkillDraft::shell(name, "cat").spec("description", "Counts words.");
    let schema = json!({
        "type": "object",
        "required": ["text"],
        "properties": { "text": { "type": "string" } },
        "additionalProperties": false,
    });
    let secret = json!([{ "name": "TOKEN", "secret": "no-such-secret", "key": "k" }]);
    vec![
        described("skill").input_schema(schema),
        described("any"),
        described("off").spec("mode", "off"),
        described("disabled").spec("enabled", false),
        described("secretless").sandbox("secretEnv", secret),
    ]
}

/// Tokens by the name of the caller in the table.
async fn tokens(j: &Journey) -> Result<BTreeMap<&'static str, String>> {
    j.kubectl(&["create", "serviceaccount", "rightless"], "").await?;
    let rightless = j.kubectl(&["create", "token", "rightless", "--audience", "skillet"], "").await?;
    let key = async |name: &str| {
        let key = j.kubectl(&["skill", "key", "create", name, "--service-account", "agent"], "").await?;
        anyhow::Ok(key.trim().to_owned())
    };
    let expired = key("expired").await?;
    let ends = Patch::Merge(json!({ "spec": { "expiresAt": "2020-01-01T00:00:00Z" } }));
    j.api::<ApiKey>().patch("expired", &PatchParams::default(), &ends).await?;
    let mut cut = key("cut").await?;
    ensure!(cut.pop().is_some(), "the key is empty");
    Ok(BTreeMap::from([
        ("agent", tenant::token(&j.client, &j.namespace).await?),
        ("rightless", rightless.trim().to_owned()),
        ("other-audience", tenant::token_for(&j.client, &j.namespace, SOMEBODY_ELSE).await?),
        ("wrong-token", "nonsense".to_owned()),
        ("cut-key", cut),
        ("expired-key", expired),
        ("nobody", String::new()),
    ]))
}

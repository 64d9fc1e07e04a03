//! Nobody without a token is let in, and a token of one namespace sees and runs nothing of another: a table of
//! attempts by route, header, body, tool name, id, MCP call and page, all refused. Both look into a platform namespace, and
//! neither learns there of the other's runs.
//!
//! The other namespace has a skill in whose description, schema and output stands a word, and a run in the platform
//! namespace in whose input and output it stands. No answer may hold it, no attempt may run the skill, and nothing of
//! both may change.

mod requests;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};
use skillet_api::{Skill, SkillExecution, SkillVersion};
use skillet_e2e::{
    Journey, SkillDraft,
    agent::{Request, Response, chat, tenant},
    eventually,
    journey::LABEL,
    journey_under, manifest, policy,
};

use self::requests::{by_platform, by_proxy, by_rest, by_routers};
use crate::{
    clients::Language,
    fixture::{Fixture, of_text, word_count},
};

const SKILL: &str = "secret-skill";
const MARKER: &str = "secret-marker";
/// In the platform namespace: gives back what it was given.
const SHARED: &str = "echo";
/// Under which the other has run that.
const KEY: &str = "once";
const WITHIN: Duration = Duration::from_secs(40);

/// The other namespace.
struct Other {
    namespace: String,
    /// An execution there.
    execution: String,
    /// The platform's namespace.
    platform: String,
    /// The other's execution there.
    shared: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_let_in_without_a_token_and_no_token_opens_another_namespace() -> Result<()> {
    journey_under(json!({}), async |j| {
        let [other, platform] = [make_namespace(j).await?, make_namespace(j).await?];
        let tried = try_all(j, &other, &platform).await;
        let api: Api<Namespace> = Api::all(j.client.clone());
        for namespace in [other, platform] {
            api.delete(&namespace, &DeleteParams::default()).await?;
        }
        let wrong = tried?;
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    })
    .await
}

async fn try_all(j: &Journey, other: &str, platform: &str) -> Result<Vec<String>> {
    let skills = [word_count()];
    let (fixture, execution, ()) = tokio::try_join!(
        Fixture::set_up(j, &skills),
        set_up_other_tenant(j, other),
        set_up_shared_skill(j, other, platform)
    )?;
    let shared = run_shared(&fixture, other, platform).await?;
    let (namespace, platform) = (other.to_owned(), platform.to_owned());
    attempts(&fixture, &Other { namespace, execution, platform, shared }).await
}

async fn make_namespace(j: &Journey) -> Result<String> {
    let labels = json!({ LABEL: "other" });
    let namespace = json!({ "metadata": { "generateName": "e2e-other-", "labels": labels } });
    let api: Api<Namespace> = Api::all(j.client.clone());
    Ok(api.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?.name_any())
}

async fn set_up_other_tenant(j: &Journey, namespace: &str) -> Result<String> {
    let script = format!("echo '{{\"found\": \"{MARKER}\"}}'");
    let draft = of_text(SkillDraft::shell(SKILL, &script), &format!("Opens the secret-skill: a {MARKER}."));
    let schema =
        json!({ "type": "object", "properties": { "text": { "type": "string", "description": MARKER } } });
    let draft = draft.input_schema(schema).spec("mode", "on");
    manifest::apply(&j.client, namespace, draft.object()).await?;
    tenant::make(&j.client, namespace).await?;
    let execution = json!({
        "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution",
        "metadata": { "name": "secret-run" }, "spec": { "skill": SKILL, "input": {}, "sessionId": MARKER },
    });
    manifest::apply(&j.client, namespace, execution).await?;
    let api: Api<SkillExecution> = Api::namespaced(j.client.clone(), namespace);
    eventually("the other namespace's execution is over", WITHIN, async || {
        let status = api.get("secret-run").await?.status.unwrap_or_default();
        Ok(status.phase.is_terminal().then_some(()))
    })
    .await?;
    Ok("secret-run".to_owned())
}

/// A skill in the platform's namespace that the agents of both may see and run.
async fn set_up_shared_skill(j: &Journey, other: &str, platform: &str) -> Result<()> {
    let draft = of_text(SkillDraft::shell(SHARED, "jq -c '{said: .text}'"), "Says a text again.");
    manifest::apply(&j.client, platform, draft.object()).await?;
    for agent in [j.namespace.as_str(), other] {
        let role = format!("agent-of-{agent}");
        tenant::allow_in(&j.client, platform, agent, &role, &["get", "execute"]).await?;
    }
    Ok(())
}

/// The other runs the platform's skill; both agents see it when this returns.
async fn run_shared(fixture: &Fixture<'_>, other: &str, platform: &str) -> Result<String> {
    let client = &fixture.j.client;
    policy::change(client, json!({ "gateway": { "platformNamespaces": [platform] } })).await?;
    let theirs = tenant::token(client, other).await?;
    let body = json!({ "skill": SHARED, "input": { "text": MARKER }, "sessionId": MARKER });
    let run = Request::post("/api/skills/executions", body).with("idempotency-key", KEY);
    let seen = Request::get(format!("/api/skills/{SHARED}"));
    eventually("the other runs the platform's skill, which both see", WITHIN, async || {
        let response = fixture.gateway.send(&theirs, &run).await?;
        let is_run = response.status == 200 && response.text.contains(MARKER);
        if !is_run || fixture.send(&seen).await?.status != 200 {
            return Ok(None);
        }
        let run: Value = serde_json::from_str(&response.text)?;
        ensure!(run["namespace"] == *platform, "it was run in {}", run["namespace"]);
        Ok(run["name"].as_str().map(str::to_owned))
    })
    .await
}

/// Everything in the other namespace that an attempt could change or add.
async fn state(fixture: &Fixture<'_>, other: &Other) -> Result<Vec<(String, Option<String>)>> {
    let client = || fixture.j.client.clone();
    let all = ListParams::default();
    let skills = Api::<Skill>::namespaced(client(), &other.namespace).list(&all).await?;
    let versions = Api::<SkillVersion>::namespaced(client(), &other.namespace).list(&all).await?;
    let runs = Api::<SkillExecution>::namespaced(client(), &other.namespace).list(&all).await?;
    let skills = skills.iter().map(|skill| (skill.name_any(), skill.resource_version()));
    let versions = versions.iter().map(|version| (version.name_any(), version.resource_version()));
    let runs = runs.iter().map(|run| (run.name_any(), run.resource_version()));
    let shared = Api::<SkillExecution>::namespaced(client(), &other.platform).get(&other.shared).await?;
    let shared = [(shared.name_any(), shared.resource_version())];
    Ok(skills.chain(versions).chain(runs).chain(shared).collect())
}

/// All of them, and what is wrong with how they were answered.
async fn attempts(fixture: &Fixture<'_>, other: &Other) -> Result<Vec<String>> {
    // First that there is something to be found: the other's own agent sees and runs it.
    let own = tenant::token(&fixture.j.client, &other.namespace).await?;
    eventually("the other namespace's agent sees its skill", WITHIN, async || {
        let response = fixture.gateway.send(&own, &Request::get(format!("/api/skills/{SKILL}"))).await?;
        Ok((response.status == 200 && response.text.contains(MARKER)).then_some(()))
    })
    .await?;
    let before = state(fixture, other).await?;
    let mut wrong = Vec::new();
    for requests in [by_proxy(other), by_routers(other), by_rest(other), by_platform(other)] {
        let responses =
            join_all(requests.iter().map(async |request| (request, fixture.send(request).await))).await;
        wrong.extend(responses.into_iter().filter_map(|(request, response)| leak_in(request, response)));
    }
    wrong.extend(by_key(fixture, other).await?);
    wrong.extend(by_mcp(fixture, other).await?);
    wrong.extend(by_tokens(fixture, &own).await?);
    let after = state(fixture, other).await?;
    if before != after {
        wrong.push(format!("the other namespace was changed: {before:?} {after:?}"));
    }
    let here = fixture.j.api::<SkillExecution>().list(&ListParams::default()).await?;
    wrong.extend(here.iter().map(|run| format!("{} was made for {}", run.name_any(), run.spec.skill)));
    Ok(wrong)
}

/// Whatever the status, it is none of the server's faults, and the word is not in it.
fn leak_in(request: &Request, response: Result<Response>) -> Option<String> {
    let request = format!("{} {} {:?} {:?}", request.method, request.path, request.headers, request.body);
    match response {
        Err(error) => Some(format!("{request} was not answered: {error:#}")),
        Ok(response) if response.status >= 500 => {
            Some(format!("{request}: {} {}", response.status, response.text))
        }
        Ok(response) if response.text.contains(MARKER) => {
            Some(format!("{request} reveals: {}", response.text))
        }
        Ok(response) if response.names("x-skillet-offered").iter().any(|name| name.contains(SKILL)) => {
            Some(format!("{request} was offered the other's skill"))
        }
        Ok(_) => None,
    }
}

/// The other's key is another key in anybody else's hand: it makes a run of one's own.
async fn by_key(fixture: &Fixture<'_>, other: &Other) -> Result<Vec<String>> {
    let body = json!({ "skill": SHARED, "input": { "text": "mine" } });
    let run = Request::post("/api/skills/executions", body).with("idempotency-key", KEY);
    let response = fixture.send(&run).await?;
    let is_own =
        response.status == 200 && response.text.contains("mine") && !response.text.contains(&other.shared);
    let leak = leak_in(&run, Ok(response));
    let not_own = (!is_own).then(|| "the other's key does not make a run of one's own".to_owned());
    Ok(leak.into_iter().chain(not_own).collect())
}

async fn by_mcp(fixture: &Fixture<'_>, other: &Other) -> Result<Vec<String>> {
    let Other { namespace, execution, platform, shared } = other;
    let call = |tool: &str, arguments: Value| json!({ "call": tool, "arguments": arguments });
    let tasks = [
        json!({ "list": true }),
        json!({ "list": true, "mode": "legacy" }),
        call(SKILL, json!({ "text": "x" })),
        call(&format!("{namespace}/{SKILL}"), json!({})),
        call("skillet_skills_list", json!({})),
        call("skillet_skills_list", json!({ "namespace": namespace })),
        call("skillet_skills_list", json!({ "name": SKILL })),
        call("skillet_skills_execute", json!({ "skill": SKILL, "input": {} })),
        call("skillet_skills_execute", json!({ "skill": SKILL, "namespace": namespace, "input": {} })),
        call("skillet_skills_execute", json!({ "skill": format!("{namespace}/{SKILL}"), "input": {} })),
        call("skillet_skills_enable", json!({ "name": SKILL, "mode": "off" })),
        call("skillet_executions", json!({ "limit": 100 })),
        call("skillet_executions", json!({ "namespace": namespace })),
        call("skillet_executions", json!({ "id": execution, "namespace": namespace })),
        call("skillet_executions", json!({ "id": shared, "namespace": platform })),
        call(SHARED, json!({ "text": "mine" })),
    ];
    let responses = fixture.clients.run(Language::Python, "mcp_sdk", fixture.way(), &tasks).await?;
    let leaks = tasks.iter().zip(&responses).filter(|(_, response)| response.to_string().contains(MARKER));
    let mut wrong: Vec<String> =
        leaks.map(|(task, response)| format!("MCP {task} reveals: {response}")).collect();
    // The word may be missing since nothing works at all.
    let listed =
        responses.first().is_some_and(|response| response["tools"].to_string().contains("word-count"));
    if !listed {
        wrong.push(format!("MCP does not list the own skill: {responses:?}"));
    }
    Ok(wrong)
}

/// No token, and tokens that are none.
async fn by_tokens(fixture: &Fixture<'_>, own_of_other: &str) -> Result<Vec<String>> {
    let for_api_server =
        tenant::token_for(&fixture.j.client, &fixture.j.namespace, "https://kubernetes.default.svc").await?;
    // Signed for one, with what another says of itself.
    let parts = |token: &str| token.split('.').map(str::to_owned).collect::<Vec<_>>();
    let (mine, theirs) = (parts(&fixture.token), parts(own_of_other));
    let [header, _, signature] = &mine[..] else { anyhow::bail!("a token has three parts") };
    let forged = format!("{header}.{}.{signature}", theirs.get(1).context("no claims")?);
    let unsigned = format!("eyJhbGciOiJub25lIn0.{}.", theirs.get(1).context("no claims")?);
    // Of 32 zero bytes, with their checksum.
    let unknown_key = format!("skillet_{}ZClWt", "A".repeat(43));
    let tokens = ["", "x", "a.b.c", for_api_server.as_str(), &forged, &unsigned, &unknown_key];
    let requests = [
        chat("tenant", "say hello"),
        Request::get("/api/skills"),
        Request::post("/v1/inject", json!({ "dialect": "openai-chat", "request": { "messages": [] } })),
        Request::post("/mcp", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))
            .with("accept", "application/json, text/event-stream"),
        chat("tenant", "say hello").with("x-skillet-token", "garbage"),
    ];
    let mut wrong = Vec::new();
    for token in tokens {
        let responses = join_all(requests.iter().map(|request| fixture.gateway.send(token, request))).await;
        for (request, response) in requests.iter().zip(responses) {
            let status = response?.status;
            if status != 401 {
                wrong.push(format!("{} with token {token:.12?} is {status}, not 401", request.path));
            }
        }
    }
    // A token of one's own beside one that is not known: the first place decides, and none makes up for it.
    let both = fixture.send(&chat("tenant", "say hello").with("x-skillet-token", "garbage")).await?;
    if both.status != 401 {
        wrong.push(format!("a garbage x-skillet-token is {}, not 401", both.status));
    }
    Ok(wrong)
}

//! The chart's admission rules about rights: who may name a Secret, run a skill, name a caller, write
//! a version and make a key.

use kube::Client;
use serde_json::{Value, json};

use crate::{
    chart,
    eventually::{LIMIT, eventually},
    operator::operator,
    requests::{create, keep, patch, patch_status},
};

const AT: &str = "rights-of-people";
const CALLER: &str = "spec.caller is written by the gateway alone";
const VERSION: &str = "a SkillVersion is created by the operator alone";
const KEY: &str = "author may not make keys of spec.serviceAccountName agent: it needs the verb create on serviceaccounts/token in namespace rights-of-people";
const UNREADABLE: &str = "spec.run.sandbox.secretEnv names Secrets that author may not read";

const UNREADABLE_BY_SERVER: &str = "spec.instructions.mcpServers names Secrets that author may not read: it needs the verb get on secrets in namespace rights-of-people";
const UNREADABLE_TEXT: &str = "spec.instructions.bodyFrom names a ConfigMap that author may not read: it needs the verb get on the ConfigMap notes in namespace rights-of-people";

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": kind, "metadata": { "name": name, "namespace": AT }, "spec": spec })
}

/// A skill whose program gets the keys of these Secrets.
fn skill(name: &str, secrets: &[&str]) -> Value {
    let variable =
        |(n, secret): (usize, &&str)| json!({ "name": format!("V{n}"), "secret": secret, "key": "k" });
    let variables: Vec<Value> = secrets.iter().enumerate().map(variable).collect();
    let sandbox = json!({ "runtime": "shell", "script": "cat", "secretEnv": variables });
    object("Skill", name, &json!({ "version": "1.0.0", "mode": "off", "run": { "sandbox": sandbox } }))
}

/// A Skill whose second MCP server gets these Secrets.
fn served(name: &str, secrets: &[&str]) -> Value {
    let variable =
        |(n, secret): (usize, &&str)| json!({ "name": format!("V{n}"), "secret": secret, "key": "k" });
    let secrets: Vec<Value> = secrets.iter().enumerate().map(variable).collect();
    let servers = json!({ "a": { "command": "sh" }, "b": { "command": "sh", "secretEnv": secrets } });
    object("Skill", name, &json!({ "version": "1.0.0", "instructions": { "mcpServers": servers } }))
}

/// A skill whose instructions are a text of the ConfigMap `notes`.
fn guide(name: &str) -> Value {
    let source = json!({ "configMapKeyRef": { "name": "notes", "key": "k" } });
    object("Skill", name, &json!({ "version": "1.0.0", "instructions": { "bodyFrom": source } }))
}

/// A sealed version whose schema has two keys.
fn version() -> Value {
    let schema = json!({ "type": "object", "required": ["a"] });
    let run = json!({ "sandbox": { "runtime": "shell", "script": "cat" } });
    let spec = json!({ "skill": "a", "version": "9.0.0", "digest": "0".repeat(64), "run": run, "tool": { "inputSchema": schema } });
    object("SkillVersion", "a-9.0.0", &spec)
}

fn api_key(name: &str, account: &str) -> Value {
    object("ApiKey", name, &json!({ "hash": "0".repeat(64), "serviceAccountName": account }))
}

/// Gives `user` rules of its own in the namespace, and the right to write Skillet's objects.
async fn allow(admin: &Client, user: &str, rules: &Value) {
    let mut rules = rules.as_array().unwrap().clone();
    let kinds = ["skills", "skillexecutions", "skillversions", "apikeys"];
    rules.push(
        json!({ "apiGroups": ["skillet.dev"], "resources": kinds, "verbs": ["create", "patch", "get"] }),
    );
    let metadata = json!({ "name": user, "namespace": AT });
    let group = "rbac.authorization.k8s.io";
    let role =
        json!({ "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata, "rules": rules });
    chart::apply_object(admin, role).await;
    let subject = json!({ "apiGroup": group, "kind": "User", "name": user });
    let binding = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": { "apiGroup": group, "kind": "Role", "name": user },
        "subjects": [subject],
    });
    chart::apply_object(admin, binding).await;
}

/// Clients of an administrator, of a user without rights to Secrets and `execute`, and of one with the rights of `rules`.
async fn people(user: &str, rules: &Value) -> Option<(Client, Client, Client)> {
    let operator = operator()?;
    let admin = operator.admin().await;
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": AT } });
    chart::apply_object(&admin, namespace).await;
    allow(&admin, "author", &json!([])).await;
    allow(&admin, user, rules).await;
    let (author, other) = (operator.client_as("author").await, operator.client_as(user).await);
    // A policy and a role count some moments after they were made.
    let probes = [
        (skill("probe", &["s"]), UNREADABLE),
        (guide("probe"), UNREADABLE_TEXT),
        (served("probe", &["s"]), UNREADABLE_BY_SERVER),
        (object("SkillExecution", "probe", &json!({ "skill": "a", "caller": "c" })), CALLER),
        (version(), VERSION),
        (api_key("probe", "agent"), KEY),
    ];
    for (probe, refusal) in probes {
        eventually(format!("a rule says {refusal:?}"), LIMIT, async || {
            let answer = create(&author, &probe).await;
            answer.body["message"].as_str().is_some_and(|text| text.contains(refusal)).then_some(())
        })
        .await;
    }
    eventually(format!("{user} has its rights"), LIMIT, async || {
        create(&other, &skill("probe", &[])).await.is_accepted().then_some(())
    })
    .await;
    Some((admin, author, other))
}

#[tokio::test]
async fn an_author_names_only_secrets_that_the_author_may_read() {
    let read = json!([{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] }]);
    let Some((_, author, reader)) = people("reader", &read).await else { return };
    create(&author, &skill("s", &["one", "two"])).await.assert_says(UNREADABLE);
    create(&author, &skill("s", &[])).await.assert_accepted("a skill without Secrets");
    create(&reader, &skill("s", &["one", "two"])).await.assert_accepted("Secrets that may be read");
    create(&author, &served("m", &["one"])).await.assert_says(UNREADABLE_BY_SERVER);
    create(&author, &served("m", &[])).await.assert_accepted("a server without Secrets");
    create(&reader, &served("m", &["one", "two"]))
        .await
        .assert_accepted("a server with Secrets that may be read");
}

#[tokio::test]
async fn the_right_to_one_secret_is_enough_for_a_skill_with_that_one() {
    let read =
        json!([{ "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get"] }]);
    let Some((_, _, reader)) = people("reader-of-one", &read).await else { return };
    create(&reader, &skill("s", &["one", "one"])).await.assert_accepted("two keys of the one Secret");
    create(&reader, &skill("s", &["one", "two"])).await.assert_says("may not read");
    create(&reader, &skill("s", &["two"])).await.assert_says("may not read");
}

#[tokio::test]
async fn an_author_changes_the_mode_but_not_the_program_of_a_skill_with_secrets() {
    let Some((admin, author, _)) = people("nobody", &json!([])).await else { return };
    let kept = keep(&admin, &skill("with-secret", &["one"])).await;
    // The operator may seal a version at any moment, so each change of what is sealed has a version of its own.
    patch(&author, &kept, &json!({ "spec": { "version": "1.1.0", "description": "mine" } }))
        .await
        .assert_accepted("a description");
    patch(&author, &kept, &json!({ "metadata": { "labels": { "a": "b" } } }))
        .await
        .assert_accepted("a label");
    let script = json!({ "spec": { "version": "1.2.0", "run": { "sandbox": { "script": "env" } } } });
    patch(&author, &kept, &script).await.assert_says(UNREADABLE);
    for change in [
        json!({ "version": "1.2.0", "files": [{ "path": "a.sh", "content": "env" }] }),
        json!({ "version": "1.2.0", "instructions": { "body": "!`env`", "dynamic": "RunWithSecrets" } }),
    ] {
        patch(&author, &kept, &json!({ "spec": change })).await.assert_says(UNREADABLE);
    }
    let sandbox = json!({ "script": "env", "secretEnv": [] });
    let without = json!({ "spec": { "version": "1.2.0", "run": { "sandbox": sandbox } } });
    patch(&author, &kept, &without).await.assert_accepted("a program without Secrets");
}

#[tokio::test]
async fn an_author_has_only_a_config_map_sealed_that_the_author_may_read() {
    let read = json!([{ "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["notes"], "verbs": ["get"] }]);
    let Some((admin, author, reader)) = people("reader-of-notes", &read).await else { return };
    create(&author, &guide("g")).await.assert_says(UNREADABLE_TEXT);
    create(&reader, &guide("g")).await.assert_accepted("a ConfigMap that may be read");
    let kept = keep(&admin, &guide("from-notes")).await;
    let mode = json!({ "spec": { "mode": "off" } });
    patch(&author, &kept, &mode).await.assert_accepted("a change that seals nothing");
    let version = json!({ "spec": { "version": "1.1.0" } });
    patch(&author, &kept, &version).await.assert_says(UNREADABLE_TEXT);
    patch(&reader, &kept, &version).await.assert_accepted("a new version by a reader");
}

#[tokio::test]
async fn an_execution_needs_the_right_to_execute_its_skill() {
    let execute = json!([{ "apiGroups": ["skillet.dev"], "resources": ["skills"], "resourceNames": ["a"], "verbs": ["execute"] }]);
    let Some((_, author, runner)) = people("runner", &execute).await else { return };
    let run = |skill: &str| object("SkillExecution", "e", &json!({ "skill": skill }));
    let missing = format!(
        "author may not run spec.skill a: it needs the verb execute on skills.skillet.dev in namespace {AT}"
    );
    create(&author, &run("a")).await.assert_says(&missing);
    create(&runner, &run("a")).await.assert_accepted("the skill that may be executed");
    create(&runner, &run("b")).await.assert_says("runner may not run spec.skill b");
}

#[tokio::test]
async fn the_caller_of_an_execution_is_the_gateways_to_name() {
    let execute = json!([{ "apiGroups": ["skillet.dev"], "resources": ["skills"], "verbs": ["execute"] }]);
    let Some((_, _, runner)) = people("forger", &execute).await else { return };
    let named = object("SkillExecution", "e", &json!({ "skill": "a", "caller": "team/agent" }));
    create(&runner, &named).await.assert_says(CALLER);
    let mut labelled = object("SkillExecution", "labelled", &json!({ "skill": "a" }));
    labelled["metadata"]["labels"] = json!({ "skillet.dev/caller-namespace": "team" });
    let label = "the label skillet.dev/caller-namespace is written by the gateway alone";
    create(&runner, &labelled).await.assert_says(label);
    labelled["metadata"]["labels"] = json!({ "mine": "yes" });
    let kept = keep(&runner, &labelled).await;
    let change = json!({ "metadata": { "labels": { "skillet.dev/caller-namespace": "team" } } });
    patch(&runner, &kept, &change).await.assert_says(label);
    patch(&runner, &kept, &json!({ "spec": { "cancel": true } })).await.assert_accepted("a cancellation");
}

#[tokio::test]
async fn a_version_is_written_by_the_operator_and_never_changes() {
    let Some((admin, author, _)) = people("nobody-else", &json!([])).await else { return };
    let version = version();
    create(&author, &version).await.assert_says(VERSION);
    let kept = keep(&admin, &version).await;
    // A rule of a definition does not see that one key took the place of another.
    let other =
        json!({ "spec": { "tool": { "inputSchema": { "type": null, "additionalProperties": false } } } });
    patch(&admin, &kept, &other).await.assert_says("a sealed version never changes");
    patch(&admin, &kept, &json!({ "metadata": { "labels": { "a": "b" } } })).await.assert_accepted("a label");
}

#[tokio::test]
async fn a_key_is_made_by_those_who_may_make_tokens_of_its_account() {
    let tokens = json!([{ "apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": ["agent"], "verbs": ["create"] }]);
    let Some((_, author, issuer)) = people("issuer", &tokens).await else { return };
    create(&author, &api_key("k", "agent")).await.assert_says(KEY);
    create(&issuer, &api_key("k", "agent")).await.assert_accepted("the account whose tokens may be made");
    create(&issuer, &api_key("k", "other")).await.assert_says("issuer may not make keys of");
    let mut unnamed = api_key("k", "");
    unnamed["spec"].as_object_mut().unwrap().remove("serviceAccountName");
    create(&issuer, &unnamed).await.assert_says("may not make keys of spec.serviceAccountName default");
}

#[tokio::test]
async fn a_change_of_a_key_needs_the_same_right_and_a_label_does_not() {
    let tokens = json!([{ "apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"] }]);
    let Some((admin, author, issuer)) = people("issuer-of-all", &tokens).await else { return };
    let kept = keep(&admin, &api_key("kept", "agent")).await;
    for change in [json!({ "expiresAt": "2030-01-01T00:00:00Z" }), json!({ "serviceAccountName": "other" })] {
        patch(&author, &kept, &json!({ "spec": change })).await.assert_says("author may not make keys of");
        patch(&issuer, &kept, &json!({ "spec": change })).await.assert_accepted("a change by an issuer");
    }
    patch(&author, &kept, &json!({ "metadata": { "labels": { "a": "b" } } }))
        .await
        .assert_accepted("a label");
    let used = json!({ "status": { "lastUsedAt": "2026-01-01T00:00:00Z" } });
    patch_status(&admin, &kept, &used).await.assert_accepted("the last use");
}

//! The cluster that is measured: a client that the audit log can tell from others, namespaces, and waiting.

use std::{env, path::PathBuf, time::Duration};

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use skillet_api::Skill;
use skillet_e2e::observe;
use tokio::time::{Instant, sleep};

const USER_AGENT: &str = "skillet-bench";
const PAUSE: Duration = Duration::from_millis(50);

/// A client of the cluster of KUBECONFIG.
pub(crate) async fn client() -> anyhow::Result<Client> {
    let mut config =
        Config::infer().await.context("no cluster: `make deploy` gives one with Skillet in it")?;
    config.headers.push(("user-agent".parse()?, USER_AGENT.parse()?));
    let client = Client::try_from(config)?;
    client.apiserver_version().await.context("the cluster does not answer: `make deploy` gives one")?;
    Ok(client)
}

/// The audit log of the local node's API server.
pub(crate) fn audit_log() -> PathBuf {
    let state =
        env::var_os("SKILLET_CLUSTER_DIR").map_or_else(|| "/var/lib/skillet-cluster".into(), PathBuf::from);
    state.join("logs/audit.log")
}

/// Measures in a namespace of its own, made anew, and removes it whatever came of that.
pub(crate) async fn within<T>(
    client: &Client,
    name: &str,
    measure: impl AsyncFnOnce(&Client) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let measured = async {
        namespace(client, name).await?;
        measure(client).await
    };
    let measured = measured.await;
    remove_namespace(client, name).await?;
    measured
}

/// Makes a namespace anew; what an earlier run left in it goes first.
pub(crate) async fn namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    remove_namespace(client, name).await?;
    // As the one of the sandboxes: what is compared is under the same rules.
    let labels = json!({ "pod-security.kubernetes.io/enforce": "restricted" });
    let namespace = serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } }))?;
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    Ok(())
}

/// Deletes a namespace and waits until it is gone.
pub(crate) async fn remove_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let api: Api<Namespace> = Api::all(client.clone());
    if api.get_opt(name).await?.is_some() {
        api.delete(name, &DeleteParams::default()).await?;
    }
    until(&format!("namespace {name} is gone"), 300, async || Ok(api.get_opt(name).await?.is_none())).await
}

/// Applies a Skill and waits until it is Ready.
pub(crate) async fn ready_skill(
    client: &Client,
    namespace: &str,
    name: &str,
    run: &Value,
) -> anyhow::Result<()> {
    apply_ready(client, namespace, name, &skill(name, run)).await
}

/// Applies a Skill of instructions with these files and waits until it is Ready.
pub(crate) async fn ready_bundle(
    client: &Client,
    namespace: &str,
    name: &str,
    files: &Value,
) -> anyhow::Result<()> {
    let content = json!({ "instructions": { "body": "Run it." }, "files": files });
    apply_ready(client, namespace, name, &skill_of(name, content)).await
}

async fn apply_ready(client: &Client, namespace: &str, name: &str, skill: &Value) -> anyhow::Result<()> {
    let api: Api<Skill> = Api::namespaced(client.clone(), namespace);
    api.patch(name, &PatchParams::apply(USER_AGENT), &Patch::Apply(skill)).await?;
    until("the operator makes a Skill Ready: is Skillet installed (`make deploy`)?", 60, async || {
        Ok(api.get(name).await.is_ok_and(|skill| is_ready(&skill)))
    })
    .await
}

/// The shortest Skill that runs `run`.
pub(crate) fn skill(name: &str, run: &Value) -> Value {
    skill_of(name, json!({ "run": { "sandbox": run } }))
}

fn skill_of(name: &str, mut spec: Value) -> Value {
    spec["version"] = "1.0.0".into();
    spec["description"] = "Measures".into();
    json!({
        "apiVersion": "skillet.dev/v1alpha1",
        "kind": "Skill",
        "metadata": { "name": name },
        "spec": spec,
    })
}

pub(crate) fn is_ready(skill: &Skill) -> bool {
    skill.status.as_ref().is_some_and(|status| observe::is_ready(&status.conditions))
}

/// Waits until no pod of `namespace`, and no sandbox that served it, is left: ending one run takes nothing from the next.
pub(crate) async fn rest(client: &Client, namespace: &str) -> anyhow::Result<()> {
    let served = ListParams::default().labels(&format!("skillet.dev/execution-namespace={namespace}"));
    let own: Api<Pod> = Api::namespaced(client.clone(), namespace);
    for (pods, which) in [(own, ListParams::default()), (Api::all(client.clone()), served)] {
        until(&format!("no pod is left of {namespace}"), 120, async || {
            Ok(pods.list_metadata(&which).await?.items.is_empty())
        })
        .await?;
    }
    // The kubelet is done a moment after the API says so.
    sleep(Duration::from_millis(300)).await;
    Ok(())
}

/// Waits until an answer is true.
pub(crate) async fn until(
    what: &str,
    seconds: u64,
    mut ask: impl AsyncFnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while !ask().await? {
        if Instant::now() >= deadline {
            bail!("not within {seconds} s: {what}");
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

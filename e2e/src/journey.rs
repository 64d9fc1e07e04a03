//! One journey: a namespace of its own, a body, and an end that cleans up, or reports everything.

use std::{any::type_name, io::Write as _, panic::AssertUnwindSafe, time::Instant};

use anyhow::{Context as _, Result};
use futures::{FutureExt as _, future::LocalBoxFuture};
use k8s_openapi::{NamespaceResourceScope, api::core::v1::Namespace};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, PostParams},
};
use serde_json::{Value, json};

use crate::{
    cluster,
    manifest::{self, Manifest},
    policy, report,
};

/// Label on every namespace that the lane makes; its value is the test's name.
pub const LABEL: &str = "skillet.dev/e2e";
/// Longest part of a test's name that fits where Kubernetes allows 63 characters and adds five of its own.
const NAME_LENGTH: usize = 50;

/// A test's place in the cluster.
pub struct Journey {
    pub client: Client,
    pub namespace: String,
    /// Subject and sentence, such as `refusals::a_missing_skill_is_named`.
    pub name: String,
}

/// Runs `body` in a namespace of its own. Other journeys run at the same time, under the same policy.
pub fn journey<F>(body: F) -> LocalBoxFuture<'static, Result<()>>
where
    F: AsyncFnOnce(&Journey) -> Result<()> + 'static,
{
    Box::pin(async {
        let Some(name) = wanted::<F>() else { return Ok(()) };
        let client = cluster::connect().await?;
        policy::prepare(&client).await?;
        let _held = policy::share().await?;
        run_in_namespace(client, name, body).await
    })
}

/// The same under another policy, and alone: `change` is merged into the policy's spec, and taken back at the end.
pub fn journey_under<F>(change: Value, body: F) -> LocalBoxFuture<'static, Result<()>>
where
    F: AsyncFnOnce(&Journey) -> Result<()> + 'static,
{
    Box::pin(async {
        let Some(name) = wanted::<F>() else { return Ok(()) };
        let client = cluster::connect().await?;
        policy::prepare(&client).await?;
        let _held = policy::alone().await?;
        policy::under(&client, change, async || run_in_namespace(client.clone(), name, body).await).await
    })
}

/// The test's name where the lane runs; else says that the test is skipped.
fn wanted<F>() -> Option<String> {
    let name = test_name(type_name::<F>());
    if cluster::is_wanted() {
        return Some(name);
    }
    // Past the capture of the test program: a test that was skipped must not look like one that passed.
    writeln!(std::io::stderr(), "skipped: {name} needs a cluster (SKILLET_E2E=1)").ok();
    None
}

/// From the type of the test's closure, `e2e::refusals::sentence::{{closure}}::{{closure}}`.
fn test_name(type_name: &str) -> String {
    let path = type_name.split("::{{closure}}").next().unwrap_or(type_name);
    let mut parts: Vec<&str> = path.rsplit("::").take(2).collect();
    parts.reverse();
    parts.join("::")
}

async fn run_in_namespace<F>(client: Client, name: String, body: F) -> Result<()>
where
    F: AsyncFnOnce(&Journey) -> Result<()>,
{
    let namespace = make_namespace(&client, &name).await?;
    let journey = Journey { client, namespace, name };
    let began = Instant::now();
    let result = AssertUnwindSafe(body(&journey)).catch_unwind().await;
    match &result {
        Ok(Ok(())) => {}
        Ok(Err(error)) => report::print(&journey, &format!("{error:#}")).await,
        // What it says was printed where it happened.
        Err(_) => report::print(&journey, "an assertion failed").await,
    }
    println!("{} took {:.1} s", journey.name, began.elapsed().as_secs_f64());
    let deleted = journey.delete_namespace().await;
    match result {
        Ok(result) => result.and(deleted),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

async fn make_namespace(client: &Client, name: &str) -> Result<String> {
    let word = name.rsplit("::").next().unwrap_or(name).replace('_', "-");
    let word = word[..word.len().min(NAME_LENGTH)].trim_matches('-');
    let namespace: Namespace = serde_json::from_value(json!({
        "metadata": { "generateName": format!("e2e-{word}-"), "labels": { LABEL: word } },
    }))?;
    let api: Api<Namespace> = Api::all(client.clone());
    let made = api.create(&PostParams::default(), &namespace).await.context("could not make a namespace")?;
    Ok(made.name_any())
}

impl Journey {
    /// Objects of one kind in the journey's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies what a user would apply; the last object as the API server then has it.
    pub async fn apply<M: Manifest + ?Sized>(&self, manifest: &M) -> Result<DynamicObject> {
        let mut last = None;
        for object in manifest.objects()? {
            last = Some(manifest::apply(&self.client, &self.namespace, object).await?);
        }
        last.context("nothing to apply")
    }

    /// Asks for the namespace's end and does not wait for it.
    async fn delete_namespace(&self) -> Result<()> {
        if cluster::is_set("SKILLET_KEEP") {
            eprintln!("kept: namespace {} of {}", self.namespace, self.name);
            return Ok(());
        }
        let api: Api<Namespace> = Api::all(self.client.clone());
        api.delete(&self.namespace, &DeleteParams::default())
            .await
            .context("could not delete the namespace")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_named_by_its_subject_and_sentence() {
        assert_eq!(test_name("e2e::refusals::it_is_so::{{closure}}::{{closure}}"), "refusals::it_is_so");
        assert_eq!(test_name("it_is_so"), "it_is_so");
    }
}

//! Applies every example into a cluster with Skillet, runs each with its sample input, and shows what came of it. Then
//! two skills reach a host that they name, and an agent asks a model that calls a skill, and one that reads an imported
//! SKILL.md.
//! Fails where anything is not as the example's files say.

mod conversation;
mod example;
mod hosts;
mod interruption;
mod page;

use std::{process::ExitCode, time::Instant};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use skillet_e2e::{Journey, cluster, examples, manifest::FIELD_MANAGER};

use crate::page::Paint;

const NAMESPACE: &str = "skillet-demo";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match demo().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("skillet-demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn demo() -> Result<bool> {
    let client = cluster::connect().await?;
    let version = client.apiserver_version().await?.git_version;
    make_namespace(&client).await?;
    let journey = Journey { client, namespace: NAMESPACE.into(), name: "demo".into() };
    let all = examples::all()?;
    let paint = Paint::new();
    println!(
        "\n{}",
        paint.bold(&format!("{} skills on Kubernetes {version}, namespace {NAMESPACE}", all.len()))
    );
    let (began, mut shown) = (Instant::now(), Vec::new());
    for example in &all {
        shown.push(example::show(&journey, example, &paint).await?);
    }
    shown.extend(Box::pin(hosts::show(&journey, &paint)).await?);
    shown.extend(conversation::show(&journey, &paint).await?);
    let right = shown.iter().filter(|is_right| **is_right).count();
    let is_right = right == shown.len();
    let took = began.elapsed().as_secs_f64();
    let sum = format!("{right} of {} as they should be, in {took:.1} s", shown.len());
    println!("\n{}", if is_right { paint.green(&sum) } else { paint.red(&sum) });
    println!("  kubectl get skills,skillexecutions -n {NAMESPACE}");
    println!("  kubectl skill run calculate -n {NAMESPACE} --input '{{\"expression\": \"6 * 7\"}}'\n");
    Ok(is_right)
}

async fn make_namespace(client: &kube::Client) -> Result<()> {
    let api: Api<Namespace> = Api::all(client.clone());
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
    api.patch(NAMESPACE, &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(namespace))
        .await
        .with_context(|| format!("could not make namespace {NAMESPACE}"))?;
    Ok(())
}

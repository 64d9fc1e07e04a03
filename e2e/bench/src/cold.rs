//! A cold run against the bare pod and the bare Job that it is made of: same image, same program, same lock-down,
//! in turn, on the same cluster.

use anyhow::{Context as _, ensure};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{Api, Client, ResourceExt as _, api::ListParams};
use serde_json::{Value, json};
use skillet_api::SkillExecution;

use crate::{
    cluster::{client, ready_skill, rest, within},
    figure::Figure,
    racer::{LABEL, Racer, execution_end},
    samples::Samples,
};

pub(crate) const NAMESPACE: &str = "skillet-bench";
const SKILL: &str = "bench";

/// The program that skills and bare pods run.
pub(crate) fn program() -> Value {
    json!(["/bin/sh", "-c", "echo '{\"ok\":true}'"])
}

pub(crate) async fn measure(runs: usize) -> anyhow::Result<Vec<Figure>> {
    let client = client().await?;
    within(&client, NAMESPACE, async |client| in_namespace(client, runs).await).await
}

async fn in_namespace(client: &Client, runs: usize) -> anyhow::Result<Vec<Figure>> {
    ready_skill(client, NAMESPACE, SKILL, &json!({ "runtime": "shell", "command": program() })).await?;
    let mut executions = Racer::<SkillExecution>::new(client, NAMESPACE, execution_end);
    let mut pods = Racer::<Pod>::new(client, NAMESPACE, pod_end);
    let mut jobs = Racer::<Job>::new(client, NAMESPACE, job_end);

    // Once without counting: images are unpacked, watches are open, and there is a sandbox to copy.
    executions.run("first", execution_spec()).await?;
    let template = copy_of_sandbox(client).await?;
    let job = json!({ "backoffLimit": 0, "template": { "metadata": { "labels": { LABEL: "job" } }, "spec": template } });
    executions.remove("first").await?;

    let mut times = [Samples::default(), Samples::default(), Samples::default()];
    for run in 0..runs {
        let name = format!("run-{run}");
        // Each comes first as often as the others.
        for place in 0..3 {
            rest(client, NAMESPACE).await?;
            let which = (run + place) % 3;
            let time = match which {
                0 => executions.run(&name, execution_spec()).await?,
                1 => pods.run(&name, template.clone()).await?,
                _ => jobs.run(&name, job.clone()).await?,
            };
            times[which].add(time);
            match which {
                0 => executions.remove(&name).await?,
                1 => pods.remove(&name).await?,
                _ => jobs.remove(&name).await?,
            }
        }
    }
    let [execution, pod, bare_job] = &times;
    println!("SkillExecution created -> terminal status seen: {execution}");
    println!("bare pod created -> Succeeded seen:             {pod}");
    println!("bare Job created -> success seen:               {bare_job}");
    let ratio = |other: &Samples| execution.median().as_secs_f64() / other.median().as_secs_f64();
    Ok(vec![
        Figure::lower("cold_vs_pod", ratio(pod), 0.35, "ratio", runs),
        Figure::lower("cold_vs_job", ratio(bare_job), 0.2, "ratio", runs),
    ])
}

pub(crate) fn execution_spec() -> Value {
    json!({ "skill": SKILL })
}

/// The pod spec of the sandbox that has just been used, with the program in the runner's
/// place.
async fn copy_of_sandbox(client: &Client) -> anyhow::Result<Value> {
    let execution = Api::<SkillExecution>::namespaced(client.clone(), NAMESPACE).get("first").await?;
    let uid = execution.uid().unwrap_or_default();
    let of_execution = ListParams::default().labels(&format!("skillet.dev/execution-uid={uid}"));
    let jobs = Api::<Job>::all(client.clone()).list(&of_execution).await?.items;
    let job = jobs.into_iter().next().context("the first run's Job is gone already")?;
    let spec = job.spec.and_then(|spec| spec.template.spec).context("a Job without a pod")?;
    ensure!(
        spec.host_users == Some(false),
        "sandboxes have no user namespace: SkillPolicy isolation is not Strict"
    );
    let mut spec = serde_json::to_value(spec)?;
    let container = spec["containers"][0].as_object_mut().context("a pod without a container")?;
    container.insert("command".into(), program());
    for field in ["stdin", "stdinOnce"] {
        container.remove(field);
    }
    Ok(spec)
}

fn pod_end(pod: &Pod) -> Option<bool> {
    match pod.status.as_ref()?.phase.as_deref()? {
        "Succeeded" => Some(true),
        "Failed" => Some(false),
        _ => None,
    }
}

fn job_end(job: &Job) -> Option<bool> {
    let status = job.status.as_ref()?;
    let is_true = |type_: &str| {
        status
            .conditions
            .iter()
            .flatten()
            .any(|condition| condition.type_ == type_ && condition.status == "True")
    };
    if status.succeeded.unwrap_or(0) > 0 || is_true("Complete") {
        return Some(true);
    }
    is_true("Failed").then_some(false)
}

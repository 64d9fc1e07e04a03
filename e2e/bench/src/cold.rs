//! A cold run against the bare pod and the bare Job that it is made of: same image, same program, same lock-down,
//! in turn, on the same cluster.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use futures::TryStreamExt as _;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{batch::v1::Job, core::v1::Pod},
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, ListParams, PostParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use skillet_api::{Phase, SkillExecution};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

use crate::{
    cluster::{client, ready_skill, rest, within},
    figure::Figure,
    samples::Samples,
};

pub(crate) const NAMESPACE: &str = "skillet-bench";
const SKILL: &str = "bench";
const LABEL: &str = "skillet.dev/bench";
const LIMIT: Duration = Duration::from_secs(60);

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
    let mut executions = Racer::<SkillExecution>::new(client, execution_end);
    let mut pods = Racer::<Pod>::new(client, pod_end);
    let mut jobs = Racer::<Job>::new(client, job_end);

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

fn execution_end(execution: &SkillExecution) -> Option<bool> {
    let phase = execution.status.as_ref()?.phase;
    phase.is_terminal().then_some(phase == Phase::Succeeded)
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

/// Makes objects of one kind and sees, by a watch that is open all the while, when each has ended.
struct Racer<K> {
    api: Api<K>,
    ends: mpsc::UnboundedReceiver<(String, bool, Instant)>,
    watch: JoinHandle<()>,
}

impl<K> Racer<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize
        + Send
        + 'static,
{
    fn new(client: &Client, end: fn(&K) -> Option<bool>) -> Self {
        let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
        let (seen, ends) = mpsc::unbounded_channel();
        let events = watcher(api.clone(), watcher::Config::default().labels(LABEL)).default_backoff();
        let watch = tokio::spawn(async move {
            let watched = events.applied_objects().try_for_each(|object| {
                if let Some(is_success) = end(&object) {
                    // The receiver goes with the last run.
                    seen.send((object.name_any(), is_success, Instant::now())).ok();
                }
                futures::future::ok(())
            });
            if let Err(error) = watched.await {
                println!("the watch was lost: {error}");
            }
        });
        Self { api, ends, watch }
    }

    /// Makes one object and waits for its end: the time from before the request to the moment the watch showed it.
    async fn run(&mut self, name: &str, spec: Value) -> anyhow::Result<Duration> {
        let object = json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": { "name": name, "labels": { LABEL: "race" } },
            "spec": spec,
        });
        let object: K = serde_json::from_value(object)?;
        let started = Instant::now();
        self.api.create(&PostParams::default(), &object).await?;
        let kind = K::kind(&());
        loop {
            match timeout(LIMIT, self.ends.recv()).await {
                Ok(Some((ended, true, at))) if ended == name => return Ok(at - started),
                Ok(Some((ended, false, _))) if ended == name => {
                    bail!("{kind} {name} failed: see it in {NAMESPACE}")
                }
                Ok(Some(_)) => {}
                Ok(None) => bail!("the watch of {kind} was lost"),
                Err(_) => bail!("{kind} {name} has not ended within {LIMIT:?}"),
            }
        }
    }

    async fn remove(&self, name: &str) -> anyhow::Result<()> {
        self.api.delete(name, &DeleteParams::background()).await?;
        Ok(())
    }
}

impl<K> Drop for Racer<K> {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

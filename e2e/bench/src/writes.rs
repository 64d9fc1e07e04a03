//! Cost of a cold run for the API server: the operator's writes, counted in the audit log.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, ensure};
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, PostParams},
};
use serde_json::json;
use skillet_api::{Phase, SkillExecution};

use crate::{
    audit::{Log, Request},
    cluster::{client, ready_skill, until, within},
    cold::{NAMESPACE, execution_spec, program},
    figure::Figure,
};

const RUNS: usize = 10;

pub(crate) async fn measure(audit_log: &Path) -> anyhow::Result<Vec<Figure>> {
    let client = client().await?;
    Log::at_its_end(audit_log)?;
    within(&client, NAMESPACE, async |client| in_namespace(client, audit_log).await).await
}

async fn in_namespace(client: &Client, audit_log: &Path) -> anyhow::Result<Vec<Figure>> {
    ready_skill(client, NAMESPACE, "bench", &json!({ "runtime": "shell", "command": program() })).await?;
    // Once without counting: what is done on first use is not done per run.
    run(client, "first").await?;
    let log = Log::at_its_end(audit_log)?;
    let mut uids = Vec::new();
    for number in 0..RUNS {
        uids.push(run(client, &format!("run-{number}")).await?);
    }
    let requests = log.since()?;
    let of_runs = by_operator(&requests, &uids)?;
    tell(&of_runs);
    // Far below where a double loses whole numbers.
    #[allow(clippy::cast_precision_loss)]
    let writes = of_runs.iter().filter(|request| request.is_write()).count() as f64 / RUNS as f64;
    Ok(vec![Figure::lower("writes_per_run", writes, 4.0, "writes", RUNS)])
}

/// One run, from its creation until its sandbox is removed: its uid.
async fn run(client: &Client, name: &str) -> anyhow::Result<String> {
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), NAMESPACE);
    let execution = json!({ "metadata": { "name": name }, "spec": execution_spec() });
    let execution: SkillExecution = serde_json::from_value(execution)?;
    let uid = api.create(&PostParams::default(), &execution).await?.uid().unwrap_or_default();
    until(&format!("SkillExecution {name} has ended"), 60, async || {
        let status = api.get(name).await?.status.unwrap_or_default();
        ensure!(
            !status.phase.is_terminal() || status.phase == Phase::Succeeded,
            "{name}: {:?}",
            status.message
        );
        Ok(status.phase.is_terminal())
    })
    .await?;
    let jobs: Api<Job> = Api::all(client.clone());
    let of_run = ListParams::default().labels(&format!("skillet.dev/execution-uid={uid}"));
    until(&format!("the sandbox of {name} is removed"), 60, async || {
        Ok(jobs.list_metadata(&of_run).await?.items.is_empty())
    })
    .await?;
    Ok(uid)
}

/// The requests about the runs by who made their Jobs, which is the operator, whatever user it is.
fn by_operator<'a>(requests: &'a [Request], uids: &[String]) -> anyhow::Result<Vec<&'a Request>> {
    let is_of_sandbox = |request: &Request| uids.iter().any(|uid| request.name().contains(uid.as_str()));
    let made_job = |request: &&Request| {
        request.verb == "create" && request.resource() == "jobs" && is_of_sandbox(request)
    };
    let operator = requests.iter().find(made_job).context("the audit log tells of no Job of these runs")?;
    let requester = operator.requester();
    println!("the operator is {}", requester.0);
    let is_of_run = |request: &&Request| {
        request.requester() == requester && (is_of_sandbox(request) || request.namespace() == NAMESPACE)
    };
    Ok(requests.iter().filter(is_of_run).collect())
}

fn tell(requests: &[&Request]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for request in requests {
        // The server answers each attach with an upgrade, also while the container does not run yet.
        if request.is_write() || request.is_attach() {
            *counts.entry(format!("{} {}", request.verb, request.resource())).or_default() += 1;
        }
    }
    for (kind, count) in counts {
        // Far below where a double loses whole numbers.
        #[allow(clippy::cast_precision_loss)]
        let per_run = count as f64 / RUNS as f64;
        println!("{per_run:>6.1} per run: {kind}");
    }
}

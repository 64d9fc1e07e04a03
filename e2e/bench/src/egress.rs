//! The one way out, over the whole cluster: programs in sandboxes against the same program on this machine, HTTP skills against
//! direct requests, and the broker's memory. The host is a server of this process.

mod beside;
mod host;
mod http_skills;
mod node;
mod programs;

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use skillet_api::{Phase, SkillExecution};
use skillet_e2e::{Journey, SkillDraft, policy};
use tokio::{io::AsyncWriteExt as _, process::Command};

use self::host::Host;
pub(crate) use self::{
    http_skills::measure as http_skills,
    programs::{requests, throughput},
};
use crate::{
    cluster::{client, namespace, remove_namespace, rest},
    figure::Figure,
    process::Process,
    racer::{Racer, execution_end},
    samples::Samples,
};

const NAMESPACE: &str = "skillet-bench-egress";
/// http.client of Python, alike in a sandbox and outside of one.
const CLIENT: &str = include_str!("egress/client.py");
const SKILL: &str = "client";

const IDLE_RUNS: usize = 60;
/// The broker has limits for a namespace, so several share the connections.
const HOLDERS: usize = 5;
const RUNS_OF_HOLDER: usize = 2;
const CONNECTIONS_OF_RUN: usize = 200;
const QUIET: Duration = Duration::from_secs(3);

/// Measures in `tenants` namespaces, under a policy that allows the host, with nobody else's journey beside it.
async fn alone<T>(
    tenants: usize,
    measure: impl AsyncFnOnce(&[Journey], &Host) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let client = client().await?;
    let _turn = policy::alone().await?;
    let named = |number: usize| Journey {
        client: client.clone(),
        namespace: format!("{NAMESPACE}-{number}"),
        name: "bench".to_owned(),
    };
    let journeys: Vec<Journey> = (0..tenants.max(1)).map(named).collect();
    let measured = async {
        for journey in &journeys {
            namespace(&client, &journey.namespace).await?;
        }
        let host = Host::start(&journeys[0]).await?;
        policy::under(&client, host.policy(), async || measure(&journeys, &host).await).await
    };
    let measured = measured.await;
    try_join_all(journeys.iter().map(|journey| remove_namespace(&client, &journey.namespace))).await?;
    measured
}

/// Applies the client as a skill that may reach the host.
async fn apply_client(j: &Journey, host: &Host, cpu: &str) -> anyhow::Result<()> {
    let draft = SkillDraft::python(SKILL, CLIENT).spec("network", host.network());
    j.apply(&draft.limit("timeout", "5m").limit("cpu", cpu).object()).await?;
    j.ready(SKILL).await?;
    Ok(())
}

fn task(host: &Host, what: &Value, is_inside: bool) -> Value {
    let address = host.address.ip().to_string();
    let mut task = json!({
        "host": if is_inside { &host.name } else { &address }, "name": host.name, "port": host.address.port(),
    });
    for (name, value) in what.as_object().into_iter().flatten() {
        task[name] = value.clone();
    }
    task
}

/// Runs the client in a sandbox.
async fn inside(j: &Journey, host: &Host, what: &Value) -> anyhow::Result<Value> {
    let execution = j.start(SKILL, task(host, what, true)).await?;
    output(j, &execution).await
}

async fn output(j: &Journey, execution: &SkillExecution) -> anyhow::Result<Value> {
    let status = j.ended(execution).await?.status;
    ensure!(status.phase == Phase::Succeeded, "the client failed: {}", skillet_e2e::execute::text(&status));
    status.output.context("the client has no output")
}

/// Runs the client on this machine.
async fn outside(host: &Host, what: &Value) -> anyhow::Result<Value> {
    let mut child = Command::new(python())
        .args(["-c", CLIENT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("python3")?;
    let mut stdin = child.stdin.take().context("the client has no input")?;
    stdin.write_all(task(host, what, false).to_string().as_bytes()).await?;
    drop(stdin);
    let done = child.wait_with_output().await?;
    ensure!(done.status.success(), "the client failed on this machine: {}", done.status);
    Ok(serde_json::from_slice(&done.stdout)?)
}

/// The distribution's Python, if there is one: a wrapper of another would be measured, too.
fn python() -> &'static str {
    let distribution = "/usr/bin/python3";
    if Path::new(distribution).exists() { distribution } else { "python3" }
}

/// A run that may use the network and does not, against one that may not.
pub(crate) async fn idle() -> anyhow::Result<Vec<Figure>> {
    alone(1, async |journeys, host| {
        let j = &journeys[0];
        let program = "echo '{\"ok\":true}'";
        j.apply(&SkillDraft::shell("without", program).object()).await?;
        j.apply(&SkillDraft::shell("with", program).spec("network", host.network()).object()).await?;
        let skills = ["without", "with"];
        let mut executions = Racer::<SkillExecution>::new(&j.client, &j.namespace, execution_end);
        for skill in skills {
            j.ready(skill).await?;
            executions.run(&format!("first-{skill}"), json!({ "skill": skill })).await?;
        }
        let mut times = [Samples::default(), Samples::default()];
        for run in 0..IDLE_RUNS {
            // Each comes first as often as the other.
            for place in 0..2 {
                rest(&j.client, &j.namespace).await?;
                let which = (run + place) % 2;
                let name = format!("run-{run}-{which}");
                times[which].add(executions.run(&name, json!({ "skill": skills[which] })).await?);
                executions.remove(&name).await?;
            }
        }
        let [without, with] = &times;
        println!("run that may not use the network: {without}");
        println!("run that may and does not:        {with}; load {}", node::load());
        let ratio = with.median().as_secs_f64() / without.median().as_secs_f64();
        Ok(vec![Figure::lower("egress_idle_ratio", ratio, 1.02, "ratio", IDLE_RUNS)])
    })
    .await
}

/// Memory of the broker with many connections that nobody uses.
pub(crate) async fn memory() -> anyhow::Result<Vec<Figure>> {
    alone(HOLDERS, async |journeys, host| {
        let what = json!({ "do": "hold", "connections": CONNECTIONS_OF_RUN });
        let mut runs = Vec::new();
        for j in journeys {
            apply_client(j, host, "100m").await?;
            for _ in 0..RUNS_OF_HOLDER {
                runs.push((j, j.start(SKILL, task(host, &what, true)).await?));
            }
        }
        host.until_begun(runs.len()).await?;
        tokio::time::sleep(QUIET).await;
        let before = broker_memory()?;
        host.begin();
        let connections = runs.len() * CONNECTIONS_OF_RUN;
        host.until_held(connections).await?;
        tokio::time::sleep(QUIET).await;
        let held = broker_memory()?;
        host.release();
        for (j, run) in &runs {
            output(j, run).await?;
        }
        // Counts of bytes and connections are far below where a double loses whole numbers.
        #[allow(clippy::cast_precision_loss)]
        let each = held.saturating_sub(before) as f64 / connections as f64 / 1024.0;
        println!("broker: {before} bytes with {} runs, {held} with {connections} connections", runs.len());
        Ok(vec![Figure::lower("broker_connection_kib", each, 16.0, "KiB", connections)])
    })
    .await
}

fn broker_memory() -> anyhow::Result<u64> {
    let brokers = node::brokers();
    ensure!(!brokers.is_empty(), "the broker does not run on this machine");
    brokers.iter().map(Process::resident).sum()
}

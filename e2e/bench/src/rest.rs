//! The operator at rest with many Skills: its resident memory and its share of a core.

use std::{fs, time::Duration};

use anyhow::bail;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde_json::json;
use skillet_api::Skill;
use tokio::time::sleep;

use crate::{
    cluster::{client, is_ready, ready_skill, skill, until, within},
    figure::Figure,
    images::megabytes,
    process::Process,
};

const NAMESPACE: &str = "skillet-bench-rest";
const AT_ONCE: usize = 16;
/// Less than this share of a core is rest.
const REST: f64 = 0.01;
const LOOK: Duration = Duration::from_secs(10);
const LOOKS: usize = 30;

pub(crate) async fn measure(skills: usize) -> anyhow::Result<Vec<Figure>> {
    let operator = operator()?;
    let client = client().await?;
    within(&client, NAMESPACE, async |client| in_namespace(client, &operator, skills).await).await
}

async fn in_namespace(client: &Client, operator: &Process, skills: usize) -> anyhow::Result<Vec<Figure>> {
    ready_skill(client, NAMESPACE, "first", &program()).await?;
    let before = operator.resident()?;
    create(client, skills).await?;
    let share = until_rest(operator).await?;
    let resident = operator.resident()?;
    println!(
        "the operator (pid {}) holds {:.1} MB without these Skills, {:.1} MB with {skills}; at rest it takes {:.2} % of a core",
        operator.pid,
        megabytes(before),
        megabytes(resident),
        share * 100.0,
    );
    Ok(vec![Figure::lower("rest_mb", megabytes(resident), 30.0, "MB", skills)])
}

fn program() -> serde_json::Value {
    json!({ "runtime": "shell", "script": "cat" })
}

async fn create(client: &Client, skills: usize) -> anyhow::Result<()> {
    let api: Api<Skill> = Api::namespaced(client.clone(), NAMESPACE);
    stream::iter(1..skills)
        .map(|number| {
            let api = api.clone();
            async move {
                let skill: Skill = serde_json::from_value(skill(&format!("skill-{number}"), &program()))?;
                api.create(&PostParams::default(), &skill).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    until(&format!("all of {skills} Skills are Ready"), 300, async || {
        let ready =
            api.list(&ListParams::default()).await?.items.iter().filter(|skill| is_ready(skill)).count();
        sleep(Duration::from_secs(1)).await;
        Ok(ready >= skills)
    })
    .await
}

/// Waits until the operator takes next to nothing: the share of a core that it then takes.
async fn until_rest(operator: &Process) -> anyhow::Result<f64> {
    for _ in 0..LOOKS {
        let before = operator.cpu_seconds()?;
        sleep(LOOK).await;
        let share = (operator.cpu_seconds()? - before) / LOOK.as_secs_f64();
        if share <= REST {
            return Ok(share);
        }
    }
    bail!("the operator is never idle: it takes more than {} % of a core", REST * 100.0)
}

/// The operator as this machine sees it, in a pod or not.
fn operator() -> anyhow::Result<Process> {
    let pids = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let operators: Vec<u32> = pids.filter(|pid| is_operator(*pid)).collect();
    match operators[..] {
        [pid] => Ok(Process { pid }),
        [] => {
            bail!("no process `skillet operator` on this machine: it takes the local node (`make deploy`)")
        }
        _ => bail!(
            "several processes `skillet operator` on this machine ({operators:?}): keep one with `kubectl -n skillet-system scale deployment skillet --replicas 1`"
        ),
    }
}

fn is_operator(pid: u32) -> bool {
    let Ok(line) = fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    let mut words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let program = words.next().unwrap_or_default();
    program.rsplit('/').next() == Some("skillet") && words.next().as_deref() == Some("operator")
}

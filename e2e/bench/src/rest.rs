//! The operator at rest with many Skills and finished executions: its resident memory and its share of a core.

use std::time::Duration;

use anyhow::bail;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde_json::json;
use skillet_api::{Skill, SkillExecution, SkillExecutionSpec};
use skillet_e2e::operator;
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

/// The load of the operator while it is measured.
pub(crate) struct Held {
    pub(crate) figure: &'static str,
    /// In MB.
    pub(crate) goal: f64,
    pub(crate) skills: usize,
    pub(crate) finished_executions: usize,
}

pub(crate) async fn measure(held: &Held) -> anyhow::Result<Vec<Figure>> {
    let client = client().await?;
    let operator = Process { pid: operator::leader(&client).await?.pid };
    within(&client, NAMESPACE, async |client| in_namespace(client, &operator, held).await).await
}

async fn in_namespace(client: &Client, operator: &Process, held: &Held) -> anyhow::Result<Vec<Figure>> {
    let Held { figure, goal, skills, finished_executions } = *held;
    ready_skill(client, NAMESPACE, "first", &program()).await?;
    let before = operator.resident()?;
    create_skills(client, skills).await?;
    finish_executions(client, finished_executions).await?;
    let share = until_rest(operator).await?;
    let resident = operator.resident()?;
    println!(
        "the operator (pid {}) holds {:.1} MB without these Skills, {:.1} MB with {skills} and {finished_executions} finished executions; at rest it takes {:.2} % of a core",
        operator.pid,
        megabytes(before),
        megabytes(resident),
        share * 100.0,
    );
    Ok(vec![Figure::lower(figure, megabytes(resident), goal, "MB", skills)])
}

fn program() -> serde_json::Value {
    json!({ "runtime": "shell", "script": "cat" })
}

async fn create_skills(client: &Client, skills: usize) -> anyhow::Result<()> {
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
    until(&format!("all of {skills} Skills are Ready"), 1_200, async || {
        let ready =
            api.list(&ListParams::default()).await?.items.iter().filter(|skill| is_ready(skill)).count();
        sleep(Duration::from_secs(1)).await;
        Ok(ready >= skills)
    })
    .await
}

/// Makes executions of a skill that is not there: they end at once.
async fn finish_executions(client: &Client, count: usize) -> anyhow::Result<()> {
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), NAMESPACE);
    stream::iter(0..count)
        .map(|number| {
            let (api, name) = (api.clone(), format!("missing-{number}"));
            async move {
                let spec =
                    SkillExecutionSpec { skill: "missing".to_owned(), ..SkillExecutionSpec::default() };
                api.create(&PostParams::default(), &SkillExecution::new(&name, spec)).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    until(&format!("all of {count} executions have ended"), 600, async || {
        let all = api.list(&ListParams::default()).await?.items;
        let ended = all.iter().filter(|one| one.status.as_ref().is_some_and(|it| it.phase.is_terminal()));
        sleep(Duration::from_secs(1)).await;
        Ok(ended.count() >= count)
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

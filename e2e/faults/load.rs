//! Many executions at once, and what became of them.

use std::{collections::HashMap, ops::Range, pin::pin, time::Duration};

use anyhow::{Context as _, Result, bail};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, PostParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::json;
use skillet_api::{SkillExecution, SkillExecutionStatus};
use skillet_e2e::{Journey, PATIENCE, SkillDraft, eventually, execute};
use tokio::time::{Instant, timeout};

/// Name of a skill that returns its input.
const QUICK: &str = "quick";
const CREATED_WITHIN: Duration = Duration::from_secs(30);

/// One execution that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) uid: String,
    pub(crate) skill: String,
    /// Its place in the order in which the executions were made.
    pub(crate) number: u64,
    pub(crate) status: SkillExecutionStatus,
}

/// Makes `count` executions of `skill` in `namespace`, numbered in the order in which the API server takes them.
pub(crate) async fn start(journey: &Journey, namespace: &str, skill: &str, count: u64) -> Result<()> {
    create(&Api::namespaced(journey.client.clone(), namespace), skill, 0..count).await
}

/// The same in the journey's own namespace, numbered from `first`.
pub(crate) async fn start_from(journey: &Journey, skill: &str, first: u64, count: u64) -> Result<()> {
    create(&journey.api(), skill, first..first + count).await
}

async fn create(api: &Api<SkillExecution>, skill: &str, numbers: Range<u64>) -> Result<()> {
    for number in numbers {
        let mut spec = execute::spec(skill);
        spec.input = Some(json!({ "number": number }));
        let execution = SkillExecution::new(&format!("{skill}-{number:04}"), spec);
        // As a client would under load: asked again by name, it is there once.
        eventually("an execution is created", CREATED_WITHIN, async || {
            match api.create(&PostParams::default(), &execution).await {
                Ok(_) => Ok(Some(())),
                Err(kube::Error::Api(answer)) if answer.code == 409 => Ok(Some(())),
                Err(error) => Err(error.into()),
            }
        })
        .await?;
    }
    Ok(())
}

/// The executions of `namespace` when all `count` have ended, in the order in which they were made. They are watched: to list
/// a thousand of them again and again would take from the node what they run on.
pub(crate) async fn all_ended(
    journey: &Journey,
    namespace: &str,
    count: usize,
    limit: Duration,
) -> Result<Vec<Done>> {
    let limit = limit * PATIENCE;
    let api: Api<SkillExecution> = Api::namespaced(journey.client.clone(), namespace);
    let mut ended: HashMap<String, Done> = HashMap::new();
    let all = timeout(limit, async {
        let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff().touched_objects());
        while ended.len() < count {
            match events.try_next().await {
                Ok(Some(execution)) if has_ended(&execution) => {
                    let one = done(execution)?;
                    ended.insert(one.uid.clone(), one);
                }
                Ok(Some(_)) => {}
                Ok(None) => bail!("the watch on executions has ended"),
                Err(error) => eprintln!("load: the watch was interrupted: {error}"),
            }
        }
        Ok(())
    });
    match all.await {
        Ok(watched) => watched?,
        Err(_) => bail!("{} of {count} executions of {namespace} have ended in {limit:?}", ended.len()),
    }
    let mut done: Vec<Done> = ended.into_values().collect();
    done.sort_by_key(|done| done.number);
    Ok(done)
}

/// Makes a second namespace; its name is the journey's with a suffix.
pub(crate) async fn namespace(journey: &Journey, suffix: &str) -> Result<String> {
    let name = format!("{}-{suffix}", journey.namespace);
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
    Api::all(journey.client.clone()).create(&PostParams::default(), &namespace).await?;
    Ok(name)
}

/// Another tenant, whose runs are measured beside those of the journey.
pub(crate) struct Neighbor(Journey);

impl Neighbor {
    pub(crate) async fn set_up(j: &Journey) -> Result<Self> {
        let namespace = namespace(j, "b").await?;
        let neighbor = Journey { client: j.client.clone(), namespace, name: j.name.clone() };
        neighbor.apply(&SkillDraft::shell(QUICK, "cat")).await?;
        neighbor.ready(QUICK).await?;
        Ok(Self(neighbor))
    }

    /// Runs a skill to its end, which must be right, and returns the time that this takes.
    pub(crate) async fn time_run(&self) -> Result<Duration> {
        let (begun, input) = (Instant::now(), json!({ "a": 1 }));
        assert_eq!(self.0.run(QUICK, input.clone()).await?.output(), input);
        Ok(begun.elapsed())
    }

    pub(crate) async fn remove(self) -> Result<()> {
        let api = Api::<Namespace>::all(self.0.client.clone());
        api.delete(&self.0.namespace, &DeleteParams::default()).await?;
        Ok(())
    }
}

fn has_ended(execution: &SkillExecution) -> bool {
    execution.status.as_ref().is_some_and(|status| status.phase.is_terminal())
}

fn done(execution: SkillExecution) -> Result<Done> {
    let number = execution.spec.input.as_ref().and_then(|input| input["number"].as_u64());
    Ok(Done {
        uid: execution.uid().context("no uid")?,
        skill: execution.spec.skill,
        number: number.context("no number")?,
        status: execution.status.context("no status")?,
    })
}

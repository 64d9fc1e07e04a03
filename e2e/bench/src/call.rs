//! Time that the gateway adds to a skill call: a run started through it, against the same SkillExecution created and watched
//! directly.
//!
//! A cold run takes so long, and so differently from one to the next, that a few milliseconds would be lost in it. So the
//! run itself is left out, as one watch sees it: counted is the way to it, from the request to the execution's creation,
//! and the way back, from its end to the answer. Created and watched directly it has no way back.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use futures::TryStreamExt as _;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{Service, ServiceAccount},
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, PostParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use skillet_api::{Phase, SkillExecution};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    cluster::{client, ready_skill, rest, within},
    cold::program,
    figure::Figure,
    http::{self, Connection},
};

const NAMESPACE: &str = "skillet-bench-call";
const SKILL: &str = "bench";
const AGENT: &str = "agent";
const AUDIENCE: &str = "skillet";
/// Namespace and Service that the chart gives the gateway.
const GATEWAY: (&str, &str) = ("skillet-system", "skillet-gateway");
const LIMIT: Duration = Duration::from_secs(60);
/// Rights that are new are not known everywhere at once.
const TRIES: usize = 40;
const PAUSE: Duration = Duration::from_millis(500);

/// One run: the ways to it and back, and all of it.
#[derive(Clone, Copy)]
struct Run {
    ways_ms: f64,
    whole_ms: f64,
}

pub(crate) async fn measure(runs: usize) -> anyhow::Result<Vec<Figure>> {
    let client = client().await?;
    within(&client, NAMESPACE, async |client| in_namespace(client, runs).await).await
}

async fn in_namespace(client: &Client, runs: usize) -> anyhow::Result<Vec<Figure>> {
    ready_skill(client, NAMESPACE, SKILL, &json!({ "runtime": "shell", "command": program() })).await?;
    let mut bench = Bench::open(client).await?;
    bench.until_allowed().await?;
    let (mut through, mut direct) = (Vec::new(), Vec::new());
    for run in 0..runs {
        // Each comes first as often as the other.
        for place in 0..2 {
            rest(client, NAMESPACE).await?;
            if (run + place) % 2 == 0 {
                through.push(bench.through_the_gateway().await?);
            } else {
                direct.push(bench.directly().await?);
            }
        }
    }
    let ways = |runs: &[Run]| median(runs.iter().map(|run| run.ways_ms));
    let whole = |runs: &[Run]| median(runs.iter().map(|run| run.whole_ms));
    println!(
        "through the gateway: {:.2} ms beside the run, {:.0} ms in all",
        ways(&through),
        whole(&through)
    );
    println!("directly:            {:.2} ms beside the run, {:.0} ms in all", ways(&direct), whole(&direct));
    Ok(vec![Figure::lower("skill_call_added_p50_ms", ways(&through) - ways(&direct), 3.0, "ms", runs)])
}

/// Both ways to a run, and the watch that sees it.
struct Bench {
    executions: Api<SkillExecution>,
    gateway: Connection,
    /// The request for a run.
    asked: Vec<u8>,
    seen: Watched,
}

impl Bench {
    async fn open(client: &Client) -> anyhow::Result<Self> {
        make_agent(client).await?;
        let bearer = format!("Bearer {}", token(client).await?);
        let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
        let body = json!({ "skill": SKILL }).to_string();
        let executions: Api<SkillExecution> = Api::namespaced(client.clone(), NAMESPACE);
        Ok(Self {
            gateway: Connection::open(&address(client).await?).await?,
            asked: http::request("POST /api/skills/executions", &headers, &body),
            seen: Watched::begin(executions.clone()),
            executions,
        })
    }

    /// Runs once without counting: the caller is known then, and images are unpacked.
    async fn until_allowed(&mut self) -> anyhow::Result<()> {
        for _ in 0..TRIES {
            let (status, said) = self.ask().await?;
            match status.as_str() {
                "200" => {
                    let (_, _, ended) = self.seen.one_run().await?;
                    return self.remove(&ended).await;
                }
                "401" | "403" | "404" | "503" => sleep(PAUSE).await,
                _ => bail!("the gateway answered {status}: {said}"),
            }
        }
        bail!("the gateway does not run skills for {NAMESPACE}/{AGENT}")
    }

    async fn through_the_gateway(&mut self) -> anyhow::Result<Run> {
        let sent = Instant::now();
        let (status, said) = self.ask().await?;
        let answered = Instant::now();
        ensure!(status == "200", "the gateway answered {status}: {said}");
        let (added, ended, execution) = self.seen.one_run().await?;
        self.remove(&execution).await?;
        let ways_ms = signed_ms(added, sent) + signed_ms(answered, ended);
        Ok(Run { ways_ms, whole_ms: signed_ms(answered, sent) })
    }

    async fn directly(&mut self) -> anyhow::Result<Run> {
        let object: SkillExecution = serde_json::from_value(json!({
            "apiVersion": SkillExecution::api_version(&()),
            "kind": SkillExecution::kind(&()),
            "metadata": { "generateName": format!("{SKILL}-") },
            "spec": { "skill": SKILL },
        }))?;
        let sent = Instant::now();
        self.executions.create(&PostParams::default(), &object).await?;
        let (added, ended, execution) = self.seen.one_run().await?;
        self.remove(&execution).await?;
        Ok(Run { ways_ms: signed_ms(added, sent), whole_ms: signed_ms(ended, sent) })
    }

    async fn ask(&mut self) -> anyhow::Result<(String, String)> {
        self.gateway.write(&self.asked).await?;
        let head = timeout(LIMIT, self.gateway.head()).await.context("the gateway does not answer")??;
        let head = head.context("the gateway closed the connection")?;
        let body = self.gateway.body(&head).await?;
        Ok((head.status().to_owned(), String::from_utf8_lossy(&body).into_owned()))
    }

    async fn remove(&self, execution: &str) -> anyhow::Result<()> {
        self.executions.delete(execution, &DeleteParams::background()).await?;
        Ok(())
    }
}

/// Moments at which the watch saw one execution.
struct Sight {
    name: String,
    is_ended: bool,
    at: Instant,
}

/// One watch over all runs, open all the while.
struct Watched {
    sights: mpsc::UnboundedReceiver<Sight>,
    watch: JoinHandle<()>,
}

impl Watched {
    fn begin(executions: Api<SkillExecution>) -> Self {
        let (seen, sights) = mpsc::unbounded_channel();
        let events = watcher(executions, watcher::Config::default()).default_backoff();
        let watch = tokio::spawn(async move {
            let watched = events.applied_objects().try_for_each(|execution| {
                let at = Instant::now();
                let phase = execution.status.as_ref().map_or(Phase::Pending, |status| status.phase);
                // The receiver goes with the last run.
                seen.send(Sight { name: execution.name_any(), is_ended: phase.is_terminal(), at }).ok();
                futures::future::ok(())
            });
            if let Err(error) = watched.await {
                println!("the watch was lost: {error}");
            }
        });
        Self { sights, watch }
    }

    /// The moments at which the only run was created and ended, and its name.
    async fn one_run(&mut self) -> anyhow::Result<(Instant, Instant, String)> {
        let mut added: Option<(String, Instant)> = None;
        loop {
            let sight = timeout(LIMIT, self.sights.recv()).await.context("a run has not ended in time")?;
            let Sight { name, is_ended, at } = sight.context("the watch was lost")?;
            let (of, first) = added.get_or_insert_with(|| (name.clone(), at));
            ensure!(*of == name, "{of} and {name} ran at the same time");
            if is_ended {
                return Ok((*first, at, name));
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

/// A service account that may see and run skills of the namespace.
async fn make_agent(client: &Client) -> anyhow::Result<()> {
    let group = "rbac.authorization.k8s.io";
    let named = json!({ "name": AGENT });
    let rules =
        json!([{ "apiGroups": ["skillet.dev"], "resources": ["skills"], "verbs": ["get", "execute"] }]);
    make::<ServiceAccount>(client, json!({ "metadata": named })).await?;
    make::<Role>(client, json!({ "metadata": named, "rules": rules })).await?;
    let subject = json!({ "kind": "ServiceAccount", "name": AGENT, "namespace": NAMESPACE });
    let role = json!({ "apiGroup": group, "kind": "Role", "name": AGENT });
    make::<RoleBinding>(client, json!({ "metadata": named, "roleRef": role, "subjects": [subject] })).await
}

async fn make<K>(client: &Client, object: Value) -> anyhow::Result<()>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize,
{
    let object: K = serde_json::from_value(object)?;
    Api::<K>::namespaced(client.clone(), NAMESPACE).create(&PostParams::default(), &object).await?;
    Ok(())
}

async fn token(client: &Client) -> anyhow::Result<String> {
    let api: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let spec = TokenRequestSpec { audiences: Some(vec![AUDIENCE.to_owned()]), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let status = api.create_token_request(AGENT, &PostParams::default(), &request).await?.status;
    status.and_then(|status| status.token).context("the token request was not answered")
}

/// The gateway's address in the cluster, which a node reaches.
async fn address(client: &Client) -> anyhow::Result<String> {
    let (namespace, name) = GATEWAY;
    let service = Api::<Service>::namespaced(client.clone(), namespace).get_opt(name).await?;
    let spec = service.and_then(|service| service.spec);
    let spec = spec.with_context(|| format!("no Service {namespace}/{name}: `make deploy` gives one"))?;
    let port = spec.ports.into_iter().flatten().find(|port| port.name.as_deref() == Some("http"));
    let (ip, port) = spec.cluster_ip.zip(port).context("the gateway's Service has no address")?;
    Ok(format!("{ip}:{}", port.port))
}

/// Milliseconds from one moment to another, which may be the earlier one: two watchers may hear of an event in either order.
fn signed_ms(later: Instant, earlier: Instant) -> f64 {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    match later.checked_duration_since(earlier) {
        Some(time) => ms(time),
        None => -ms(earlier.duration_since(later)),
    }
}

/// The middle one of at least one number.
fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_run_backwards() {
        let earlier = Instant::now();
        let later = earlier + Duration::from_millis(5);
        assert!((signed_ms(later, earlier) - 5.0).abs() < 0.001);
        assert!((signed_ms(earlier, later) + 5.0).abs() < 0.001);
    }

    #[test]
    fn the_median_is_a_number_that_was_measured() {
        assert!((median([3.0, -1.0, 2.0].into_iter()) - 2.0).abs() < f64::EPSILON);
        assert!((median([4.0, 1.0, 2.0, 3.0].into_iter()) - 2.0).abs() < f64::EPSILON);
    }

    #[tokio::test]
    async fn a_run_lasts_from_its_first_sight_to_the_one_of_its_end() {
        let (seen, sights) = mpsc::unbounded_channel();
        let mut watched = Watched { sights, watch: tokio::spawn(async {}) };
        let begin = Instant::now();
        let sight = |name: &str, millis, is_ended| {
            let at = begin + Duration::from_millis(millis);
            assert!(seen.send(Sight { name: name.into(), is_ended, at }).is_ok());
        };
        sight("a", 1, false);
        sight("a", 2, false);
        sight("a", 3, true);
        sight("b", 4, false);
        sight("c", 5, false);
        let (added, ended, name) = watched.one_run().await.unwrap();
        assert_eq!(name, "a");
        assert_eq!((added - begin, ended - begin), (Duration::from_millis(1), Duration::from_millis(3)));
        assert!(watched.one_run().await.is_err());
    }
}

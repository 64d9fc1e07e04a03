//! HTTP skills: what one adds to a direct request, and how many end in a second.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::{TryStreamExt as _, future::try_join_all};
use kube::{
    ResourceExt as _,
    api::PostParams,
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Value, json};
use skillet_api::SkillExecution;
use skillet_e2e::Journey;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout_at},
};

use super::{
    alone,
    host::Host,
    node::{self, Usage},
};
use crate::{
    figure::Figure,
    http::{self, Connection},
    racer::{Racer, execution_end},
    samples::Samples,
};

const SKILL: &str = "weather";
const WARM_UP: usize = 30;
const REQUESTS: usize = 300;
/// A namespace has at most a hundred new connections in a second.
const TENANTS: usize = 6;
/// Executions of a namespace that are under way at one time.
const AT_ONCE: usize = 8;
const LENGTH: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn measure() -> anyhow::Result<Vec<Figure>> {
    alone(TENANTS, async |journeys, host| {
        for j in journeys {
            let run = json!({ "http": { "method": "GET", "url": format!("http://{}:{}/small", host.name, host.address.port()) } });
            j.apply(&json!({
                "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": { "name": SKILL },
                "spec": { "version": "1.0.0", "run": run, "network": host.network() },
            }))
            .await?;
            j.ready(SKILL).await?;
        }
        let mut figures = added(&journeys[0], host).await?;
        figures.push(per_second(journeys).await?);
        Ok(figures)
    })
    .await
}

/// One at a time, in turn with direct requests on new connections.
async fn added(j: &Journey, host: &Host) -> anyhow::Result<Vec<Figure>> {
    let mut executions = Racer::<SkillExecution>::new(&j.client, &j.namespace, execution_end);
    let (mut skill, mut direct) = (Samples::default(), Samples::default());
    for run in 0..WARM_UP + REQUESTS {
        let took = executions.run(&format!("run-{run}"), json!({ "skill": SKILL })).await?;
        let straight = straight(host).await?;
        if run >= WARM_UP {
            skill.add(took);
            direct.add(straight);
        }
        // The broker limits new connections in a second; and the watch has no other event beside the next run.
        sleep(PAUSE).await;
    }
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let straight = ms(direct.median());
    let [half, nine, most] = [0.5, 0.9, 0.99].map(|part| ms(skill.quantile(part)));
    println!(
        "HTTP skill created -> terminal status seen: p50 {half:.1}, p90 {nine:.1}, p99 {most:.1} ms; directly {straight:.2} ms; load {}",
        node::load()
    );
    Ok(vec![
        Figure::lower("http_skill_added_ms", half - straight, 10.0, "ms", REQUESTS),
        Figure::lower("http_skill_added_p99_ms", most - straight, None, "ms", REQUESTS),
    ])
}

async fn straight(host: &Host) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let mut connection = Connection::open(&host.address.to_string()).await?;
    connection.write(&http::request("GET /small", &[], "")).await?;
    let head = connection.head().await?.context("the host closed the connection")?;
    connection.body(&head).await?;
    Ok(started.elapsed())
}

/// Many at once, in several namespaces.
async fn per_second(journeys: &[Journey]) -> anyhow::Result<Figure> {
    let usage = Usage::begin();
    let until = tokio::time::Instant::now() + LENGTH;
    let ended = try_join_all(journeys.iter().map(|j| flood(j, until))).await?;
    let ended: u32 = ended.iter().sum();
    let per_second = f64::from(ended) / LENGTH.as_secs_f64();
    println!(
        "{ended} HTTP skills ended in {LENGTH:?}; seconds of a core: {}; load {}",
        usage.end().await?,
        node::load()
    );
    Ok(Figure::higher("http_skills_per_s", per_second, 300.0, "1/s", journeys.len()))
}

/// Keeps executions of one namespace under way and counts those that succeed in time.
async fn flood(j: &Journey, until: tokio::time::Instant) -> anyhow::Result<u32> {
    let object: SkillExecution = serde_json::from_value(execution())?;
    let (seen, mut ends) = mpsc::unbounded_channel();
    let selected = watcher::Config::default().labels("skillet.dev/bench=flood");
    let watched = watcher(j.api::<SkillExecution>(), selected).default_backoff();
    let watch = tokio::spawn(async move {
        let each = watched.applied_objects().try_for_each(|execution| {
            if let Some(is_success) = execution_end(&execution) {
                let message = execution.status.as_ref().and_then(|status| status.message.clone());
                // The receiver goes with the last run.
                seen.send((execution.name_any(), is_success, message)).ok();
            }
            futures::future::ok(())
        });
        each.await
    });
    let create = async || {
        j.api::<SkillExecution>().create(&PostParams::default(), &object).await.map(|made| made.name_any())
    };
    try_join_all((0..AT_ONCE).map(|_| create())).await?;
    let (mut ended, mut creating) = (0, futures::stream::FuturesUnordered::new());
    loop {
        tokio::select! {
            end = timeout_at(until, ends.recv()) => match end {
                Ok(Some((name, is_success, message))) => {
                    ensure!(is_success, "{name} failed: {message:?}");
                    ended += 1;
                    creating.push(create());
                }
                Ok(None) => anyhow::bail!("the watch was lost"),
                Err(_) => break,
            },
            Some(made) = futures::StreamExt::next(&mut creating), if !creating.is_empty() => {
                made?;
            }
        }
    }
    watch.abort();
    Ok(ended)
}

fn execution() -> Value {
    json!({
        "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution",
        "metadata": { "generateName": "flood-", "labels": { "skillet.dev/bench": "flood" } },
        "spec": { "skill": SKILL },
    })
}

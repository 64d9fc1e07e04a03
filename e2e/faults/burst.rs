//! Hundreds of executions at once: all end, in order of arrival within a namespace, none starved, limits held.

use std::{collections::HashMap, time::Duration};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, api::DeleteParams};
use serde_json::json;
use skillet_api::Reason;
use skillet_e2e::{Journey, SkillDraft, amount, journey_under};

use crate::{
    load::{self, Done},
    run_counter::RunCounter,
};

const LIMIT: Duration = Duration::from_secs(450);
const PER_NAMESPACE: usize = 12;
const TOTAL: usize = 20;
/// Executions, unless SKILLET_BURST says otherwise.
const COUNT: u64 = 200;

/// Many in one namespace, and two small ones that come after it.
fn shares() -> [u64; 3] {
    let count = amount("SKILLET_BURST", COUNT);
    [count * 80 / 100, count * 12 / 100, count * 8 / 100]
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_at_once_all_end_in_order_and_none_is_starved() -> Result<()> {
    // Sandboxes without a user namespace start in three quarters of the time, and order is all that is looked at here.
    let policy = json!({
        "isolation": "Compatible",
        "startTimeout": "4m",
        "concurrency": { "total": TOTAL, "perNamespace": PER_NAMESPACE },
    });
    journey_under(policy, async |j| {
        let others = [load::namespace(j, "b").await?, load::namespace(j, "c").await?];
        let namespaces = [j.namespace.clone(), others[0].clone(), others[1].clone()];
        let result = burst(j, &namespaces).await;
        for other in &others {
            Api::<Namespace>::all(j.client.clone()).delete(other, &DeleteParams::default()).await?;
        }
        result
    })
    .await
}

async fn burst(journey: &Journey, namespaces: &[String; 3]) -> Result<()> {
    let skill = SkillDraft::shell("echo", "cat").object();
    let shares = shares();
    for namespace in namespaces {
        skillet_e2e::manifest::apply(&journey.client, namespace, skill.clone()).await?;
    }
    // All at once: the small ones come while the large one is still being made.
    let [many, some, few] = namespaces;
    let counters = namespaces.each_ref().map(|namespace| RunCounter::open(&journey.client, namespace));
    let (a, b, c) = tokio::join!(
        load::start(journey, many, "echo", shares[0]),
        load::start(journey, some, "echo", shares[1]),
        load::start(journey, few, "echo", shares[2]),
    );
    a.and(b).and(c)?;
    let mut last_ends = Vec::new();
    for ((namespace, share), counter) in namespaces.iter().zip(shares).zip(&counters) {
        let done = load::all_ended(journey, namespace, usize::try_from(share)?, LIMIT).await?;
        check_order(namespace, &done, counter)?;
        check_limit(&done, PER_NAMESPACE)?;
        last_ends.push(done.iter().filter_map(finished).max().context("nothing ended")?);
    }
    let [many, some, few] = last_ends[..] else { return Ok(()) };
    ensure!(some < many && few < many, "the small namespaces waited for the large one: {few} {some} {many}");
    Ok(())
}

fn started(done: &Done) -> Option<Timestamp> {
    done.status.started_at.as_ref().map(|at| at.0)
}

fn finished(done: &Done) -> Option<Timestamp> {
    done.status.finished_at.as_ref().map(|at| at.0)
}

/// Sandboxes were made in the order in which the executions came. The operator creates those that may run at one time side by
/// side, so that no place differs by more than their number; when a program then starts is the node's business.
fn check_order(namespace: &str, done: &[Done], counter: &RunCounter) -> Result<()> {
    for one in done {
        ensure!(one.status.reason == Some(Reason::Succeeded), "{namespace} {}: {:?}", one.number, one.status);
    }
    if !counter.is_whole() {
        eprintln!("{namespace}: the order is not looked at, for not every sandbox was seen");
        return Ok(());
    }
    let order = counter.order();
    let places: HashMap<&str, usize> = order.iter().map(String::as_str).zip(0..).collect();
    for (expected, one) in done.iter().enumerate() {
        let place = *places.get(one.uid.as_str()).context("a run without a sandbox")?;
        ensure!(
            place.abs_diff(expected) <= 2 * PER_NAMESPACE,
            "{namespace}: execution {} came as number {expected} and was started as number {place}",
            one.number
        );
    }
    Ok(())
}

/// At no time did more run than may.
fn check_limit(done: &[Done], limit: usize) -> Result<()> {
    let mut changes: Vec<(Timestamp, i64)> = Vec::new();
    for one in done {
        changes.push((started(one).context("no start")?, 1));
        changes.push((finished(one).context("no end")?, -1));
    }
    changes.sort_unstable();
    let mut running = 0;
    for (at, change) in changes {
        running += change;
        ensure!(running <= i64::try_from(limit)?, "{running} ran at {at}, more than {limit}");
    }
    Ok(())
}

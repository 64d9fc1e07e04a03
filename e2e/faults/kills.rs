//! The operator is killed at random points under load: nothing is lost, nothing is run twice.

use std::{
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;
use skillet_api::{Phase, Reason, SkillExecution};
use skillet_e2e::{Journey, SkillDraft, amount, eventually, journey_under, operator, sandbox};
use tokio::time::sleep;

use crate::{
    load::{self, Done},
    run_counter::RunCounter,
};

/// Kills, unless SKILLET_KILLS says otherwise.
const KILLS: u64 = 6;
/// Tenths of the kills after which something else happens, too.
const RAISED_AFTER: u64 = 3;
const LOST_AFTER: u64 = 4;
const CANCELLED_AFTER: u64 = 7;
/// The seed of random times, unless SKILLET_SEED says otherwise.
const SEED: u64 = 25;
const LIMIT: Duration = Duration::from_secs(300);
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// Skills and how many runs of each. Those that last come first, so that they run when something happens to them.
fn load_of(kills: u64) -> [(&'static str, u64); 4] {
    [("mortal", 4), ("patient", 10), ("count", 4 * kills), ("late", kills / 2)]
}

/// Short and long runs, so that kills meet every step of a run. The version says which content was run.
fn count(version: u32) -> SkillDraft {
    let script = format!(
        "number=$(jq .number); echo \"{{\\\"number\\\": $number, \\\"version\\\": {version}}}\"; [ $((number % 5)) -ne 0 ] || sleep 2"
    );
    SkillDraft::shell("count", &script).version(&format!("{version}.0.0")).limit("concurrency", 12)
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_under_load_lose_nothing_and_run_nothing_twice() -> Result<()> {
    // Under no other policy, but with nobody beside it.
    journey_under(json!({}), async |j| {
        let kills = amount("SKILLET_KILLS", KILLS);
        let load = load_of(kills);
        j.apply(&count(1)).await?;
        j.apply(&SkillDraft::shell("late", "sleep 30").limit("timeout", "1s")).await?;
        j.apply(&SkillDraft::shell("mortal", "sleep 120").limit("timeout", "2m10s")).await?;
        j.apply(&SkillDraft::shell("patient", "sleep 600").limit("timeout", "5m").limit("concurrency", 2))
            .await?;
        for (skill, _) in load {
            j.ready(skill).await?;
        }
        let counter = RunCounter::open(&j.client, &j.namespace);
        for (skill, runs) in load {
            load::start(j, &j.namespace, skill, runs).await?;
        }
        let [raised, lost, cancelled] =
            [RAISED_AFTER, LOST_AFTER, CANCELLED_AFTER].map(|tenths| (kills * tenths).div_ceil(10));
        for kill in 1..=kills {
            // The points in time are random.
            sleep(random_millis(2_000)).await;
            kill_operator(j).await?;
            if kill == raised {
                j.apply(&count(2)).await?;
            }
            if kill == lost {
                lose_sandboxes(j).await?;
            }
            if kill == cancelled {
                cancel_all(j).await?;
            }
        }
        let total: u64 = load.iter().map(|(_, runs)| runs).sum();
        let done = load::all_ended(j, &j.namespace, usize::try_from(total)?, LIMIT).await?;
        for one in &done {
            check(one)?;
            check_runs(one, &counter).await?;
        }
        Ok(())
    })
    .await
}

/// Each ended as it would have under one operator.
fn check(one: &Done) -> Result<()> {
    let (phase, reason) = (one.status.phase, one.status.reason);
    let is_right = match one.skill.as_str() {
        "count" => reason == Some(Reason::Succeeded) && has_own_output(one),
        "late" => reason == Some(Reason::TimedOut),
        // Its sandbox was deleted, unless it had none yet at that time.
        "mortal" => matches!(reason, Some(Reason::SandboxLost | Reason::Succeeded)),
        _ => phase == Phase::Cancelled,
    };
    ensure!(is_right, "execution {} of {} ended otherwise: {:?}", one.number, one.skill, one.status);
    Ok(())
}

/// Its own number, and that of the version which the status tells.
fn has_own_output(one: &Done) -> bool {
    let Some(output) = &one.status.output else { return false };
    let version = output["version"].as_u64().map(|major| format!("{major}.0.0"));
    output["number"].as_u64() == Some(one.number) && version == one.status.resolved_version
}

/// By the runners' receipts: what ended by itself was run once, what was ended from outside at most once.
async fn check_runs(one: &Done, counter: &RunCounter) -> Result<()> {
    let is_ended_by_itself = matches!(one.status.reason, Some(Reason::Succeeded | Reason::TimedOut));
    if is_ended_by_itself && counter.is_whole() {
        // The watch may show the pod's last state a moment after the result.
        eventually("the receipt of every run is there", BACK_WITHIN, async || {
            Ok((counter.runs(&one.uid) > 0).then_some(()))
        })
        .await?;
    }
    let runs = counter.runs(&one.uid);
    ensure!(runs <= 1, "execution {} of {} was run {runs} times", one.number, one.skill);
    Ok(())
}

/// The state of a sequence of random numbers.
static SEQUENCE: LazyLock<AtomicU64> = LazyLock::new(|| {
    let seed = amount("SKILLET_SEED", SEED);
    println!("SKILLET_SEED={seed} repeats the random times of this run");
    AtomicU64::new(seed)
});

/// A random time of up to `most` milliseconds.
pub(crate) fn random_millis(most: u64) -> Duration {
    // The constant of SplitMix64 visits every state; the hash of a fixed key spreads them.
    let state = SEQUENCE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    Duration::from_millis(BuildHasherDefault::<DefaultHasher>::default().hash_one(state) % most)
}

/// Without grace, as a crash: the pod is gone at once, and its process with it.
async fn kill_operator(journey: &Journey) -> Result<()> {
    operator::delete(&journey.client, &DeleteParams::default().grace_period(0)).await.map(drop)
}

/// Deletes, without a word to the runner, what sandboxes the mortal ones have.
async fn lose_sandboxes(j: &Journey) -> Result<()> {
    let pods = sandbox::pods(&j.client);
    for pod in pods.list(&ListParams::default().labels("skillet.dev/skill=mortal")).await?.items {
        pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await.context("a sandbox")?;
    }
    Ok(())
}

/// Cancels the patient ones: two run, the others wait for their turn, and no operator may be there.
async fn cancel_all(j: &Journey) -> Result<()> {
    let api = j.api::<SkillExecution>();
    let patient = ListParams::default().fields("spec.skill=patient");
    for execution in api.list(&patient).await?.items {
        let patch = Patch::Merge(json!({ "spec": { "cancel": true } }));
        api.patch(&execution.name_any(), &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

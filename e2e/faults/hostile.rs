//! Valid objects of one tenant that are as hard to read as objects can be, and another tenant's run beside them.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::future::{LocalBoxFuture, try_join_all};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use skillet_e2e::{
    Journey, SkillDraft, eventually, journey_under, operator,
    process::{of_operator, peak_megabytes, reset_peak},
};

use crate::load::{QUICK, time_quick_run};

/// Most resident memory of the operator, in MB.
const MOST: u64 = 300;
/// Bytes of one object's text, below what etcd takes.
const LARGE: usize = 1_350_000;
const WITHIN: Duration = Duration::from_secs(60);

/// A text of small objects, each of which takes many times its text when it is read.
fn small_objects(bytes: usize) -> Value {
    json!(vec![json!({ "": 0 }); bytes / r#"{"":0},"#.len()])
}

/// The operator that leads: its pod and process.
async fn leader(j: &Journey) -> Result<(String, u32)> {
    let pod = eventually("an operator leads", WITHIN, async || Ok(operator::pod(&j.client).await.ok()));
    let name = pod.await?.name_any();
    let pid = of_operator(&name)?;
    Ok((name, pid))
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_objects_of_one_tenant_neither_end_nor_stop_the_operator() -> Result<()> {
    // Three at a time, so that many large inputs wait.
    journey_under(json!({ "concurrency": { "total": 8, "perNamespace": 3 } }), async |j| {
        j.apply(&SkillDraft::shell("count", "wc -c")).await?;
        j.apply(&SkillDraft::shell(QUICK, "cat")).await?;
        j.ready("count").await?;
        j.ready(QUICK).await?;
        let usual = time_quick_run(j).await?;
        for (what, act) in CASES {
            let (pod, pid) = leader(j).await?;
            reset_peak(pid)?;
            act(j).await.context(what)?;
            let beside = time_quick_run(j).await?;
            let peak = peak_megabytes(pid).with_context(|| format!("the operator ended: {what}"))?;
            println!(
                "{what}: the operator took {peak} MB at most; another run took {:.1} times its usual time",
                beside.as_secs_f64() / usual.as_secs_f64()
            );
            ensure!(peak <= MOST, "{what}: the operator took {peak} MB");
            ensure!(leader(j).await? == (pod, pid), "{what}: the operator was replaced");
        }
        Ok(())
    })
    .await
}

type Act = for<'a> fn(&'a Journey) -> LocalBoxFuture<'a, Result<()>>;

const CASES: [(&str, Act); 5] = [
    ("eight inputs of small objects", |j| Box::pin(large_inputs(j, 8))),
    ("four Skills with a large schema", |j| Box::pin(large_schemas(j))),
    ("a Skill of many large versions", |j| Box::pin(many_versions(j))),
    ("a schema of large patterns", |j| Box::pin(large_patterns(j))),
    ("forty large inputs that wait", |j| Box::pin(large_inputs(j, 40))),
];

async fn large_inputs(j: &Journey, count: usize) -> Result<()> {
    let started =
        try_join_all((0..count).map(|_| j.start("count", json!({ "all": small_objects(LARGE) })))).await?;
    // Beside the first ones another tenant's run is measured.
    j.ended(&started[0]).await?;
    Ok(())
}

async fn large_schemas(j: &Journey) -> Result<()> {
    for number in 0..4 {
        let schema = json!({ "type": "object", "examples": small_objects(LARGE) });
        let draft = SkillDraft::shell(&format!("large-{number}"), "cat").input_schema(schema);
        // It may be refused at once, or found to be invalid; either is right.
        j.apply(&draft).await.ok();
    }
    Ok(())
}

async fn many_versions(j: &Journey) -> Result<()> {
    for number in 1..=12 {
        let schema = json!({ "type": "object", "examples": small_objects(100_000) });
        let draft = SkillDraft::shell("versions", "cat").version(&format!("{number}.0.0"));
        j.apply(&draft.input_schema(schema.clone()).output_schema(schema)).await?;
        j.ready("versions").await?;
    }
    j.run("versions", json!({})).await.map(drop)
}

async fn large_patterns(j: &Journey) -> Result<()> {
    let property = |number: usize| {
        let pattern = format!("^([a-z]{{1,60}}[0-9]{{1,60}}){{1,8}}x{number}$");
        (format!("p{number}"), json!({ "type": "string", "pattern": pattern }))
    };
    let properties: serde_json::Map<String, Value> = (0..60).map(property).collect();
    let schema = json!({ "type": "object", "properties": properties });
    j.apply(&SkillDraft::shell("patterns", "cat").input_schema(schema)).await?;
    // Refused as too large, or run; the operator's memory is what counts.
    let run = j.start("patterns", json!({ "p1": "a1x1" })).await?;
    j.ended(&run).await.map(drop)
}

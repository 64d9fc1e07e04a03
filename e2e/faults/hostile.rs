//! Valid objects of one tenant that are as hard to read as objects can be, and another tenant's run beside them.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use skillet_e2e::{
    hostile, journey_under, operator,
    process::{peak_megabytes, reset_peak},
};

use crate::load::Neighbor;

/// Most resident memory of the operator, in MB.
const MOST: u64 = 300;

#[tokio::test(flavor = "multi_thread")]
async fn hostile_objects_of_one_tenant_neither_end_nor_stop_the_operator() -> Result<()> {
    // Three at a time, so that many large inputs wait.
    journey_under(json!({ "concurrency": { "total": 8, "perNamespace": 3 } }), async |j| {
        j.apply(&hostile::count()).await?;
        j.ready("count").await?;
        let neighbor = Neighbor::set_up(j).await?;
        let usual = neighbor.time_run().await?;
        for (what, act) in hostile::CASES {
            let leader = operator::leader(&j.client).await?;
            reset_peak(leader.pid)?;
            act(j).await.context(what)?;
            let beside = neighbor.time_run().await?;
            let peak = peak_megabytes(leader.pid).with_context(|| format!("the operator ended: {what}"))?;
            println!(
                "{what}: the operator took {peak} MB at most; another run took {:.1} times its usual time",
                beside.as_secs_f64() / usual.as_secs_f64()
            );
            ensure!(peak <= MOST, "{what}: the operator took {peak} MB");
            ensure!(operator::leader(&j.client).await? == leader, "{what}: the operator was replaced");
        }
        neighbor.remove().await
    })
    .await
}

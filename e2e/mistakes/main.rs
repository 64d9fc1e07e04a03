//! The table of mistakes: each row applies, runs or sends one, and the answer must name field and fix at once.
//!
//! A program of its own, since it changes where the gateway finds its model providers. Needs `SKILLET_E2E=1` and a
//! cluster with Skillet in it, `kubectl-skill` and helm on the PATH, like the others. The rows are in `tables/`.

mod commands;
mod door;
mod objects;
mod programs;
mod report;
mod requests;
mod runs;
mod skills;
mod stage;
mod values;

use anyhow::{Result, ensure};
use skillet_e2e::journey_under;

use crate::{
    commands::Command, door::rows, objects::Object, report::Report, requests::GatewayRequest, runs::Run,
    skills::Skill, stage::Stage, values::Values,
};

/// Fewest rows of all tables together.
const LEAST: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn every_mistake_is_answered_with_its_field_and_fix_at_once() -> Result<()> {
    journey_under(stage::policy(), async |j| {
        let stage = Stage::set_up(j).await?;
        let mut report = Report::default();
        report.add(door::play::<Skill>(&stage).await?);
        report.add(door::play::<Object>(&stage).await?);
        report.add(door::play::<Run>(&stage).await?);
        report.add(door::play::<GatewayRequest>(&stage).await?);
        report.add(door::play::<Command>(&stage).await?);
        report.add(door::play::<Values>(&stage).await?);
        report.print();
        report.check()
    })
    .await
}

#[test]
fn every_table_is_read_and_each_longer_time_has_its_cause() -> Result<()> {
    let rows = [
        door::summaries(&rows::<Skill>()?),
        door::summaries(&rows::<Object>()?),
        door::summaries(&rows::<Run>()?),
        door::summaries(&rows::<GatewayRequest>()?),
        door::summaries(&rows::<Command>()?),
        door::summaries(&rows::<Values>()?),
    ]
    .concat();
    ensure!(rows.len() >= LEAST, "there are only {} rows", rows.len());
    for (index, row) in rows.iter().enumerate() {
        ensure!(!rows[..index].contains(row), "{row:?} stands twice");
        ensure!(row.has_cause, "{row:?} has a longer time without a cause");
    }
    Ok(())
}

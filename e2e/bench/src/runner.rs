//! The runner by itself: its size, and what its confinement adds to starting a program.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use tokio::process::Command;

use crate::figure::Figure;

/// Starts in each of the processes below, bare and confined in turn.
const STARTS: usize = 200;
/// One process may have an unlucky place in memory: the median of several counts.
const PROCESSES: usize = 5;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
// The names are the report's own.
#[allow(clippy::struct_field_names)]
struct Report {
    bare_us: f64,
    confined_us: f64,
    added_us: f64,
}

pub(crate) async fn measure(runner: &Path) -> anyhow::Result<Vec<Figure>> {
    let size = fs::metadata(runner)
        .with_context(|| format!("there is no {}: `make images`", runner.display()))?
        .len();
    let mut reports = Vec::new();
    for _ in 0..PROCESSES {
        reports.push(bench_spawn(runner).await?);
    }
    reports.sort_by(|a, b| a.added_us.total_cmp(&b.added_us));
    let middle = &reports[PROCESSES / 2];
    println!("a bare start takes {:.0} us, a confined one {:.0} us", middle.bare_us, middle.confined_us);
    // Far below where a double loses whole numbers.
    #[allow(clippy::cast_precision_loss)]
    let size = size as f64;
    Ok(vec![
        Figure::lower("runner_bytes", size, 2e6, "bytes", 1),
        Figure::lower("confine_ms", middle.added_us / 1000.0, 0.5, "ms", STARTS * PROCESSES),
    ])
}

/// Copies the runner beside this program. It starts itself again under confinement, which hides the scratch folders: a
/// checkout there would hide it.
pub(crate) fn outside_of_scratch(runner: &Path) -> anyhow::Result<PathBuf> {
    let beside = std::env::current_exe()?.with_file_name("skillet-runner-measured");
    fs::copy(runner, &beside)
        .with_context(|| format!("could not copy {}; `make images` builds it", runner.display()))?;
    Ok(beside)
}

async fn bench_spawn(runner: &Path) -> anyhow::Result<Report> {
    let runner = outside_of_scratch(runner)?;
    let output = Command::new(&runner).arg("bench-spawn").arg(STARTS.to_string()).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} bench-spawn: {}", runner.display(), said.trim());
    serde_json::from_slice(&output.stdout).context("bench-spawn printed no report")
}

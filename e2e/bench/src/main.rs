//! Measures and tells: a table for people, `target/bench.json` for programs. What each figure means is in
//! docs/benchmarks.md. Where something lacks that a figure needs, one line says what, and the others go on.

mod audit;
mod call;
mod cluster;
mod cold;
mod egress;
mod figure;
mod gateway;
mod http;
mod images;
mod instructions;
mod offer;
mod operator;
mod plot;
mod process;
mod racer;
mod rest;
mod runner;
mod samples;
mod scripts;
mod separate_runtime;
mod sources;
mod writes;

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, ValueEnum};

use self::{figure::Figure, rest::Held};

/// Leaders that are killed for takeover_s.
const KILLS: usize = 5;

/// Measures Skillet on the cluster of KUBECONFIG, and its artefacts in target/.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Args {
    /// Only these, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Subject>,
    /// Cold runs, bare pods and bare Jobs, and runs through the gateway and directly, of each.
    #[arg(long, default_value_t = 20)]
    runs: usize,
    /// Skills that the operator holds while it rests.
    #[arg(long, default_value_t = 1000)]
    skills: usize,
    /// The runner to measure; default the one that is in the images.
    #[arg(long)]
    runner: Option<PathBuf>,
    /// The program to measure as the gateway; default the one that is in the image, else one that is built now.
    #[arg(long)]
    gateway: Option<PathBuf>,
    /// File into which the growth of an offer's time is drawn, as SVG; default none.
    #[arg(long)]
    plot: Option<PathBuf>,
    /// File into which the figures are put beside those that are there; default target/bench.json.
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// runner_bytes and confine_ms
    Runner,
    /// image_mb_*
    Images,
    /// cold_vs_pod and cold_vs_job
    Cold,
    /// writes_per_run
    Writes,
    /// rest_mb
    Rest,
    /// rest_10k_mb: 10 000 Skills and 1 000 finished executions
    RestMany,
    /// takeover_s
    Takeover,
    /// hostile_peak_mb
    Hostile,
    /// offer_* and index_*
    Offer,
    /// skillmd_parse_ms, trigger_10k_ms and listing_overhead_tokens
    Instructions,
    /// script_added_ms
    Scripts,
    /// source_sync_ratio
    Sources,
    /// proxy_* and gateway_10k_mb
    Gateway,
    /// skill_call_added_p50_ms
    Call,
    /// egress_http_ratio and egress_kept_ratio
    EgressRequests,
    /// egress_throughput_mb_s
    EgressThroughput,
    /// egress_idle_ratio
    EgressIdle,
    /// http_skill_added_ms and http_skills_per_s
    HttpSkills,
    /// broker_connection_kib
    EgressMemory,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let root = workspace();
    let subjects = if args.only.is_empty() { Subject::value_variants() } else { &args.only[..] };
    let (mut figures, mut has_all) = (Vec::new(), true);
    for subject in subjects {
        match measure(*subject, &args, &root).await {
            Ok(found) => figures.extend(found),
            Err(error) => {
                has_all = false;
                let name = subject.to_possible_value().map(|value| value.get_name().to_owned());
                println!("{} is not measured: {error:#}", name.unwrap_or_default());
            }
        }
    }
    let out = args.out.unwrap_or_else(|| root.join("target/bench.json"));
    figure::merge_into(&out, &figures)?;
    println!("\n{}", figure::table(&figures));
    println!("written to {}", out.display());
    Ok(if has_all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn measure(subject: Subject, args: &Args, root: &Path) -> anyhow::Result<Vec<Figure>> {
    let runner = || args.runner.clone().unwrap_or_else(|| root.join("target/images/bin/skillet-runner"));
    match subject {
        Subject::Runner => runner::measure(&runner()).await,
        Subject::Images => images::measure(&root.join("target/images/images.json")),
        Subject::Cold => cold::measure(args.runs).await,
        Subject::Writes => writes::measure(&cluster::audit_log()).await,
        Subject::Rest => {
            let held = Held { figure: "rest_mb", goal: 30.0, skills: args.skills, finished_executions: 0 };
            rest::measure(&held).await
        }
        Subject::RestMany => {
            let held = Held { figure: "rest_10k_mb", goal: 40.0, skills: 10_000, finished_executions: 1_000 };
            rest::measure(&held).await
        }
        Subject::Takeover => operator::takeover(KILLS).await,
        Subject::Hostile => operator::hostile_peak().await,
        Subject::Offer => offer::measure(args.plot.as_deref()),
        Subject::Instructions => instructions::measure(),
        Subject::Scripts => scripts::measure(args.runs).await,
        Subject::Sources => sources::measure().await,
        Subject::Call => call::measure(args.runs).await,
        Subject::EgressRequests => egress::requests(&runner()).await,
        Subject::EgressThroughput => egress::throughput().await,
        Subject::EgressIdle => egress::idle().await,
        Subject::HttpSkills => egress::http_skills().await,
        Subject::EgressMemory => egress::memory().await,
        Subject::Gateway => gateway::measure(args.gateway.as_deref(), root).await,
    }
}

/// The workspace that `cargo run` found, else the working directory.
fn workspace() -> PathBuf {
    let of_crate = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    of_crate.and_then(|folder| folder.ancestors().nth(2).map(Path::to_owned)).unwrap_or_default()
}

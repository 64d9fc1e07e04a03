//! The running gateway, without a cluster: what it adds to a request, how many it takes, what memory it holds.
//!
//! The program is the real one, in a process of its own. This process is its API server, its model and its clients, and
//! so shares the machine with it.

mod api;
mod load;
mod model;
mod run;
mod skills;

use std::{path::Path, time::Duration};

use anyhow::ensure;
use tokio::time::sleep;

use self::{
    api::Api,
    load::{Until, flood, in_turn},
    run::Running,
    skills::Mode,
};
use crate::{figure::Figure, images::megabytes, samples::Samples};

const WARM_UP: usize = 500;
const REQUESTS: usize = 4_000;
const CONNECTIONS: usize = 32;
const FLOOD: Duration = Duration::from_secs(10);
const FLOOD_WARM_UP: Duration = Duration::from_secs(2);
const MANY: u32 = 10_000;
/// Before the memory is looked at: requests, and a time in which nothing happens.
const REQUESTS_BEFORE: u64 = 100;
const IDLE: Duration = Duration::from_secs(5);

pub(crate) async fn measure(gateway: Option<&Path>, root: &Path) -> anyhow::Result<Vec<Figure>> {
    let program = run::program(gateway, root).await?;
    println!("the gateway is {}", program.display());
    let model = model::start().await?.to_string();
    let mut figures = added(&program, &model).await?;
    figures.push(throughput(&program, &model).await?);
    figures.push(memory(&program, &model).await?);
    Ok(figures)
}

async fn start(program: &Path, model: &str, number: u32, mode: Mode) -> anyhow::Result<Running> {
    let (all, versions) = skills::made(number, mode);
    let policy = vec![skills::policy(model)];
    let api = Api::new([("skills", all), ("skillversions", versions), ("skillpolicies", policy)]);
    run::start(program, api.start().await?).await
}

/// Time that the gateway adds to a model request with one skill offered, which the model does not call.
async fn added(program: &Path, model: &str) -> anyhow::Result<Vec<Figure>> {
    let gateway = start(program, model, 1, Mode::On).await?;
    ensure!(load::is_offered_skills(&gateway.address, 0).await?, "the one skill is not offered");
    let mut figures = Vec::new();
    for (until, name, what) in [
        (Until::Whole, "proxy_added_p50_ms", "whole answer"),
        (Until::FirstByte, "proxy_first_byte_added_p50_ms", "first byte of a stream"),
    ] {
        let (through, straight) = in_turn(&gateway.address, model, until, WARM_UP, REQUESTS).await?;
        let micros = |samples: &Samples| samples.median().as_secs_f64() * 1e6;
        let (through, straight) = (micros(&through), micros(&straight));
        println!("{what}: {through:.0} us through the gateway, {straight:.0} us straight to the model");
        figures.push(Figure::lower(name, (through - straight) / 1000.0, 0.5, "ms", REQUESTS));
    }
    Ok(figures)
}

/// Requests a second with one skill offered.
async fn throughput(program: &Path, model: &str) -> anyhow::Result<Figure> {
    let gateway = start(program, model, 1, Mode::On).await?;
    ensure!(load::is_offered_skills(&gateway.address, 0).await?, "the one skill is not offered");
    flood(&gateway.address, CONNECTIONS, FLOOD_WARM_UP).await?;
    let before = gateway.process.cpu_seconds()?;
    let answered = flood(&gateway.address, CONNECTIONS, FLOOD).await?;
    let used = gateway.process.cpu_seconds()? - before;
    // Far below where a double loses whole numbers.
    #[allow(clippy::cast_precision_loss)]
    let rate = answered as f64 / FLOOD.as_secs_f64();
    let (cores, each) = (used / FLOOD.as_secs_f64(), used * 1e6 / (rate * FLOOD.as_secs_f64()));
    println!("{rate:.0} requests a second, of which the gateway takes {cores:.2} cores, {each:.0} us each");
    Ok(Figure::higher("proxy_requests_per_s", rate, 5_000.0, "1/s", answered))
}

/// Memory of the gateway with many skills, after it has been used.
async fn memory(program: &Path, model: &str) -> anyhow::Result<Figure> {
    let gateway = start(program, model, MANY, Mode::Auto).await?;
    let at_ready = gateway.process.resident()?;
    let mut offered = 0;
    for seed in 0..REQUESTS_BEFORE {
        offered += u64::from(load::is_offered_skills(&gateway.address, seed).await?);
    }
    ensure!(offered > 0, "none of {MANY} skills is offered");
    sleep(IDLE).await;
    let resident = gateway.process.resident()?;
    println!(
        "with {MANY} skills the gateway holds {:.1} MB when it is ready, {:.1} MB after {REQUESTS_BEFORE} requests, of which {offered} were offered some",
        megabytes(at_ready),
        megabytes(resident),
    );
    Ok(Figure::lower("gateway_10k_mb", megabytes(resident), 60.0, "MB", 1))
}

//! The `skillet` binary: parses the command line and starts one of its processes or a tool.

mod broker;
mod check;
mod config;
mod drained;
mod gateway;
mod operator;
mod policy;
mod shutdown;
mod sources;
mod telemetry;
mod workspaces;

use clap::Parser;

use crate::config::{Args, Command};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    abort_on_panic();
    match Args::parse().command {
        Command::Operator { config, telemetry } => {
            let operator = Box::pin(operator::run(*config));
            telemetry::run_with("skillet-operator", &telemetry, operator).await
        }
        Command::Gateway { config, telemetry } => {
            telemetry::run_with("skillet-gateway", &telemetry, gateway::run(*config)).await
        }
        Command::Sources { config, telemetry } => {
            telemetry::run_with("skillet-sources", &telemetry, sources::run(config)).await
        }
        Command::Broker { config, telemetry } => {
            telemetry::run_with("skillet-broker", &telemetry, broker::run(config)).await
        }
        Command::Workspaces { config, telemetry } => {
            telemetry::run_with("skillet-workspaces", &telemetry, workspaces::run(config)).await
        }
        Command::Crds => print_crds(),
        Command::Check(config) => check::run(config).await,
    }
}

/// Prints every custom resource definition as one YAML stream.
fn print_crds() -> anyhow::Result<()> {
    for crd in skillet_api::custom_resource_definitions() {
        println!("---\n{}", serde_saphyr::to_string(&serde_json::to_value(&crd)?)?);
    }
    Ok(())
}

/// Makes a panic end the process, whatever the profile. Releases abort by themselves; the profile of tests has to unwind, and a task
/// that is gone would leave a process that looks healthy.
fn abort_on_panic() {
    if cfg!(panic = "unwind") {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            report(panic);
            std::process::abort();
        }));
    }
}

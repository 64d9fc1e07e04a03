//! `kubectl skill`: the plugin for people who write and run skills. kubectl finds it as `kubectl-skill` on the PATH.
//!
//! Each command has a file of its own. It reads from the cluster, passes the objects to pure functions that decide or
//! render, and prints the result.
//!
//! # Guarantees
//!
//! - Results go to standard output and everything else to standard error, so a pipe receives results only.
//! - Exit codes are documented and never change their meaning (`exit.rs`).
//! - The plugin has the rights of the user's kubeconfig and no server of its own.
//! - Control characters in the output of a skill never reach a terminal.

mod apply;
mod arguments;
mod bundle;
mod cancel;
mod complete;
mod conditions;
mod connection;
mod connections;
mod console;
mod describe;
mod doctor;
mod error;
mod execution_name;
mod executions;
mod exit;
mod explain;
mod export;
mod folder;
mod gateway;
mod gateway_error;
mod humanize;
mod import;
mod init;
mod json_path;
mod key;
mod lint;
mod list;
mod logs;
mod output_format;
mod partial_objects;
mod request_limit;
mod request_log;
mod rerun;
mod result;
mod run;
mod skill_test;
mod skills;
mod suggest;
mod switch;
mod sync;
mod table;
#[cfg(test)]
mod testing;
mod usage;
mod versions;
mod watch_list;
mod workspace;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;

use crate::{
    arguments::{Args, Command},
    console::Console,
    error::CliError,
    exit::Exit,
};

fn main() -> anyhow::Result<ExitCode> {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return Ok(usage::exit(error)),
    };
    let console = Console::detect();
    // One connection and one terminal: more threads would only be started and stopped.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("could not start")?;
    let exit = match runtime.block_on(perform(args, &console)) {
        Ok(exit) => exit,
        Err(error) => {
            console::explain(&error.render(console.error_style()));
            error.exit()
        }
    };
    // A pending name resolution must not delay the exit.
    runtime.shutdown_background();
    Ok(ExitCode::from(exit.code()))
}

async fn perform(args: Args, console: &Console) -> Result<Exit, CliError> {
    let Args { cluster, command } = args;
    match command {
        Command::Run(request) => run::run(&cluster, &request, console).await,
        Command::List(request) => list::run(&cluster, &request, console).await,
        Command::Describe(request) => describe::run(&cluster, &request, console).await,
        Command::Versions(request) => versions::run(&cluster, &request, console).await,
        Command::Enable(request) => switch::enable(&cluster, &request, true, console).await,
        Command::Disable(request) => switch::enable(&cluster, &request, false, console).await,
        Command::Mode(request) => switch::mode(&cluster, &request, console).await,
        Command::Explain(request) => explain::run(&cluster, &request, console).await,
        Command::Executions(request) => executions::run(&cluster, &request, console).await,
        Command::Result(request) => result::run(&cluster, &request, console).await,
        Command::Logs(request) => logs::run(&cluster, &request, console).await,
        Command::Connections(request) => connections::run(&cluster, &request, console).await,
        Command::Cancel(request) => cancel::run(&cluster, &request, console).await,
        Command::Rerun(request) => rerun::run(&cluster, &request, console).await,
        Command::Init(request) => init::run(&request, console),
        Command::Apply(request) => apply::run(&cluster, &request, console).await,
        Command::Sync(request) => sync::run(&cluster, &request, console).await,
        Command::Import(request) => import::run(&cluster, &request, console).await,
        Command::Export(request) => export::run(&cluster, &request, console).await,
        Command::Lint(request) => lint::run(&request, console),
        Command::Test(request) => skill_test::run(&cluster, &request, console).await,
        Command::Key(request) => key::run(&cluster, &request, console).await,
        Command::Workspace(request) => workspace::run(&cluster, &request, console).await,
        Command::Doctor(request) => doctor::run(&cluster, &request, console).await,
        Command::Complete(request) => complete::run(&cluster, &request, console).await,
    }
}

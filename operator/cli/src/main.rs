//! `kubectl skill`: runs skills and tells about them. Found by kubectl as `kubectl-skill` on the PATH.
//!
//! Each command is a file of its own: it reads from the cluster, hands what it read to pure functions that render or
//! decide, and prints.

mod arguments;
mod connection;
mod console;
mod doctor;
mod error;
mod executions;
mod exit;
mod humanize;
mod key;
mod output_format;
mod partial_objects;
mod run;
mod suggest;
mod table;
mod versions;

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
    let args = Args::parse();
    let console = Console::detect();
    // One connection and one terminal: more threads would only be started and stopped.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("could not start")?;
    let exit = match runtime.block_on(perform(args, &console)) {
        Ok(exit) => exit,
        Err(failure) => {
            console::explain(&failure.render(console.error_style()));
            failure.exit()
        }
    };
    // A host name that is still being looked up must not hold up the end.
    runtime.shutdown_background();
    Ok(ExitCode::from(exit.code()))
}

async fn perform(args: Args, console: &Console) -> Result<Exit, CliError> {
    let Args { cluster, command } = args;
    match command {
        Command::Run(request) => run::run(&cluster, &request, console).await,
        Command::Versions(request) => versions::run(&cluster, &request, console).await,
        Command::Executions(request) => executions::run(&cluster, &request, console).await,
        Command::Key(request) => key::run(&cluster, &request, console).await,
        Command::Doctor(request) => doctor::run(&cluster, &request, console).await,
    }
}

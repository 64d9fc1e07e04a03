//! `skillet-compat DIR...`: replays reference cases through the product's own code and tells how many it answers.
//!
//! A case names a kind, an input and what the reference answered. The rule is never written a second time here:
//! `registry` says which kinds are implemented, the files below it call the product and compare.

mod arguments;
mod case;
mod judge;
mod omniroute;
mod registry;
mod report;
mod uniskill;

use std::process::ExitCode;

use anyhow::Result;
use arguments::Command;
use report::Report;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("skillet-compat: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether nothing failed.
fn run() -> Result<bool> {
    let arguments = match arguments::read(std::env::args().skip(1))? {
        Command::Help => {
            println!("{}", arguments::HELP);
            return Ok(true);
        }
        Command::Replay(arguments) => arguments,
    };
    let mut report = Report::default();
    for path in &arguments.paths {
        for case in case::read(path)? {
            let verdict = registry::replay(&case);
            report.add(&case, verdict);
        }
    }
    print!("{}", if arguments.json { report.to_json()? } else { report.to_text(arguments.verbose) });
    Ok(!report.has_failures())
}

//! `skillet-compat DIR...`: replays cases of reference implementations through the product's own code.
//!
//! It also measures retrieval sets: how often the right tool is offered.
//!
//! A case has a kind, an input and the answer of the reference, such as OmniRoute. `registry` lists the kinds; each file below
//! it calls the product and compares. Rules of a reference that the product does not have are implemented here.

mod arguments;
mod case;
mod judge;
mod omniroute;
mod openhands;
mod registry;
mod report;
mod retrieval;
mod skillmd;
mod uniskill;

use std::process::ExitCode;

use anyhow::Result;
use arguments::Command;
use case::CaseFile;
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

/// Replays all cases. True if none failed.
fn run() -> Result<bool> {
    let arguments = match arguments::read(std::env::args().skip(1))? {
        Command::Help => {
            println!("{}", arguments::HELP);
            return Ok(true);
        }
        Command::Replay(arguments) => arguments,
    };
    let embeddings = arguments.embeddings.as_deref().map(retrieval::read_model).transpose()?;
    let mut report = Report::default();
    for path in &arguments.paths {
        for file in case::read(path)? {
            for case in file.cases() {
                report.add(case, registry::replay(case));
            }
            if let CaseFile::Retrieval(set) = file {
                report.add_figures(set.measure(arguments.setting, embeddings.as_ref()));
            }
        }
    }
    print!("{}", if arguments.json { report.to_json()? } else { report.to_text(arguments.verbose) });
    Ok(!report.has_failures())
}

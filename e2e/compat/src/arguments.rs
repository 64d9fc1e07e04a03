//! The command line: folders of cases and two switches.

use std::path::PathBuf;

use anyhow::{Result, bail};

pub(crate) const HELP: &str = "\
usage: skillet-compat [--verbose] [--json] DIR...

Replays the reference cases in each DIR (*.json, subfolders too) through the product's own code.
Prints one line per kind: <set>/<kind> <passed> passed <failed> failed <skipped> skipped

  --verbose  also every failed case with what was expected, and every skipped case with the reason
  --json     everything as one JSON document

Exit code: 0 nothing failed, 1 something failed, 2 the cases cannot be read.";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Replay(Arguments),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) verbose: bool,
    pub(crate) json: bool,
    pub(crate) paths: Vec<PathBuf>,
}

pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Command> {
    let mut arguments = Arguments::default();
    for word in words {
        match word.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--verbose" | "-v" => arguments.verbose = true,
            "--json" => arguments.json = true,
            option if option.starts_with('-') => bail!("{option} is not an option\n\n{HELP}"),
            path => arguments.paths.push(path.into()),
        }
    }
    if arguments.paths.is_empty() {
        bail!("name at least one folder with cases\n\n{HELP}");
    }
    Ok(Command::Replay(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Result<Command, &str>) {
        let read = read(line.split_whitespace().map(str::to_owned)).map_err(|error| error.to_string());
        match (read, expected) {
            (Ok(command), Ok(expected)) => assert_eq!(command, expected),
            (Err(error), Err(expected)) => assert!(error.starts_with(expected), "{error}"),
            (read, expected) => panic!("{line}: {read:?}, not {expected:?}"),
        }
    }

    #[test]
    fn folders_and_switches_come_in_any_order() {
        let paths = vec!["a".into(), "b".into()];
        check(
            "a --json b",
            Ok(Command::Replay(Arguments { verbose: false, json: true, paths: paths.clone() })),
        );
        check("-v a b", Ok(Command::Replay(Arguments { verbose: true, json: false, paths })));
        check("a --help", Ok(Command::Help));
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        check("", Err("name at least one folder"));
        check("--jsn a", Err("--jsn is not an option"));
    }
}

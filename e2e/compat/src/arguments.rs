//! The command line: folders of cases, switches, and the setting of retrieval sets.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::retrieval::{Policy, Setting};

pub(crate) const HELP: &str = "\
usage: skillet-compat [--verbose] [--json] [--policy NAME] [--examples on|off] [--embeddings DIR]
                      DIR...

Replays the reference cases in each DIR (*.json, subfolders too) through the product's own code.
Prints one line per kind: <set>/<kind> <passed> passed <failed> failed <skipped> skipped
A file with tools and queries is a retrieval set. It gives a line of its own:
retrieval/<name> recall@5 <share> hit@1 <share> offered <tools a query> none <share offered nothing>

  --policy NAME      selection of tools for retrieval sets: Reference, Words or Ranked; default Ranked
  --examples on|off  whether the tools of retrieval sets have their example questions; default off
  --embeddings DIR   folder with model.safetensors and tokenizer.json of an embedding model; default none
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
    pub(crate) setting: Setting,
    pub(crate) embeddings: Option<PathBuf>,
    pub(crate) paths: Vec<PathBuf>,
}

pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Command> {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--verbose" | "-v" => arguments.verbose = true,
            "--json" => arguments.json = true,
            "--policy" => {
                let name = words.next().unwrap_or_default();
                arguments.setting.policy =
                    Policy::of(&name).with_context(|| format!("{name:?} is not a policy\n\n{HELP}"))?;
            }
            "--examples" => {
                arguments.setting.has_examples = match words.next().as_deref() {
                    Some("on") => true,
                    Some("off") => false,
                    _ => bail!("--examples is on or off\n\n{HELP}"),
                }
            }
            "--embeddings" => {
                let folder =
                    words.next().with_context(|| format!("--embeddings needs a folder\n\n{HELP}"))?;
                arguments.embeddings = Some(folder.into());
            }
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
            Ok(Command::Replay(Arguments { json: true, paths: paths.clone(), ..Arguments::default() })),
        );
        check("-v a b", Ok(Command::Replay(Arguments { verbose: true, paths, ..Arguments::default() })));
        check("a --help", Ok(Command::Help));
        let embeddings = Some("m".into());
        check(
            "--embeddings m a",
            Ok(Command::Replay(Arguments { embeddings, paths: vec!["a".into()], ..Arguments::default() })),
        );
        let setting = Setting { policy: Policy::Words, has_examples: true };
        check(
            "--policy Words --examples on a",
            Ok(Command::Replay(Arguments { setting, paths: vec!["a".into()], ..Arguments::default() })),
        );
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        check("", Err("name at least one folder"));
        check("--jsn a", Err("--jsn is not an option"));
        check("--policy Best a", Err("\"Best\" is not a policy"));
        check("--examples a", Err("--examples is on or off"));
        check("a --embeddings", Err("--embeddings needs a folder"));
    }
}

//! Makes the SkillExecution from the arguments. Pure.

use std::{fmt, str::FromStr};

use serde_json::Value;
use skillet_api::{SkillExecution, SkillExecutionSpec};
use skillet_core::{
    rest::split_name,
    version::{Constraint, ConstraintError},
};

use super::input::InputError;
use crate::arguments::RunArgs;

/// A version constraint as typed by people.
///
/// The cluster's grammar wants all three numbers. Here `^1`, `~1.2`, `>=1` and `<2` are filled up with zeros: for these
/// operators every reading of the short form is the same. For the others it is not, and the short form is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedVersion(Constraint);

impl FromStr for WantedVersion {
    type Err = ConstraintError;

    fn from_str(text: &str) -> Result<Self, ConstraintError> {
        let filled: Vec<String> = text
            .split(',')
            .map(|range| range.split(' ').map(fill).collect::<Vec<String>>().join(" "))
            .collect();
        // The error of an invalid text shows the text as typed.
        Constraint::parse(&filled.join(",")).or_else(|_| Constraint::parse(text)).map(Self)
    }
}

impl fmt::Display for WantedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn fill(part: &str) -> String {
    // `~1` is left alone: some read it as ~1.0.0, others as ^1.0.0.
    let short_forms: [(&str, &[usize]); 4] = [("^", &[1, 2]), ("~", &[2]), (">=", &[1, 2]), ("<", &[1, 2])];
    for (operator, lengths) in short_forms {
        let Some(rest) = part.strip_prefix(operator) else { continue };
        let numbers: Vec<&str> = rest.split('.').collect();
        let is_plain = |number: &&str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if lengths.contains(&numbers.len()) && numbers.iter().all(is_plain) {
            return format!("{part}{}", ".0".repeat(3 - numbers.len()));
        }
    }
    part.to_owned()
}

/// Returns the skill's name and the wanted version, from `NAME@VERSION` or the flag.
pub(crate) fn target(args: &RunArgs) -> Result<(String, Option<WantedVersion>), InputError> {
    match (split_name(&args.name), &args.version) {
        ((_, Some(_)), Some(_)) => Err(InputError::TwoVersions(args.name.clone())),
        ((name, Some(text)), None) => {
            let version = text.parse().map_err(|error: ConstraintError| InputError::Version {
                text: args.name.clone(),
                problem: error.to_string(),
            })?;
            Ok((name.to_owned(), Some(version)))
        }
        ((name, None), version) => Ok((name.to_owned(), version.clone())),
    }
}

/// Makes the execution, with a name that the API server completes.
pub(crate) fn execution(
    skill: &str,
    version: Option<&WantedVersion>,
    input: Option<Value>,
    args: &RunArgs,
) -> SkillExecution {
    let spec = SkillExecutionSpec {
        skill: skill.to_owned(),
        version: version.map(ToString::to_string),
        input,
        timeout: args.timeout,
        ..SkillExecutionSpec::default()
    };
    let mut execution = SkillExecution::new("", spec);
    execution.metadata.name = None;
    execution.metadata.generate_name = Some(format!("{skill}-"));
    execution
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::json;

    use super::*;
    use crate::arguments::{Args, Command};

    fn args(line: &str) -> RunArgs {
        let words = line.split(' ').map(|word| word.replace('_', " "));
        match Args::try_parse_from(["kubectl-skill".to_owned(), "run".to_owned()].into_iter().chain(words))
            .unwrap()
            .command
        {
            Command::Run(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn version(text: &str) -> Result<String, String> {
        text.parse::<WantedVersion>().map(|version| version.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn short_constraints_with_one_meaning_are_filled_up() {
        for (typed, sent) in [
            ("^1", "^1.0.0"),
            ("^1.2", "^1.2.0"),
            ("~1.2", "~1.2.0"),
            (">=1 <2", ">=1.0.0 <2.0.0"),
            (">=1.5,<2", ">=1.5.0,<2.0.0"),
            ("1.2.3", "1.2.3"),
            ("latest", "latest"),
            ("*", "*"),
        ] {
            assert_eq!(version(typed).as_deref(), Ok(sent), "{typed}");
        }
    }

    #[test]
    fn short_constraints_with_several_meanings_are_refused_as_they_were_typed() {
        for typed in ["1", "1.2", "~1", ">1", "<=1", "=1", "^v1", "^", "1.2.3.4", ">= 1"] {
            assert!(version(typed).unwrap_err().contains(typed), "{typed}");
        }
    }

    #[test]
    fn a_version_may_follow_the_name() {
        let (name, wanted) = target(&args("word-count@^1")).unwrap();
        assert_eq!((name.as_str(), wanted.unwrap().to_string().as_str()), ("word-count", "^1.0.0"));
        assert_eq!(
            target(&args("word-count@1.0.0 --version 1.0.0")).unwrap_err().to_string(),
            "\"word-count@1.0.0\" has a version and --version gives another; use one of them"
        );
        assert!(
            target(&args("word-count@")).unwrap_err().to_string().contains("the text after @ is no version")
        );
    }

    #[test]
    fn the_execution_contains_only_the_given_arguments() {
        let args = args("word-count --version >=1_<2 --timeout 10s");
        let (skill, wanted) = target(&args).unwrap();
        let execution = execution(&skill, wanted.as_ref(), Some(json!({ "text": "a b" })), &args);
        assert_eq!(
            serde_json::to_value(&execution).unwrap(),
            json!({
                "apiVersion": "skillet.dev/v1alpha1",
                "kind": "SkillExecution",
                "metadata": { "generateName": "word-count-" },
                "spec": {
                    "skill": "word-count",
                    "version": ">=1.0.0 <2.0.0",
                    "input": { "text": "a b" },
                    "timeout": "10s",
                    "cancel": false,
                },
            })
        );
    }
}

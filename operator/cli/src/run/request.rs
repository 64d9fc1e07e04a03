//! Makes the SkillExecution from the arguments. Pure.

use std::{fmt, str::FromStr};

use serde_json::json;
use skillet_api::{SkillExecution, SkillExecutionSpec, execution::BundleScript};
use skillet_core::{
    rest::split_name,
    version::{Constraint, ConstraintError},
};

use super::{
    input::{self, InputError},
    manifest,
};
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

/// Makes the execution from `NAME@VERSION` or the file, and then from the other flags.
pub(super) fn execution(args: &RunArgs) -> Result<SkillExecution, InputError> {
    let mut execution = match (&args.name, &args.filename) {
        (Some(name), _) => named(name, args.version.as_ref())?,
        (None, Some(path)) => manifest::read(path)?,
        (None, None) => execution_of(SkillExecutionSpec::default()),
    };
    let spec = &mut execution.spec;
    if let Some(version) = &args.version {
        spec.version = Some(version.to_string());
    }
    if let Some(timeout) = args.timeout {
        spec.timeout = Some(timeout);
    }
    if let Some(path) = &args.script {
        let stdin = args.stdin.as_deref().map(input::read_text).transpose()?;
        let stdin = stdin.unwrap_or_default();
        spec.script = Some(BundleScript { path: path.clone(), args: args.args.clone(), stdin });
    }
    if let Some(input) = &args.input {
        spec.input = Some(input::read(input)?);
    }
    for field in &args.set {
        let input = spec.input.get_or_insert_with(|| json!({}));
        field.write_to(input).map_err(|path| InputError::NotAnObject { path })?;
    }
    Ok(execution)
}

fn named(text: &str, flag: Option<&WantedVersion>) -> Result<SkillExecution, InputError> {
    let (name, constraint) = split_name(text);
    if constraint.is_some() && flag.is_some() {
        return Err(InputError::TwoVersions(text.to_owned()));
    }
    let version = constraint.map(|constraint| {
        constraint.parse::<WantedVersion>().map(|version| version.to_string()).map_err(
            |error: ConstraintError| InputError::Version {
                text: text.to_owned(),
                problem: error.to_string(),
            },
        )
    });
    Ok(execution_of(SkillExecutionSpec {
        skill: name.to_owned(),
        version: version.transpose()?,
        ..SkillExecutionSpec::default()
    }))
}

/// Makes an execution with a name that the API server completes.
pub(crate) fn execution_of(spec: SkillExecutionSpec) -> SkillExecution {
    let prefix = format!("{}-", spec.skill);
    let mut execution = SkillExecution::new("", spec);
    execution.metadata.name = None;
    execution.metadata.generate_name = Some(prefix);
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
        let spec = execution(&args("word-count@^1")).unwrap().spec;
        assert_eq!((spec.skill.as_str(), spec.version.as_deref()), ("word-count", Some("^1.0.0")));
        assert_eq!(
            execution(&args("word-count@1.0.0 --version 1.0.0")).unwrap_err().to_string(),
            "\"word-count@1.0.0\" has a version and --version gives another; use one of them"
        );
        let error = execution(&args("word-count@")).unwrap_err().to_string();
        assert!(error.contains("the text after @ is no version"), "{error}");
    }

    #[test]
    fn the_execution_contains_only_the_given_arguments() {
        let line =
            r#"word-count --version >=1_<2 --timeout 10s --input {"text":"a"} --set text=b_c --set n.x=1"#;
        assert_eq!(
            serde_json::to_value(execution(&args(line)).unwrap()).unwrap(),
            json!({
                "apiVersion": "skillet.dev/v1alpha1",
                "kind": "SkillExecution",
                "metadata": { "generateName": "word-count-" },
                "spec": {
                    "skill": "word-count",
                    "version": ">=1.0.0 <2.0.0",
                    "input": { "text": "b c", "n": { "x": 1 } },
                    "timeout": "10s",
                    "cancel": false,
                },
            })
        );
        let error = execution(&args("word-count --input [] --set a=1")).unwrap_err().to_string();
        assert!(error.contains("the input is not an object"), "{error}");
    }

    #[test]
    fn a_script_takes_the_words_behind_two_dashes_and_its_own_standard_input() {
        let spec = execution(&args("pdf --script a/b.py --stdin one_two -- --width 3_4")).unwrap().spec;
        let script = json!({ "path": "a/b.py", "args": ["--width", "3 4"], "stdin": "one two" });
        assert_eq!(serde_json::to_value(&spec.script).unwrap(), script);
        assert_eq!((spec.input, spec.skill.as_str()), (None, "pdf"));
        for line in ["pdf --script a --input {}", "pdf -- x", "pdf --stdin x", "pdf --script a --set b=1"] {
            let words = ["kubectl-skill", "run"].into_iter().chain(line.split(' '));
            assert!(Args::try_parse_from(words).is_err(), "{line}");
        }
    }

    #[test]
    fn flags_overwrite_the_fields_of_a_file() {
        let path = std::env::temp_dir().join(format!("kubectl-skill-run-{}.yaml", std::process::id()));
        let text = "kind: SkillExecution\napiVersion: skillet.dev/v1alpha1\nmetadata: {generateName: mine-}\n\
                    spec: {skill: count, version: 1.0.0, input: {a: 1, b: 2}}\n";
        std::fs::write(&path, text).unwrap();
        let made = execution(&args(&format!("-f {} --version ^2 --set b=3", path.display())));
        std::fs::remove_file(&path).unwrap();
        let made = made.unwrap();
        assert_eq!(made.metadata.generate_name.as_deref(), Some("mine-"));
        assert_eq!(made.spec.version.as_deref(), Some("^2.0.0"));
        assert_eq!(made.spec.input, Some(json!({ "a": 1, "b": 3 })));
    }
}

//! `kubectl skill test`: runs the test inputs of a skill in the cluster, and compares the results with the expected ones.

use std::path::{Path, PathBuf};

use kube::{Api, ResourceExt as _};
use serde::Serialize;
use serde_json::Value;
use skillet_api::{SkillExecution, SkillExecutionSpec};
use skillet_core::expectation::Expectation;

use crate::{
    apply,
    arguments::{ClusterArgs, TestArgs},
    bundle::{self, BundleError, SkillSource},
    connection::{ClusterClient, connect},
    console::{self, Console, printable},
    error::CliError,
    exit::Exit,
    humanize,
    output_format::OutputFormat,
    run::{self, Interrupts, Progress, execution_of},
};

const INPUT: &str = ".input.json";
const EXPECTED: &str = ".expected.json";

/// One input and the expected result.
#[derive(Debug)]
struct TestCase {
    name: String,
    input: Value,
    expected: Expectation,
}

/// The result of one test, as it is reported.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TestedCase {
    skill: String,
    test: String,
    execution: String,
    passed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

pub(crate) async fn run(cluster: &ClusterArgs, args: &TestArgs, console: &Console) -> Result<Exit, CliError> {
    let sources = bundle::read_all(&args.paths)?;
    let cases: Vec<Vec<TestCase>> = sources.iter().map(cases).collect::<Result<_, _>>()?;
    let connection = connect(cluster).await?;
    let mut results = Vec::new();
    for (source, cases) in sources.iter().zip(&cases) {
        if cases.is_empty() {
            console::explain(&format!(
                "Skill {} has no tests in {}\n",
                source.name()?,
                source.tests.display()
            ));
            continue;
        }
        if !args.no_apply {
            apply::apply(&connection, source, false, false).await?;
            apply::wait_ready(&connection, source, args.wait_timeout.0).await?;
        }
        for case in cases {
            let result = run_case(&connection, source, case, args).await?;
            if args.output == OutputFormat::Text {
                console.print(&printable(&text(&result)))?;
            }
            results.push(result);
        }
    }
    let failed = results.iter().filter(|result| !result.passed).count();
    let summary = || format!("Tests: {} passed, {failed} failed\n", results.len() - failed);
    console.print(&args.output.render(&results, summary)?)?;
    Ok(if failed == 0 && !results.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Names of the tests of a skill, for tests of other commands.
#[cfg(test)]
pub(crate) fn cases_of(source: &SkillSource) -> Result<Vec<String>, BundleError> {
    Ok(cases(source)?.into_iter().map(|case| case.name).collect())
}

/// The pairs in the directory of tests: all for a skill in several files, else those that begin with its name.
fn cases(source: &SkillSource) -> Result<Vec<TestCase>, BundleError> {
    if !source.tests.is_dir() {
        return Ok(Vec::new());
    }
    let skill = source.name()?;
    let is_own = |name: &str| {
        source.is_alone || name == skill || name.strip_prefix(skill).is_some_and(|rest| rest.starts_with('.'))
    };
    let mut cases = Vec::new();
    for path in bundle::list(&source.tests)? {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(name) = file.strip_suffix(INPUT).filter(|name| is_own(name)) {
            cases.push(case(&path, source.tests.join(format!("{name}{EXPECTED}")), name)?);
        }
    }
    Ok(cases)
}

fn case(input: &Path, expected: PathBuf, name: &str) -> Result<TestCase, BundleError> {
    if !expected.is_file() {
        return Err(BundleError::NoExpectation { input: input.to_owned(), expected });
    }
    let expectation = serde_json::from_str(&bundle::read_text(&expected)?)
        .map_err(|error| BundleError::NotJson { path: expected, problem: error.to_string() })?;
    Ok(TestCase { name: name.to_owned(), input: bundle::read_json(input)?, expected: expectation })
}

async fn run_case(
    connection: &ClusterClient,
    source: &SkillSource,
    case: &TestCase,
    args: &TestArgs,
) -> Result<TestedCase, CliError> {
    let namespace = apply::namespace_of(connection, source).to_owned();
    let place = ClusterClient { client: connection.client.clone(), namespace };
    // Without a constraint another version might run than the one that the file has.
    let version = if args.no_apply { None } else { source.object["spec"]["version"].as_str() };
    let wanted = execution_of(SkillExecutionSpec {
        skill: source.name()?.to_owned(),
        version: version.map(ToOwned::to_owned),
        input: Some(case.input.clone()),
        ..SkillExecutionSpec::default()
    });
    let created = run::create(&place, &wanted, false).await?;
    let api: Api<SkillExecution> = Api::namespaced(place.client, &place.namespace);
    let mut progress = Progress::quiet(&created.name_any());
    let wait = Some(args.wait_timeout);
    // Ctrl-C cancels the run of a test: nobody else waits for it.
    let ended = run::follow(&api, &created, wait, &mut Interrupts::listen(), &mut progress).await?;
    let status = ended.status.unwrap_or_default();
    let differences = case.expected.differences(&status);
    Ok(TestedCase {
        skill: wanted.spec.skill,
        test: case.name.clone(),
        execution: created.name_any(),
        passed: differences.is_empty(),
        differences,
        duration_ms: status.duration_ms,
    })
}

fn text(result: &TestedCase) -> String {
    let TestedCase { skill, test, execution, passed, differences, duration_ms } = result;
    let took = duration_ms.map(|millis| format!(" ({})", humanize::duration(millis))).unwrap_or_default();
    if *passed {
        return format!("{skill}: {test}: passed{took}\n");
    }
    let lines: String = differences.iter().flat_map(|difference| ["  ", difference, "\n"]).collect();
    format!("{skill}: {test}: failed{took}, see kubectl skill result {execution}\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples(skill: &str) -> SkillSource {
        let root = std::env::current_dir().unwrap().join("../../examples");
        bundle::read_all(&[root.join(format!("{skill}.yaml"))]).unwrap().remove(0)
    }

    #[test]
    fn a_skill_in_one_file_has_the_tests_of_its_name() {
        let cases = cases(&examples("convert-time")).unwrap();
        assert_eq!(cases.len(), 1);
        assert_eq!(cases[0].name, "convert-time");
        assert_eq!(cases[0].expected.exit_code, Some(65));
    }

    #[test]
    fn every_example_has_a_test() {
        let root = std::env::current_dir().unwrap().join("../../examples");
        for source in bundle::read_all(&[root]).unwrap() {
            assert_eq!(cases(&source).unwrap().len(), 1, "{}", source.file.display());
        }
    }

    #[test]
    fn a_failed_test_is_reported_with_its_execution_and_differences() {
        let result = TestedCase {
            skill: "count".into(),
            test: "empty".into(),
            execution: "count-x7".into(),
            passed: false,
            differences: vec!["output should be 1, and is 2".into()],
            duration_ms: Some(45),
        };
        assert_eq!(
            text(&result),
            "count: empty: failed (45ms), see kubectl skill result count-x7\n  output should be 1, and is 2\n"
        );
    }
}

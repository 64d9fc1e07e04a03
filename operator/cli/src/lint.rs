//! `kubectl skill lint`: validates skills without a cluster, by the operator's own rules and in its words.

mod instructions;
mod keywords;
mod unknown_fields;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;
use serde_json::Value;
use skillet_api::{
    Reason, Skill, SkillPolicy, SkillPolicySpec,
    builtin::{Builtin, SearchEngine, WebSearchProvider},
    duration::SkillDuration,
};
use skillet_core::{builtin, skill::validate_skill};
use skillet_instructions::{Diagnostic, lint::commands_not_run};

use crate::{
    arguments::LintArgs,
    bundle::{self, BundleError, SkillSource},
    console::Console,
    error::CliError,
    exit::Exit,
    folder,
};

/// A problem of one field. A warning does not keep the skill from running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Problem {
    is_warning: bool,
    field: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    /// Code of a finding in instructions, whose field is line and column.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct LintedSkill {
    file: PathBuf,
    skill: String,
    problems: Vec<Problem>,
}

pub(crate) fn run(args: &LintArgs, console: &Console) -> Result<Exit, CliError> {
    let policy = match &args.policy {
        Some(path) => read_policy(path)?,
        None => default_policy(),
    };
    let mut linted = Vec::new();
    for path in &args.paths {
        linted.extend(lint_path(path, &policy, args.strict)?);
    }
    console.print(&args.output.render(&linted, || text(&linted))?)?;
    let is_failed = linted.iter().any(LintedSkill::is_invalid);
    Ok(if is_failed { Exit::Failed } else { Exit::Done })
}

/// The Skills of a path and its instructions. Of a directory, both.
fn lint_path(path: &Path, policy: &SkillPolicySpec, is_strict: bool) -> Result<Vec<LintedSkill>, CliError> {
    if path.is_file() && folder::is_instructions(path) {
        return Ok(instructions::lint_path(path, is_strict)?);
    }
    let is_bundle = path.join(bundle::SKILL_FILE).is_file();
    let found =
        if path.is_dir() && !is_bundle { instructions::lint_path(path, is_strict)? } else { Vec::new() };
    let sources = match bundle::read_all(&[path.to_owned()]) {
        Err(BundleError::NoSkill { .. }) if !found.is_empty() => Vec::new(),
        read => read?,
    };
    let linted = sources.iter().map(|source| lint(source, policy));
    Ok(linted.chain(found).collect())
}

/// Everything that is wrong with the skills of a path, for tests of other commands.
#[cfg(test)]
pub(crate) fn problems_of(path: &std::path::Path) -> Result<Vec<String>, BundleError> {
    let sources = bundle::read_all(&[path.to_owned()])?;
    let linted = sources.iter().map(|source| lint(source, &default_policy()));
    Ok(linted.flat_map(|skill| skill.problems).map(|problem| problem.to_string()).collect())
}

/// Images and built-ins are the cluster's to allow, so that without its policy all of them are good.
fn default_policy() -> SkillPolicySpec {
    let engine = WebSearchProvider {
        provider: SearchEngine::Brave,
        url: None,
        key_secret: None,
        key_header: None,
        results: None,
        cache_ttl: SkillDuration(Duration::ZERO),
    };
    SkillPolicySpec {
        allowed_images: vec!["*".to_owned()],
        builtins: Builtin::ALL.to_vec(),
        web_search: Some(engine),
        ..SkillPolicySpec::default()
    }
}

fn read_policy(path: &Path) -> Result<SkillPolicySpec, BundleError> {
    let not_policy = |problem: String| BundleError::NotPolicy { path: path.to_owned(), problem };
    let object: Value = serde_saphyr::from_str(&bundle::read_text(path)?)
        .map_err(|error| BundleError::NotYaml { path: path.to_owned(), problem: error.to_string() })?;
    if object["kind"] != "SkillPolicy" {
        return Err(not_policy("its kind is another".to_owned()));
    }
    serde_json::from_value::<SkillPolicy>(object)
        .map(|policy| policy.spec)
        .map_err(|error| not_policy(error.to_string()))
}

fn lint(source: &SkillSource, policy: &SkillPolicySpec) -> LintedSkill {
    let name = source.object["metadata"]["name"].as_str().unwrap_or_default();
    let skill = name.to_owned();
    let problems = match serde_path_to_error::deserialize::<_, Skill>(source.object.clone()) {
        Ok(skill) => problems(name, &source.object, &skill, policy),
        Err(error) => vec![Problem::error(error.path().to_string(), error.inner().to_string(), None)],
    };
    LintedSkill { file: source.file.clone(), skill, problems }
}

fn problems(name: &str, object: &Value, skill: &Skill, policy: &SkillPolicySpec) -> Vec<Problem> {
    let mut problems: Vec<Problem> = unknown_fields::find(object, skill)
        .into_iter()
        .map(|field| Problem::error(field, "is an unknown field".to_owned(), None))
        .collect();
    if let Err(errors) = validate_skill(name, &skill.spec, policy) {
        problems.extend(
            errors.into_iter().map(|error| Problem::error(error.field, error.message, Some(error.reason))),
        );
    }
    if builtin::description(&skill.spec.description, skill.spec.run.as_ref()).trim().is_empty() {
        problems.push(Problem::warning("spec.description", "is empty; a model chooses skills by it"));
    }
    if let Some(instructions) = skill.spec.instructions.as_ref().filter(|own| own.dynamic.is_never()) {
        problems.extend(commands_not_run(&instructions.body, &instructions.body).into_iter().map(
            |finding| {
                let Diagnostic { position, message, code, .. } = finding;
                let field = format!("spec.instructions.body:{}:{}", position.line, position.column);
                Problem { code: Some(code.as_str()), ..Problem::warning(&field, &message) }
            },
        ));
    }
    let tool = skill.spec.tool.clone().unwrap_or_default();
    for (field, schema) in
        [("spec.tool.inputSchema", tool.input_schema), ("spec.tool.outputSchema", tool.output_schema)]
    {
        for misspelt in schema.iter().flat_map(keywords::misspelt) {
            problems.push(Problem::warning(&format!("{field}{}", misspelt.pointer), &misspelt.message()));
        }
    }
    problems
}

impl Problem {
    fn error(field: String, message: String, reason: Option<Reason>) -> Self {
        Self { is_warning: false, field, message, reason, code: None }
    }

    fn warning(field: &str, message: &str) -> Self {
        Self {
            is_warning: true,
            field: field.to_owned(),
            message: message.to_owned(),
            reason: None,
            code: None,
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { is_warning, field, message, reason, code } = self;
        let kind = if *is_warning { "warning: " } else { "" };
        let reason = reason.map(|reason| reason.to_string()).or(code.map(str::to_owned));
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        write!(f, "{kind}{field}: {message}{reason}")
    }
}

impl LintedSkill {
    fn is_invalid(&self) -> bool {
        self.problems.iter().any(|problem| !problem.is_warning)
    }
}

fn text(linted: &[LintedSkill]) -> String {
    let mut text = String::new();
    for LintedSkill { file, skill, problems } in linted {
        let file = file.display();
        text.extend(problems.iter().map(|problem| format!("{file}: {skill}: {problem}\n")));
    }
    let invalid = linted.iter().filter(|skill| skill.is_invalid()).count();
    format!("{text}Skills: {} valid, {invalid} invalid\n", linted.len() - invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lint_yaml(spec: &str) -> String {
        let yaml = format!(
            "apiVersion: skillet.dev/v1alpha1\nkind: Skill\nmetadata: {{name: count}}\nspec: {spec}\n"
        );
        let source = SkillSource {
            file: "count.yaml".into(),
            object: serde_saphyr::from_str(&yaml).unwrap(),
            tests: "tests".into(),
            is_alone: false,
        };
        text(&[lint(&source, &default_policy())])
    }

    #[test]
    fn a_valid_skill_has_no_problem() {
        let spec = "{version: 1.0.0, description: Counts., mode: off, run: {sandbox: {image: any/image, command: [a]}}}";
        assert_eq!(lint_yaml(spec), "Skills: 1 valid, 0 invalid\n");
    }

    #[test]
    fn a_built_in_alone_is_a_whole_skill() {
        for builtin in Builtin::ALL {
            let spec = format!("{{version: 1.0.0, run: {{builtin: {}}}}}", builtin.as_str());
            assert_eq!(lint_yaml(&spec), "Skills: 1 valid, 0 invalid\n");
        }
    }

    #[test]
    fn problems_are_in_the_words_of_the_operator_s_conditions() {
        let spec =
            "{version: v1, description: Counts., run: {sandbox: {runtime: shell}}, limits: {timeout: 999h}}";
        let found = lint_yaml(spec);
        assert!(found.starts_with("count.yaml: count: spec.version: "), "{found}");
        assert!(found.contains("spec.limits.timeout: ") && found.contains("(LimitTooHigh)"), "{found}");
        assert!(found.ends_with("Skills: 0 valid, 1 invalid\n"), "{found}");
    }

    #[test]
    fn unknown_fields_and_wrong_types_are_named() {
        let run = "run: {sandbox: {runtime: shell, script: cat}}";
        let found = lint_yaml(&format!("{{version: 1.0.0, discription: x, description: Counts., {run}}}"));
        assert_eq!(
            found,
            "count.yaml: count: spec.discription: is an unknown field\nSkills: 0 valid, 1 invalid\n"
        );
        let found = lint_yaml(&format!("{{version: 1.0.0, tags: [1], {run}}}"));
        assert!(found.starts_with("count.yaml: count: spec.tags[0]: invalid type"), "{found}");
    }

    #[test]
    fn commands_that_do_not_run_are_warnings_with_their_place() {
        for (dynamic, expected) in [("Never", true), ("Run", false)] {
            let body = format!("instructions: {{body: \"A\\nof !`date`\", dynamic: {dynamic}}}");
            let found = lint_yaml(&format!("{{version: 1.0.0, description: x, {body}}}"));
            let warning = "warning: spec.instructions.body:2:6: the command `date` is shown as it is written";
            assert_eq!(found.contains(warning) && found.contains("(command_not_run)"), expected, "{found}");
            assert!(found.ends_with("Skills: 1 valid, 0 invalid\n"), "{found}");
        }
    }

    #[test]
    fn a_missing_description_and_a_misspelt_keyword_are_warnings() {
        let schema = "tool: {inputSchema: {propertys: {a: {}}}}";
        let found = lint_yaml(&format!(
            "{{version: 1.0.0, {schema}, run: {{sandbox: {{runtime: shell, script: cat}}}}}}"
        ));
        assert!(found.contains("warning: spec.description: is empty"), "{found}");
        assert!(found.contains("warning: spec.tool.inputSchema/propertys: "), "{found}");
        assert!(found.ends_with("Skills: 1 valid, 0 invalid\n"), "{found}");
    }
}

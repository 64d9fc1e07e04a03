//! The set `skillmd`: verdicts of other readers on SKILL.md files, and of the standard's validator.

// Every replay has the registry's signature, also where nothing keeps it from being run.
#![allow(clippy::unnecessary_wraps)]

use serde_json::{Value, json};
use skillet_instructions::{
    Code, SkillDocument,
    document::{FileName, Reading, Trigger, read},
    frontmatter, lint,
};

use crate::{case::Case, judge::Answer, openhands::error_category, registry::Replay};

pub(crate) const KINDS: &[(&str, Replay)] =
    &[("agentskills_validate", agentskills_validate), ("real_skillmd", real_skillmd)];

/// The product reads no properties from files that break its own rules, so that verdict and reasons are compared.
fn agentskills_validate(case: &Case) -> Result<Answer, String> {
    let found = match case.input["file_name"].as_str() {
        Some(_) => errors(case, case.text("content")),
        None => vec![lint::missing_skill_md().code.as_str()],
    };
    let value = json!({"valid": found.is_empty(), "errors": found});
    let is_same = case.expected["valid"] == found.is_empty() && is_set(&case.expected["errors"], &found);
    Ok(Answer { is_same, ..Answer::exact(case, value) })
}

fn real_skillmd(case: &Case) -> Result<Answer, String> {
    let text = case.text("masked_document");
    let found = errors(case, text);
    let strict = load(case, text, Reading { is_name_strict: true, is_repairing: false });
    let relaxed = load(case, text, Reading { is_name_strict: false, is_repairing: false });
    let word = |read: &Result<SkillDocument, &'static str>| match read {
        Ok(_) => "accept",
        Err(category) => category,
    };
    let trigger = relaxed.as_ref().ok().and_then(|document| match &document.trigger {
        Trigger::None => None,
        Trigger::Keyword(_) => Some("keyword"),
        Trigger::Task(_) => Some("task"),
        Trigger::Path(_) => Some("path"),
    });
    let yaml = match word(&relaxed) {
        _ if frontmatter::split(text).frontmatter.is_none() => "no_frontmatter",
        "yaml_syntax" => "error",
        _ => "ok",
    };
    let value = json!({
        "agentskills_strict_valid": found.is_empty(),
        "agentskills_errors": found,
        "openhands_strict_load": word(&strict),
        "openhands_relaxed_load": word(&relaxed),
        "openhands_trigger": trigger,
        "yaml_1_1_safe_parse": yaml,
    });
    let fields = [
        "agentskills_strict_valid",
        "openhands_strict_load",
        "openhands_relaxed_load",
        "openhands_trigger",
        "yaml_1_1_safe_parse",
    ];
    let answer = Answer::by_fields(case, value, &fields);
    Ok(Answer { is_same: answer.is_same && is_set(&case.expected["agentskills_errors"], &found), ..answer })
}

fn errors(case: &Case, text: &str) -> Vec<&'static str> {
    let found = lint::check(text.as_bytes(), case.text("file_name"), case.text("directory"));
    found.iter().map(|diagnostic| Code::as_str(diagnostic.code)).collect()
}

fn load(case: &Case, text: &str, reading: Reading) -> Result<SkillDocument, &'static str> {
    let file = FileName { name: case.text("file_name"), default_name: case.text("directory") };
    read(text.as_bytes(), file, reading).map_err(|found| error_category(&found))
}

/// True for equal words in any order.
fn is_set(expected: &Value, found: &[&str]) -> bool {
    let mut expected: Vec<&str> =
        expected.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut found = found.to_vec();
    expected.sort_unstable();
    found.sort_unstable();
    expected == found
}

//! `skill_name_validate`, `installed_name_validate`, `source_parse`, `install_lifecycle`: names and origins of skills.

use serde_json::json;
use skillet_instructions::{
    names::{self, NameError},
    source::{self, Source},
};

use crate::{case::Case, judge::Answer};

pub(super) fn skill_name_validate(case: &Case) -> Result<Answer, String> {
    let errors = names::check(case.text("name"), case.input["directory"].as_str());
    let words: Vec<&str> = errors.into_iter().map(NameError::as_str).collect();
    Ok(Answer::exact(case, json!({"valid": words.is_empty(), "errors": words})))
}

pub(super) fn installed_name_validate(case: &Case) -> Result<Answer, String> {
    Ok(Answer::exact(case, json!({ "accept": names::is_kebab_case(case.text("name")) })))
}

/// Skills are objects of a namespace, and a SkillSource keeps them in step with a repository. Nothing is installed in a folder.
pub(super) fn install_lifecycle(_case: &Case) -> Result<Answer, String> {
    Err("skills are not installed in a folder: a SkillSource pins and updates them, spec.enabled turns one off".to_owned())
}

pub(super) fn source_parse(case: &Case) -> Result<Answer, String> {
    let value = match source::parse(case.text("source")) {
        Ok(Source::GitHub(address)) => json!({"accept": true, "type": "github", "normalized": address}),
        Ok(Source::Git(address)) => json!({"accept": true, "type": "git", "normalized": address}),
        Ok(Source::Local(path)) => json!({"accept": true, "type": "local", "normalized": path}),
        Err(_) => json!({ "accept": false }),
    };
    Ok(Answer::by_fields(case, value, &["accept", "type", "normalized"]))
}

//! `--filename`: a SkillExecution that a user wrote.

use std::{io::Read as _, path::Path};

use skillet_api::SkillExecution;

use super::input::InputError;

/// Reads a SkillExecution from a file in YAML or JSON, or from standard input.
pub(super) fn read(path: &Path) -> Result<SkillExecution, InputError> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|source| InputError::File { path: path.to_owned(), source })?;
    parse(&text).map_err(|problem| InputError::NoExecution { path: path.to_owned(), problem })
}

fn parse(text: &str) -> Result<SkillExecution, String> {
    let object: serde_json::Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    match object["kind"].as_str() {
        Some("SkillExecution") => serde_json::from_value(object).map_err(|error| error.to_string()),
        Some(kind) => Err(format!("its kind is {kind}")),
        None => Err("it has no kind".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_skill_execution_is_read() {
        let text = "apiVersion: skillet.dev/v1alpha1\nkind: SkillExecution\nmetadata: {generateName: a-}\nspec: {skill: count, input: {a: 1}}\n";
        assert_eq!(parse(text).unwrap().spec.skill, "count");
        assert_eq!(parse("kind: Skill").unwrap_err(), "its kind is Skill");
        assert_eq!(parse("a: 1").unwrap_err(), "it has no kind");
        assert!(
            parse("kind: SkillExecution\nmetadata: {}\nspec: {}\napiVersion: x")
                .unwrap_err()
                .contains("skill")
        );
    }
}

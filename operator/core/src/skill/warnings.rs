//! Warnings about a Skill that can run, but probably not as its author means.

use serde_json::Value;
use skillet_api::{
    SkillSpec,
    skill::{Invocation, Mode},
};

use crate::schema::find_misspelt;

/// Returns the warnings, each with its field.
pub fn warnings(spec: &SkillSpec) -> Vec<String> {
    let mut found = Vec::new();
    let is_offered = !matches!(spec.mode, Mode::Off) && !matches!(spec.invocation, Invocation::Manual);
    if is_offered && spec.description.trim().is_empty() {
        found.push("spec.description: is empty, so a model cannot know what the skill does".to_owned());
    }
    let tool = spec.tool.as_ref();
    for (field, schema) in [
        ("spec.tool.inputSchema", tool.and_then(|tool| tool.input_schema.as_ref())),
        ("spec.tool.outputSchema", tool.and_then(|tool| tool.output_schema.as_ref())),
    ] {
        found.extend(
            schema.and_then(|schema: &Value| find_misspelt(schema)).map(|why| format!("{field} {why}")),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: &str, expected: &[&str]) {
        let spec: SkillSpec =
            serde_saphyr::from_str(&format!("{{version: 1.0.0, run: {{}}, {spec}}}")).unwrap();
        assert_eq!(warnings(&spec), expected);
    }

    #[test]
    fn an_offered_skill_without_a_description_and_misspelt_keywords_are_named() {
        check("description: d, tool: {inputSchema: {type: object, x-own: 1, example: {}}}", &[]);
        check("mode: 'off'", &[]);
        check("invocation: manual", &[]);
        check("mode: auto", &["spec.description: is empty, so a model cannot know what the skill does"]);
        check(
            "description: d, tool: {inputSchema: {properties: {a: {propertys: {}}}}, outputSchema: {requird: [a]}}",
            &[
                r#"spec.tool.inputSchema has "propertys", which is no keyword of JSON Schema; did you mean "properties"?"#,
                r#"spec.tool.outputSchema has "requird", which is no keyword of JSON Schema; did you mean "required"?"#,
            ],
        );
    }
}

//! Validation of `instructions` and of the bundle's files.

use std::collections::BTreeSet;

use skillet_api::{
    SkillSpec,
    instructions::{ConfigMapKeyRef, InstructionInput, InstructionInputType, Instructions},
    skill::File,
};

use super::{
    ValidFile, bundle_image,
    command::check_input_names,
    field_error::FieldErrors,
    mcp_server,
    sandbox_spec::{FileList, check_object_key, check_object_name, read_files},
};
use crate::content::Content;

/// Most bytes of a body.
pub const MAX_BODY_BYTES: usize = 200 << 10;
/// Most bytes of all files of a bundle.
pub const MAX_BUNDLE_BYTES: usize = 700 << 10;

/// Field of the place of a body.
pub const BODY_SOURCE: &str = "spec.instructions.bodyFrom.configMapKeyRef";

/// Adds the errors of instructions and files, and returns the files.
pub(super) fn check(content: Content<'_>, errors: &mut FieldErrors) -> Vec<ValidFile> {
    if let Some(instructions) = content.instructions {
        check_body(instructions, errors);
        check_lists(instructions, errors);
        check_inputs(&instructions.inputs, errors);
        check_input_names(content, errors);
        let sandbox = content.run.and_then(|run| run.sandbox.as_ref());
        mcp_server::check(&instructions.mcp_servers, sandbox.is_some_and(|it| it.image.is_some()), errors);
    }
    bundle_image::check(content, errors);
    check_files(content.files, errors)
}

fn check_body(instructions: &Instructions, errors: &mut FieldErrors) {
    if let Some(problem) = body_problem(&instructions.body) {
        errors.spec("spec.instructions.body", problem);
    }
    let Some(source) = &instructions.body_from else { return };
    if !instructions.body.is_empty() {
        errors.spec("spec.instructions", "give body or bodyFrom, not both");
    }
    check_source(&source.config_map_key_ref, errors);
}

/// Returns the reason why a text cannot be the body of instructions.
pub fn body_problem(body: &str) -> Option<String> {
    if body.len() > MAX_BODY_BYTES {
        let bytes = body.len();
        return Some(format!(
            "has {bytes} bytes, at most {MAX_BODY_BYTES} are allowed; move parts of it to spec.files"
        ));
    }
    body.contains('\0').then(|| "must not contain a NUL character".to_owned())
}

fn check_source(source: &ConfigMapKeyRef, errors: &mut FieldErrors) {
    check_object_name("ConfigMap", &format!("{BODY_SOURCE}.name"), &source.name, errors);
    check_object_key("ConfigMap", &format!("{BODY_SOURCE}.key"), &source.key, errors);
}

/// Returns the ConfigMap key that the instructions take their text from, if it can be one.
pub fn body_source(spec: &SkillSpec) -> Option<&ConfigMapKeyRef> {
    let instructions = spec.instructions.as_ref()?;
    let source = &instructions.body_from.as_ref()?.config_map_key_ref;
    let mut errors = FieldErrors::default();
    check_source(source, &mut errors);
    (errors.is_empty() && instructions.body.is_empty()).then_some(source)
}

/// Returns the spec with `text` as the body of its instructions, in place of its source.
pub fn with_body(spec: &SkillSpec, text: String) -> SkillSpec {
    let mut spec = spec.clone();
    if let Some(instructions) = &mut spec.instructions {
        (instructions.body, instructions.body_from) = (text, None);
    }
    spec
}

fn check_lists(instructions: &Instructions, errors: &mut FieldErrors) {
    let Instructions { triggers, allowed_tools, denied_tools, argument_hint, .. } = instructions;
    let triggers = triggers.clone().unwrap_or_default();
    for (name, list, most, longest) in [
        ("triggers.keywords", &triggers.keywords, 64, 128),
        ("triggers.exclude", &triggers.exclude, 64, 128),
        ("triggers.paths", &triggers.paths, 64, 256),
        ("triggers.slash", &triggers.slash, 16, 64),
        ("allowedTools", allowed_tools, 128, 256),
        ("deniedTools", denied_tools, 128, 256),
    ] {
        let field = format!("spec.instructions.{name}");
        errors.at_most_items(&field, list.len(), most);
        for (place, text) in list.iter().enumerate() {
            let field = format!("{field}[{place}]");
            errors.at_most(&field, text, longest);
            if text.trim().is_empty() {
                errors.spec(&field, "must not be empty");
            }
        }
    }
    errors.at_most("spec.instructions.argumentHint", argument_hint.as_deref().unwrap_or_default(), 256);
}

fn check_inputs(inputs: &[InstructionInput], errors: &mut FieldErrors) {
    errors.at_most_items("spec.instructions.inputs", inputs.len(), 32);
    let mut seen = BTreeSet::new();
    for (place, input) in inputs.iter().enumerate() {
        let InstructionInput { name, description, value_type, required: _, default } = input;
        let field = format!("spec.instructions.inputs[{place}]");
        let is_start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !is_start || name.len() > 64 || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            let message = "must be at most 64 letters, digits and _, not beginning with a digit";
            errors.spec(format_args!("{field}.name"), message);
        }
        if !seen.insert(name) {
            errors.spec(format_args!("{field}.name"), format!("{name} is declared twice"));
        }
        errors.at_most(format_args!("{field}.description"), description, 1024);
        let Some(default) = default else { continue };
        errors.at_most(format_args!("{field}.default"), default, 4096);
        let (is_legal, word) = match value_type {
            InstructionInputType::String => (true, ""),
            InstructionInputType::Integer => (default.parse::<i64>().is_ok(), "an integer"),
            InstructionInputType::Number => (default.parse::<f64>().is_ok_and(f64::is_finite), "a number"),
            InstructionInputType::Boolean => (matches!(default.as_str(), "true" | "false"), "true or false"),
        };
        if !is_legal {
            errors.spec(format_args!("{field}.default"), format!("must be {word}, as the type says"));
        }
    }
}

fn check_files(files: &[File], errors: &mut FieldErrors) -> Vec<ValidFile> {
    let list = FileList { field: "spec.files", most: 128, script: None };
    let files = read_files(files, list, errors);
    let bytes: usize = files.iter().map(|file| file.bytes.len()).sum();
    if bytes > MAX_BUNDLE_BYTES {
        let message = format!("have {bytes} bytes together, at most {MAX_BUNDLE_BYTES} are allowed");
        errors.spec("spec.files", message);
    }
    files
}

#[cfg(test)]
mod tests {
    use skillet_api::{SkillPolicySpec, SkillSpec};

    use super::{super::validate_skill, body_source, with_body};
    use crate::content::digest;

    fn check(fields: &str, expected: &[&str]) {
        let yaml = format!("{{version: 1.0.0, {fields}}}");
        let spec: SkillSpec = serde_saphyr::from_str(&yaml).unwrap();
        let found = match validate_skill("demo", &spec, &SkillPolicySpec::default()) {
            Ok(valid) => {
                assert_eq!(valid.content.is_some(), spec.run.is_some());
                Vec::new()
            }
            Err(errors) => errors.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(found, expected);
    }

    fn check_instructions(fields: &str, expected: &[&str]) {
        check(&format!("instructions: {{body: Read., {fields}}}"), expected);
    }

    #[test]
    fn a_skill_has_a_program_instructions_or_both() {
        check("instructions: {body: Read.}", &[]);
        check("instructions: {}, files: [{path: a/b.md, content: x}]", &[]);
        check("instructions: {body: Read.}, run: {sandbox: {runtime: shell, script: cat}}", &[]);
        check(
            "description: d",
            &["spec.run: is not set; give run (a program), spec.instructions (a text for models), or both"],
        );
        check(
            "instructions: {}, run: {}",
            &["spec.run: needs exactly one handler: sandbox, http or builtin"],
        );
        let schema = "instructions: {}, tool: {inputSchema: {type: nonsense}}";
        let spec: SkillSpec = serde_saphyr::from_str(&format!("{{version: 1.0.0, {schema}}}")).unwrap();
        assert!(validate_skill("demo", &spec, &SkillPolicySpec::default()).is_err());
    }

    #[test]
    fn body_and_bundle_have_a_largest_size_in_bytes() {
        let body = |bytes: usize| format!("instructions: {{body: '{}'}}", "é".repeat(bytes / 2));
        check(&body(204_800), &[]);
        check(
            &body(204_802),
            &[
                "spec.instructions.body: has 204802 bytes, at most 204800 are allowed; move parts of it to spec.files",
            ],
        );
        let file = |n: usize| format!("{{path: f{n}, content: {}}}", "x".repeat(240_000));
        let files = |count: usize| (0..count).map(file).collect::<Vec<_>>().join(", ");
        check(&format!("instructions: {{}}, files: [{}]", files(2)), &[]);
        check(
            &format!("instructions: {{}}, files: [{}]", files(3)),
            &["spec.files: have 720000 bytes together, at most 716800 are allowed"],
        );
    }

    #[test]
    fn a_body_comes_from_one_place_with_a_legal_name() {
        let from = |name: &str, key: &str| {
            format!("bodyFrom: {{configMapKeyRef: {{name: {name:?}, key: {key:?}}}}}")
        };
        let only = |fields: &str, expected: &[&str]| check(&format!("instructions: {{{fields}}}"), expected);
        only(&from("team.notes", "notes_1.md"), &[]);
        only(
            &format!("body: Read., {}", from("n", "k")),
            &["spec.instructions: give body or bodyFrom, not both"],
        );
        only(
            &from("../secrets", ""),
            &[
                "spec.instructions.bodyFrom.configMapKeyRef.name: must be the name of a ConfigMap: a-z, 0-9, - and ., with a letter or digit at each end and around each dot",
                "spec.instructions.bodyFrom.configMapKeyRef.key: must not be empty",
            ],
        );
        only(
            &from("n", "a/b"),
            &[
                "spec.instructions.bodyFrom.configMapKeyRef.key: must be a key of a ConfigMap: letters, digits, -, _ and .",
            ],
        );
    }

    #[test]
    fn a_text_takes_the_place_of_its_source_and_the_digest_is_of_the_text() {
        let spec = |fields: &str| -> SkillSpec {
            serde_saphyr::from_str(&format!("{{version: 1.0.0, instructions: {{{fields}}}}}")).unwrap()
        };
        let source = spec("bodyFrom: {configMapKeyRef: {name: n, key: k}}, argumentHint: x");
        let found = body_source(&source).unwrap();
        assert_eq!((found.name.as_str(), found.key.as_str()), ("n", "k"));
        let inline = spec("body: Read., argumentHint: x");
        assert_eq!(with_body(&source, "Read.".to_owned()), inline);
        assert_ne!(digest(&source), digest(&inline));
        for other in [
            "body: Read.",
            "body: x, bodyFrom: {configMapKeyRef: {name: n, key: k}}",
            "bodyFrom: {configMapKeyRef: {name: ../n, key: k}}",
        ] {
            assert!(body_source(&spec(other)).is_none(), "{other}");
        }
    }

    #[test]
    fn every_list_and_text_has_a_bound() {
        let many = |count: usize| (0..count).map(|n| format!("w{n}")).collect::<Vec<_>>().join(", ");
        check_instructions(
            &format!("triggers: {{keywords: [{}]}}", many(65)),
            &["spec.instructions.triggers.keywords: has 65 entries, at most 64 are allowed"],
        );
        check_instructions(
            "triggers: {slash: [' ']}",
            &["spec.instructions.triggers.slash[0]: must not be empty"],
        );
        check_instructions(
            &format!("allowedTools: [{}]", "x".repeat(257)),
            &["spec.instructions.allowedTools[0]: has 257 characters, at most 256 are allowed"],
        );
        check_instructions(
            &format!("argumentHint: {}", "x".repeat(257)),
            &["spec.instructions.argumentHint: has 257 characters, at most 256 are allowed"],
        );
        check(
            "instructions: {}, files: [{path: ../a, content: x}, {path: b}]",
            &[
                "spec.files[0].path: must be relative, without empty, . or .. segments, like lib/words.txt",
                "spec.files[1]: give exactly one of content and contentBase64",
            ],
        );
    }

    #[test]
    fn an_input_has_a_plain_name_once_and_a_default_of_its_type() {
        let legal = "inputs: [{name: a_1}, {name: b, type: integer, default: '3'}, {name: c, type: boolean, default: 'true'}]";
        check_instructions(legal, &[]);
        let name = "must be at most 64 letters, digits and _, not beginning with a digit";
        check_instructions("inputs: [{name: 1a}]", &[&format!("spec.instructions.inputs[0].name: {name}")]);
        check_instructions(
            "inputs: [{name: a}, {name: a, type: number, default: x}]",
            &[
                "spec.instructions.inputs[1].name: a is declared twice",
                "spec.instructions.inputs[1].default: must be a number, as the type says",
            ],
        );
    }
}

//! Validation of one command of a body as a program, and the values that its shell gets.

use skillet_api::{
    Reason, SkillPolicySpec,
    dynamic::DynamicContent,
    instructions::{InstructionInput, InstructionInputType, Instructions},
};
use skillet_instructions::{
    dynamic::commands,
    inputs::{ARGUMENTS, Input, InputType},
};

use super::{
    FieldError, Program, ValidContent,
    field_error::FieldErrors,
    script::{BundleParts, SH},
};
use crate::{content::Content, text::truncate};

/// Variables with a meaning for one shell or another, and those that a sandbox exports.
const TAKEN: [&str; 26] = [
    ARGUMENTS,
    "CDPATH",
    "ENV",
    "EUID",
    "FUNCNAME",
    "GLOBIGNORE",
    "GROUPS",
    "HISTFILE",
    "HOME",
    "IFS",
    "LANG",
    "LINENO",
    "OLDPWD",
    "OPTIND",
    "PATH",
    "PPID",
    "PS1",
    "PS2",
    "PS4",
    "PWD",
    "RANDOM",
    "SECONDS",
    "SHELL",
    "SHELLOPTS",
    "TMPDIR",
    "UID",
];
/// Begins of variables with a meaning for the loader, an interpreter or the bundle.
const TAKEN_BEGINS: [&str; 9] =
    ["BASH", "CLAUDE_", "COMP_", "GIT_", "LC_", "LD_", "NODE_", "PYTHON", "SKILL_"];
/// Commands that a refusal shows, and bytes of each.
const SHOWN: (usize, usize) = (16, 80);

/// Validates a command of a version for a run. It has the limits and variables of the skill's own program, and its Secrets
/// only if `dynamic` says so.
///
/// A command runs only if the sealed body has it, byte for byte: the right to run a skill is no right to run anything else
/// in its sandbox, with its variables.
pub fn validate_command<'a>(
    content: impl Into<Content<'a>>,
    command: &str,
    policy: &SkillPolicySpec,
) -> Result<ValidContent, Vec<FieldError>> {
    let content = content.into();
    let mut errors = FieldErrors::default();
    let mut parts = BundleParts::read(content, policy, &mut errors);
    let dynamic = content.instructions.map_or(DynamicContent::Never, |instructions| instructions.dynamic);
    match (content.instructions, dynamic) {
        (None, _) | (_, DynamicContent::Never) => errors.add(
            Reason::DynamicContentDisabled,
            "spec.instructions.dynamic",
            "is Never; write Run to let commands of the body run",
        ),
        (Some(instructions), DynamicContent::Run | DynamicContent::RunWithSecrets) => {
            find_command(instructions, command, &mut errors);
        }
    }
    if dynamic != DynamicContent::RunWithSecrets {
        parts.secret_env.clear();
    }
    let inputs = content.instructions.map(|instructions| declared_inputs(&instructions.inputs));
    parts.finish(content, Some(SH), policy, errors, |interpreter| Program::BodyCommand {
        interpreter,
        text: command.to_owned(),
        inputs: inputs.unwrap_or_default(),
    })
}

fn find_command(instructions: &Instructions, command: &str, errors: &mut FieldErrors) {
    let found = commands(&instructions.body);
    if found.contains(&command) {
        return;
    }
    let (most, longest) = SHOWN;
    let shown: Vec<String> =
        found.iter().take(most).map(|command| format!("{:?}", truncate(command, longest).0)).collect();
    let shown = if shown.is_empty() { "no commands".to_owned() } else { shown.join(", ") };
    let message = format!("{:?} is no command of the body; it has {shown}", truncate(command, longest).0);
    errors.add(Reason::CommandNotFound, "spec.command.text", message);
}

/// Refuses inputs of a text with commands whose names are variables of the shell or of the skill's program.
pub(super) fn check_input_names(content: Content<'_>, errors: &mut FieldErrors) {
    let Some(instructions) = content.instructions else { return };
    if instructions.dynamic == DynamicContent::Never {
        return;
    }
    let sandbox = content.run.and_then(|run| run.sandbox.as_ref());
    for (place, InstructionInput { name, .. }) in instructions.inputs.iter().enumerate() {
        let is_taken =
            TAKEN.contains(&name.as_str()) || TAKEN_BEGINS.iter().any(|begin| name.starts_with(begin));
        let is_own = sandbox.is_some_and(|sandbox| {
            sandbox.env.iter().any(|variable| variable.name == *name)
                || sandbox.secret_env.iter().any(|variable| variable.name == *name)
        });
        if is_taken || is_own {
            let message =
                format!("commands get inputs as variables, and {name} is one already; take another name");
            errors.spec(format_args!("spec.instructions.inputs[{place}].name"), message);
        }
    }
}

/// Returns the inputs that instructions declare.
pub fn declared_inputs(inputs: &[InstructionInput]) -> Vec<Input> {
    inputs.iter().map(declared_input).collect()
}

fn declared_input(input: &InstructionInput) -> Input {
    let InstructionInput { name, description, value_type, required, default } = input;
    Input {
        name: name.clone(),
        description: description.clone(),
        value_type: match value_type {
            InstructionInputType::String => InputType::String,
            InstructionInputType::Integer => InputType::Integer,
            InstructionInputType::Number => InputType::Number,
            InstructionInputType::Boolean => InputType::Boolean,
        },
        is_required: *required,
        default: default.clone(),
    }
}

#[cfg(test)]
mod tests {
    use skillet_api::{SkillSpec, skill::Runtime};

    use super::{super::ImageChoice, *};

    const BODY: &str = "Log: !`git log $1`. Code: ```\n!`no`\n```";

    fn spec(instructions: &str, fields: &str) -> SkillSpec {
        let yaml = format!("{{version: 1.0.0, instructions: {{body: {BODY:?}, {instructions}}}, {fields}}}");
        serde_saphyr::from_str(&yaml).unwrap()
    }

    fn validate(spec: &SkillSpec, command: &str) -> Result<ValidContent, String> {
        validate_command(spec, command, &SkillPolicySpec::default()).map_err(|errors| {
            let texts: Vec<String> =
                errors.iter().map(|error| format!("{} {error}", error.reason())).collect();
            texts.join("; ")
        })
    }

    #[test]
    fn a_command_of_the_body_runs_in_a_shell_with_the_bundle() {
        let spec = spec("dynamic: Run, inputs: [{name: tag}]", "files: [{path: a.txt, content: x}]");
        let valid = validate(&spec, "git log $1").unwrap();
        assert_eq!(valid.sandbox().unwrap().image, ImageChoice::Runtime(Runtime::Shell));
        let Program::BodyCommand { interpreter, text, inputs } = &valid.sandbox().unwrap().program else {
            panic!()
        };
        assert_eq!((interpreter.as_str(), text.as_str(), inputs.len()), ("/bin/sh", "git log $1", 1));
        let paths: Vec<&str> = valid.sandbox().unwrap().files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a.txt", "SKILL.md"]);
    }

    #[test]
    fn nothing_but_a_command_of_the_body_runs() {
        let spec = spec("dynamic: Run", "");
        for other in ["git log $1 ", "git log", "no", "", "git log $1; id", "GIT LOG $1"] {
            let refusal = validate(&spec, other).unwrap_err();
            let expected = format!(
                "CommandNotFound spec.command.text: {other:?} is no command of the body; it has \"git log $1\""
            );
            assert_eq!(refusal, expected);
        }
        let text: SkillSpec =
            serde_saphyr::from_str("{version: 1.0.0, instructions: {body: x, dynamic: Run}}").unwrap();
        assert!(validate(&text, "x").unwrap_err().ends_with("it has no commands"));
    }

    #[test]
    fn commands_run_only_if_the_skill_says_so() {
        let program: SkillSpec =
            serde_saphyr::from_str("{version: 1.0.0, run: {sandbox: {runtime: shell, script: cat}}}")
                .unwrap();
        for spec in [spec("dynamic: Never", ""), spec("", ""), program] {
            assert_eq!(
                validate(&spec, "git log $1").unwrap_err(),
                "DynamicContentDisabled spec.instructions.dynamic: is Never; write Run to let commands of the body run"
            );
        }
    }

    #[test]
    fn secrets_are_for_commands_only_if_the_skill_says_so() {
        let run = "run: {sandbox: {runtime: shell, script: cat, env: [{name: A, value: b}], secretEnv: [{name: T, secret: s, key: k}]}}";
        for (dynamic, secrets) in [("Run", 0), ("RunWithSecrets", 1)] {
            let valid = validate(&spec(&format!("dynamic: {dynamic}"), run), "git log $1").unwrap();
            assert_eq!(
                (valid.sandbox().unwrap().secret_env.len(), valid.sandbox().unwrap().env["A"].as_str()),
                (secrets, "b"),
                "{dynamic}"
            );
        }
    }

    #[test]
    fn an_input_of_a_text_with_commands_is_no_variable_of_the_shell_or_the_program() {
        let run = "run: {sandbox: {runtime: shell, script: cat, env: [{name: mine}], secretEnv: [{name: hush, secret: s, key: k}]}}";
        for (name, is_taken) in [
            ("PATH", true),
            ("LD_PRELOAD", true),
            ("PYTHONPATH", true),
            ("SKILL_DIR", true),
            ("ARGUMENTS", true),
            ("BASH_ENV", true),
            ("UID", true),
            ("LC_ALL", true),
            ("mine", true),
            ("hush", true),
            ("path", false),
            ("VERSION", false),
        ] {
            let inputs = format!("inputs: [{{name: {name}}}]");
            let found = validate(&spec(&format!("dynamic: Run, {inputs}"), run), "git log $1");
            assert_eq!(found.is_err(), is_taken, "{name}");
            if let Err(message) = found {
                let expected = format!("commands get inputs as variables, and {name} is one already");
                assert!(message.contains(&expected), "{message}");
            }
            assert!(
                super::super::validate_skill("a", &spec(&inputs, run), &SkillPolicySpec::default()).is_ok()
            );
        }
    }
}

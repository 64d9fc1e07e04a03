//! The input that an execution gives to its program: a JSON document, the arguments and the text of a script, or
//! the values of a command.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::Value;
use skillet_api::{Reason, builtin::Builtin, dynamic::BodyCommand, execution::BundleScript};
use skillet_instructions::inputs::{CallValues, ShellValues, shell_values};

use super::Refusal;
use crate::{
    builtin::{SandboxCall, sandbox_call},
    exact_json::find_inexact,
    schema::summarize,
    skill::{Program, RunPart, ValidContent},
};

/// Refuses an input that violates the input schema.
pub fn check_input(content: &ValidContent, input: &Value) -> Result<(), Refusal> {
    let Some(schema) = &content.input_schema else { return Ok(()) };
    schema.check(input).map_err(|violations| {
        Refusal::new(Reason::InputInvalid, format!("spec.input: {}", summarize(&violations)))
    })
}

/// Most bytes of an input as JSON. Input and output together must fit an object of the API server.
pub const MAX_INPUT_BYTES: usize = 1 << 20;

/// Refuses the JSON text of an input that is too large, or that Kubernetes would change. Clients call it before they send.
pub fn check_input_text(input: &str) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(Reason::InputInvalid, message));
    if input.len() > MAX_INPUT_BYTES {
        let message = format!("spec.input: has {} bytes; at most {MAX_INPUT_BYTES} are taken", input.len());
        return refuse(message);
    }
    match find_inexact(input) {
        None => Ok(()),
        Some(inexact) => refuse(format!("spec.input: {inexact}")),
    }
}

/// Arguments, standard input and variables that an execution gives to its program.
#[derive(Clone, Debug, Default)]
pub struct ProgramInput {
    pub(super) args: Vec<String>,
    pub(super) stdin: Arc<str>,
    pub(super) variables: BTreeMap<String, String>,
    /// Content of the version as this input needs it, if that is not the same for every input.
    pub(super) content: Option<Arc<ValidContent>>,
}

impl ProgramInput {
    /// Takes an input as JSON text that was checked.
    fn of_json(text: Arc<str>, content: &ValidContent) -> Result<Self, Refusal> {
        match content.sandbox().and_then(|program| program.builtin) {
            None => Ok(Self { stdin: text, ..Self::default() }),
            Some(builtin) => Self::of_builtin(builtin, &parse("spec.input", &text)?, content),
        }
    }

    /// Returns the content that this input needs, if that is not the same for every input.
    #[cfg(test)]
    pub(crate) fn content(&self) -> Option<&ValidContent> {
        self.content.as_deref()
    }

    /// Takes the input of a built-in that runs in a sandbox.
    fn of_builtin(builtin: Builtin, input: &Value, content: &ValidContent) -> Result<Self, Refusal> {
        let SandboxCall { program, args, stdin, has_network } = sandbox_call(builtin, input, &content.limits)
            .map_err(|error| Refusal::new(error.reason(), format!("spec.input: {error}")))?;
        if args.iter().any(|arg| arg.contains('\0')) {
            return Err(has_nul("spec.input"));
        }
        let network = content.network.clone().filter(|_found| has_network);
        let content = ValidContent { handler: program.into(), network, ..content.clone() };
        Ok(Self { args, stdin: stdin.into(), content: Some(Arc::new(content)), ..Self::default() })
    }

    /// Takes `spec.input`, `spec.script` or `spec.command` as JSON text, whichever the part needs.
    pub fn of_text(part: &RunPart, text: Arc<str>, content: &ValidContent) -> Result<Self, Refusal> {
        match part {
            RunPart::Program => Self::of_json(text, content),
            RunPart::McpServer(_) => Ok(Self::default()),
            RunPart::Script(_) => parse("spec.script", &text).and_then(Self::of_script),
            RunPart::Command(_) => {
                parse("spec.command", &text).and_then(|command| Self::of_command(command, content))
            }
        }
    }

    /// Takes `spec.script`. The system passes arguments as C strings, so none may have a NUL.
    pub fn of_script(script: BundleScript) -> Result<Self, Refusal> {
        let BundleScript { path: _, args, stdin } = script;
        match args.iter().position(|arg| arg.contains('\0')) {
            None => Ok(Self { args, stdin: stdin.into(), ..Self::default() }),
            Some(place) => Err(has_nul(format_args!("spec.script.args[{place}]"))),
        }
    }

    /// Takes `spec.command`. The values of its placeholders become arguments and variables of the shell.
    pub fn of_command(command: BodyCommand, content: &ValidContent) -> Result<Self, Refusal> {
        let BodyCommand { text: _, arguments, inputs } = command;
        if arguments.contains('\0') {
            return Err(has_nul("spec.command.arguments"));
        }
        if let Some((name, _)) = inputs.iter().find(|(_, value)| value.contains('\0')) {
            return Err(has_nul(format_args!("spec.command.inputs.{name}")));
        }
        let declared = match content.sandbox().map(|sandbox| &sandbox.program) {
            Some(Program::BodyCommand { inputs, .. }) => inputs.as_slice(),
            Some(
                Program::Script { .. }
                | Program::Command { .. }
                | Program::BundleScript { .. }
                | Program::McpServer { .. },
            )
            | None => &[],
        };
        let values = CallValues { named: inputs, text: arguments };
        let ShellValues { words, variables } = shell_values(declared, &values).map_err(|missing| {
            let names: Vec<&str> = missing.inputs.iter().map(|input| input.name.as_str()).collect();
            let message = format!("spec.command.inputs: has no value of its type for {}", names.join(", "));
            Refusal::new(Reason::InputInvalid, message)
        })?;
        Ok(Self { args: words, variables, ..Self::default() })
    }
}

fn parse<T: DeserializeOwned>(field: &str, text: &str) -> Result<T, Refusal> {
    serde_json::from_str(text).map_err(|error| Refusal::new(Reason::ParseFailed, format!("{field}: {error}")))
}

fn has_nul(field: impl fmt::Display) -> Refusal {
    Refusal::new(Reason::SpecInvalid, format!("{field}: must not contain a NUL character"))
}

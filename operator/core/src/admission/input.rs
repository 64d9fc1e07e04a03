//! The input that an execution gives to its program: a JSON document, or the arguments and the text of a script.

use std::sync::Arc;

use serde_json::Value;
use skillet_api::{Reason, execution::BundleScript};

use super::Refusal;
use crate::{exact_json::find_inexact, schema::summarize, skill::ValidContent};

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

/// Arguments and standard input that an execution gives to its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramInput {
    args: Vec<String>,
    stdin: Arc<str>,
}

impl ProgramInput {
    /// Takes an input as JSON text that was checked.
    pub fn of_json(input: Arc<str>) -> Self {
        Self { args: Vec::new(), stdin: input }
    }

    /// Takes `spec.script` as JSON text.
    pub fn of_script_text(text: &str) -> Result<Self, Refusal> {
        let script = serde_json::from_str(text);
        script
            .map_err(|error| Refusal::new(Reason::ParseFailed, format!("spec.script: {error}")))
            .and_then(Self::of_script)
    }

    pub(super) fn into_parts(self) -> (Vec<String>, Arc<str>) {
        (self.args, self.stdin)
    }

    /// Takes `spec.script`. The system passes arguments as C strings, so none may have a NUL.
    pub fn of_script(script: BundleScript) -> Result<Self, Refusal> {
        let BundleScript { path: _, args, stdin } = script;
        match args.iter().position(|arg| arg.contains('\0')) {
            None => Ok(Self { args, stdin: stdin.into() }),
            Some(place) => {
                let message = format!("spec.script.args[{place}]: must not contain a NUL character");
                Err(Refusal::new(Reason::SpecInvalid, message))
            }
        }
    }
}

//! `eval_code` and `execute_command`: code and programs in a sandbox of one of Skillet's runtimes. `browser` has a sandbox, too.
//!
//! A script of ours is the program of the sandbox. It starts what the input says, and prints how that ended, so that a
//! failure of it is an output and none of the run.

use std::collections::BTreeMap;

use serde_json::Value;
use skillet_api::{builtin::Builtin, skill::Runtime};

use super::{BuiltinError, arguments::command_args, arguments::text, browser::browser_call, timeout};
use crate::skill::{ImageChoice, Program, SandboxProgram, ValidLimits};

/// Longest code and longest argument in bytes. Linux takes 128 KiB.
const MAX_ARGUMENT: usize = 100_000;
/// Most bytes of all arguments.
const MAX_ARGUMENTS: usize = 500_000;

/// The part of a run that its input decides.
#[derive(Clone, Debug, PartialEq)]
pub struct SandboxCall {
    pub program: SandboxProgram,
    /// Arguments of its script: time limit in milliseconds, most bytes of its output, then what it is to run.
    pub args: Vec<String>,
    pub stdin: String,
    /// The input asks for the hosts of the skill.
    pub has_network: bool,
}

/// Returns a built-in as the program of a runtime.
pub fn sandbox_program(builtin: Builtin, runtime: Runtime) -> SandboxProgram {
    let script = match runtime {
        Runtime::Shell => include_str!("sandbox/run.sh"),
        Runtime::Python => include_str!("sandbox/run.py"),
        Runtime::Node => include_str!("sandbox/run.js"),
    };
    SandboxProgram {
        image: ImageChoice::Runtime(runtime),
        program: Program::Script { runtime, text: script.to_owned(), args: Vec::new() },
        files: Vec::new(),
        env: BTreeMap::new(),
        secret_env: Vec::new(),
        bundle_image: None,
        builtin: Some(builtin),
    }
}

/// Reads the input of a built-in that runs in a sandbox.
pub fn sandbox_call(
    builtin: Builtin,
    input: &Value,
    limits: &ValidLimits,
) -> Result<SandboxCall, BuiltinError> {
    if input.get("image").is_some_and(|image| !image.is_null()) {
        let message = "image: is not taken; the runtimes of Skillet run it. For another image write a Skill with run.sandbox";
        return Err(BuiltinError::input(message));
    }
    if builtin == Builtin::Browser {
        return browser_call(input, limits);
    }
    let (runtime, words) = if builtin == Builtin::EvalCode { code(input)? } else { command(input)? };
    let size: usize = words.iter().map(String::len).sum();
    if size > MAX_ARGUMENTS || words.iter().any(|word| word.len() > MAX_ARGUMENT) {
        let message = format!("has more than {MAX_ARGUMENT} bytes in one text, or {MAX_ARGUMENTS} in all");
        return Err(BuiltinError::input(message));
    }
    let mut args = vec![timeout(input).as_millis().to_string(), limits.output_bytes.to_string()];
    args.extend(words);
    let has_network = input.get("networkEnabled") == Some(&Value::Bool(true));
    Ok(SandboxCall { program: sandbox_program(builtin, runtime), args, stdin: String::new(), has_network })
}

fn code(input: &Value) -> Result<(Runtime, Vec<String>), BuiltinError> {
    let code = input.get("code").and_then(Value::as_str).filter(|code| !code.trim().is_empty());
    let code = code.ok_or_else(|| BuiltinError::input("Missing required field: code"))?;
    let language = text(input, "language").unwrap_or("javascript").to_ascii_lowercase();
    let runtime = match language.as_str() {
        "js" | "javascript" => Runtime::Node,
        "py" | "python" => Runtime::Python,
        _ => {
            let message = format!("language: must be javascript or python, not {language:?}");
            return Err(BuiltinError::input(message));
        }
    };
    Ok((runtime, vec![code.to_owned()]))
}

fn command(input: &Value) -> Result<(Runtime, Vec<String>), BuiltinError> {
    let command =
        text(input, "command").ok_or_else(|| BuiltinError::input("Missing required field: command"))?;
    let args = command_args(input.get("args"))?;
    Ok((Runtime::Shell, std::iter::once(command.to_owned()).chain(args).collect()))
}

#[cfg(test)]
mod tests;

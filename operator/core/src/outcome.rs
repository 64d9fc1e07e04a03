//! The outcome of an execution, from the end of its program: phase, reason, message and output.

use std::time::Duration;

use serde_json::Value;
use skillet_api::{Phase, Reason, duration::SkillDuration};

use crate::{
    output::interpret,
    schema::{Schema, summarize},
    text::{text_tail, trim},
};

/// The end of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Termination {
    Exited { code: i32 },
    Signaled { signal: i32 },
    TimedOut,
    Cancelled,
    OutOfMemory,
    StartFailed { message: String },
}

/// A program that ended, with its output.
#[derive(Clone, Copy, Debug)]
pub struct FinishedProgram<'a> {
    pub termination: &'a Termination,
    /// Captured standard output.
    pub stdout: &'a [u8],
    /// True if the program wrote more than that.
    pub is_truncated: bool,
    /// The end of standard error.
    pub stderr_end: &'a [u8],
    /// Time limit of the run.
    pub timeout: Duration,
    pub output_schema: Option<&'a Schema>,
}

/// The result that goes into the execution's status.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub phase: Phase,
    pub reason: Reason,
    /// Empty if the run succeeded.
    pub message: String,
    /// Set if the run succeeded.
    pub output: Option<Value>,
    /// 128 plus the number of the signal, if a signal ended the program.
    pub exit_code: Option<i32>,
}

/// Bytes of standard error that a message quotes.
const MAX_QUOTED: usize = 500;

/// Returns the outcome. The output of a successful program must also satisfy the output schema, unless it was cut: a part of
/// a document cannot be checked.
pub fn conclude(program: FinishedProgram<'_>) -> Outcome {
    let stderr = program.stderr_end;
    match program.termination {
        Termination::Exited { code: 0 } => success(program),
        Termination::Exited { code } => {
            failure(Reason::ExitCode, quote(&format!("exit code {code}"), stderr), Some(*code))
        }
        Termination::Signaled { signal } => {
            let message = quote(&format!("ended by signal {signal}"), stderr);
            failure(Reason::ExitCode, message, Some(signal.saturating_add(128)))
        }
        Termination::TimedOut => {
            let message = format!("ran longer than its limit of {}", SkillDuration(program.timeout));
            Outcome { phase: Phase::TimedOut, ..failure(Reason::TimedOut, quote(&message, stderr), None) }
        }
        Termination::Cancelled => {
            let message = "cancelled while running".to_owned();
            Outcome { phase: Phase::Cancelled, ..failure(Reason::Cancelled, message, None) }
        }
        Termination::OutOfMemory => {
            let message = "needed more memory than spec.limits.memory of the Skill gives";
            failure(Reason::OutOfMemory, quote(message, stderr), None)
        }
        Termination::StartFailed { message } => failure(Reason::StartFailed, message.clone(), None),
    }
}

fn success(program: FinishedProgram<'_>) -> Outcome {
    let output = interpret(program.stdout, program.is_truncated);
    if let Some(schema) = program.output_schema
        && !program.is_truncated
        && let Err(violations) = schema.check(&output)
    {
        let message = format!("the output breaks tool.outputSchema: {}", summarize(&violations));
        return failure(Reason::OutputInvalid, message, Some(0));
    }
    Outcome {
        phase: Phase::Succeeded,
        reason: Reason::Succeeded,
        message: String::new(),
        output: Some(output),
        exit_code: Some(0),
    }
}

fn failure(reason: Reason, message: String, exit_code: Option<i32>) -> Outcome {
    Outcome { phase: Phase::Failed, reason, message, output: None, exit_code }
}

/// Appends the end of standard error to the message, if there is one.
fn quote(message: &str, stderr: &[u8]) -> String {
    let end = text_tail(stderr, MAX_QUOTED);
    match trim(&end) {
        "" => message.to_owned(),
        end => format!("{message}: {end}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn end(termination: &Termination, stdout: &str, stderr: &str) -> Outcome {
        let (stdout, stderr_end) = (stdout.as_bytes(), stderr.as_bytes());
        let timeout = Duration::from_secs(90);
        conclude(FinishedProgram {
            termination,
            stdout,
            is_truncated: false,
            stderr_end,
            timeout,
            output_schema: None,
        })
    }

    fn check(
        termination: &Termination,
        stderr: &str,
        phase: Phase,
        reason: Reason,
        message: &str,
        code: Option<i32>,
    ) {
        let outcome = end(termination, "{\"a\": 1}", stderr);
        assert_eq!((outcome.phase, outcome.reason, outcome.exit_code), (phase, reason, code));
        assert_eq!((outcome.message.as_str(), outcome.output), (message, None));
    }

    #[test]
    fn exit_code_zero_is_success_whatever_was_written_to_stderr() {
        let outcome = end(&Termination::Exited { code: 0 }, "{\"a\": 1}", "a warning");
        assert_eq!((outcome.phase, outcome.reason), (Phase::Succeeded, Reason::Succeeded));
        assert_eq!((outcome.output, outcome.exit_code), (Some(json!({"a": 1})), Some(0)));
        assert_eq!(outcome.message, "");
    }

    #[test]
    fn other_ends_have_their_own_reason_and_the_end_of_stderr() {
        use Termination::{Cancelled, Exited, OutOfMemory, Signaled, StartFailed, TimedOut};
        let failed = |termination: &Termination, stderr: &str, reason: Reason, message: &str, code| {
            check(termination, stderr, Phase::Failed, reason, message, code);
        };
        failed(&Exited { code: 3 }, "no\nsuch row\n", Reason::ExitCode, "exit code 3: no\nsuch row", Some(3));
        failed(&Exited { code: 1 }, " \n", Reason::ExitCode, "exit code 1", Some(1));
        failed(&Signaled { signal: 11 }, "", Reason::ExitCode, "ended by signal 11", Some(139));
        let memory = "needed more memory than spec.limits.memory of the Skill gives: killed";
        failed(&OutOfMemory, "killed", Reason::OutOfMemory, memory, None);
        let start = StartFailed { message: "no such file: jq".into() };
        failed(&start, "", Reason::StartFailed, "no such file: jq", None);
        let time = "ran longer than its limit of 1m30s: step 2";
        check(&TimedOut, "step 2", Phase::TimedOut, Reason::TimedOut, time, None);
        check(&Cancelled, "x", Phase::Cancelled, Reason::Cancelled, "cancelled while running", None);
    }

    #[test]
    fn a_message_quotes_only_the_end_of_a_long_stderr() {
        let outcome = end(&Termination::Exited { code: 1 }, "", &("é".repeat(600) + "the end"));
        assert!(outcome.message.ends_with("éthe end"), "{}", outcome.message);
        assert!(outcome.message.len() <= MAX_QUOTED + 20);
    }

    #[test]
    fn an_output_that_breaks_its_schema_fails_the_run() {
        let schema = Schema::compile("spec.tool.outputSchema", &json!({"required": ["sum"]})).unwrap();
        let run = |stdout: &str, is_truncated| {
            let (stdout, timeout) = (stdout.as_bytes(), Duration::ZERO);
            let termination = &Termination::Exited { code: 0 };
            conclude(FinishedProgram {
                termination,
                stdout,
                is_truncated,
                stderr_end: b"",
                timeout,
                output_schema: Some(&schema),
            })
        };
        assert_eq!(run("{\"sum\": 3}", false).reason, Reason::Succeeded);
        let broken = run("{\"total\": 3}", false);
        assert_eq!(
            (broken.phase, broken.reason, broken.output),
            (Phase::Failed, Reason::OutputInvalid, None)
        );
        let message =
            r#"the output breaks tool.outputSchema: (root): expected property "sum", which is missing"#;
        assert_eq!(broken.message, message);
        assert_eq!(run("{\"sum\": 3", true).reason, Reason::Succeeded);
    }
}

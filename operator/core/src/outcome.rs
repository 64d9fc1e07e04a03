//! The outcome of an execution, from the end of its program: phase, reason, message and output.

mod explain;

use std::time::Duration;

use serde_json::Value;
use skillet_api::{Phase, Reason, duration::SkillDuration};

use self::explain::{explanation, headline};
use crate::{
    exact_json::find_inexact,
    output::{fit, interpret},
    schema::{Schema, summarize},
    text::{text_tail, trim, truncate},
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
    /// True if the output is text, also where it looks like JSON.
    pub is_text: bool,
    /// The end of standard error.
    pub stderr_end: &'a [u8],
    /// Time limit of the run.
    pub timeout: Duration,
    /// Most processes and threads of the run.
    pub processes: u32,
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
    /// True if the output is a part of what was captured.
    pub is_cut: bool,
    /// 128 plus the number of the signal, if a signal ended the program.
    pub exit_code: Option<i32>,
}

/// Bytes of standard error that a message quotes, of its headline and of its end.
const MAX_QUOTED: usize = 500;
/// Bytes of standard error in which the error is looked for: many lines of a stack may follow it.
const MAX_READ: usize = 8 * 1024;

/// Returns the outcome. The output of a successful program must also satisfy the output schema, which a part of a document
/// cannot.
pub fn conclude(program: FinishedProgram<'_>) -> Outcome {
    let quote = |message: &str| quote(message, program.stderr_end, program.processes);
    match program.termination {
        Termination::Exited { code: 0 } => success(program),
        Termination::Exited { code } => {
            failure(Reason::ExitCode, quote(&format!("exit code {code}")), Some(*code))
        }
        Termination::Signaled { signal } => {
            let message = quote(&format!("ended by signal {signal}"));
            failure(Reason::ExitCode, message, Some(signal.saturating_add(128)))
        }
        Termination::TimedOut => {
            let message = format!("ran longer than its limit of {}", SkillDuration(program.timeout));
            Outcome { phase: Phase::TimedOut, ..failure(Reason::TimedOut, quote(&message), None) }
        }
        Termination::Cancelled => {
            let message = "cancelled while running".to_owned();
            Outcome { phase: Phase::Cancelled, ..failure(Reason::Cancelled, message, None) }
        }
        Termination::OutOfMemory => {
            let message = format!(
                "needed more memory than spec.limits.memory of the Skill gives to all of its up to {} processes",
                program.processes
            );
            failure(Reason::OutOfMemory, quote(&message), None)
        }
        Termination::StartFailed { message } => failure(Reason::StartFailed, message.clone(), None),
    }
}

fn success(program: FinishedProgram<'_>) -> Outcome {
    if let Some(schema) = program.output_schema
        && let Err((reason, message)) = check_output(program, schema)
    {
        return failure(reason, message, Some(0));
    }
    let (output, is_cut) = fit(interpret(program.stdout, program.is_truncated || program.is_text));
    if is_cut && program.output_schema.is_some() {
        return failure(Reason::OutputTooLarge, TOO_LARGE.to_owned(), Some(0));
    }
    Outcome {
        phase: Phase::Succeeded,
        reason: Reason::Succeeded,
        message: String::new(),
        output: Some(output),
        is_cut,
        exit_code: Some(0),
    }
}

const TOO_LARGE: &str = "the output was cut, so tool.outputSchema cannot be checked; print less, or raise spec.limits.outputBytes of the Skill";

/// Checks the whole output against the schema.
fn check_output(program: FinishedProgram<'_>, schema: &Schema) -> Result<(), (Reason, String)> {
    if program.is_truncated {
        return Err((Reason::OutputTooLarge, TOO_LARGE.to_owned()));
    }
    let output = interpret(program.stdout, false);
    schema.check(&output).map_err(|violations| {
        let inexact = std::str::from_utf8(program.stdout).ok().and_then(find_inexact);
        let why = inexact.map_or_else(|| summarize(&violations), |inexact| inexact.to_string());
        (Reason::OutputInvalid, format!("the output breaks tool.outputSchema: {why}"))
    })
}

fn failure(reason: Reason, message: String, exit_code: Option<i32>) -> Outcome {
    Outcome { phase: Phase::Failed, reason, message, output: None, is_cut: false, exit_code }
}

/// Appends the line of standard error that says most, an explanation, and the end of standard error if it has more lines.
fn quote(message: &str, stderr: &[u8], processes: u32) -> String {
    let (read, end) = (text_tail(stderr, MAX_READ), text_tail(stderr, MAX_QUOTED));
    let end = trim(&end);
    if end.is_empty() {
        return message.to_owned();
    }
    let (headline, _) = truncate(headline(&read), MAX_QUOTED);
    let explained = explanation(&read, processes).map(|why| format!(" ({why})")).unwrap_or_default();
    let rest = if headline == end { String::new() } else { format!("\n{end}") };
    format!("{message}: {headline}{explained}{rest}")
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
            is_text: false,
            stderr_end,
            timeout,
            processes: 10,
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
        failed(
            &Exited { code: 3 },
            "no\nsuch row\n",
            Reason::ExitCode,
            "exit code 3: such row\nno\nsuch row",
            Some(3),
        );
        failed(&Exited { code: 1 }, " \n", Reason::ExitCode, "exit code 1", Some(1));
        failed(&Signaled { signal: 11 }, "", Reason::ExitCode, "ended by signal 11", Some(139));
        let memory = "needed more memory than spec.limits.memory of the Skill gives to all of its up to 10 processes: killed";
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
        assert!(outcome.message.len() <= 2 * MAX_QUOTED + 20);
    }

    #[test]
    fn a_message_begins_with_the_error_and_explains_it() {
        let stderr = "Traceback (most recent call last):\n  File \"main.py\", line 2\n    run()\nRuntimeError: can't start new thread\n";
        let message = end(&Termination::Exited { code: 1 }, "", stderr).message;
        let first = "exit code 1: RuntimeError: can't start new thread (spec.limits.processes of the Skill allows 10 processes and threads; raise it or start fewer)";
        assert_eq!(message.lines().next(), Some(first));
        assert!(message.ends_with(stderr.trim_end()), "{message}");
    }

    #[test]
    fn an_error_before_a_long_stack_is_found() {
        let stack = "    at Module._load (node:internal/modules/cjs/loader:1443:12)\n".repeat(12);
        let stderr = format!("main.js:1\nError: Cannot find module 'lodash'\n{stack}\nNode.js v24.21.0\n");
        let message = end(&Termination::Exited { code: 1 }, "", &stderr).message;
        let first = "exit code 1: Error: Cannot find module 'lodash' (a runtime has its standard library and no packages; use an image that has them)";
        assert_eq!(message.lines().next(), Some(first));
    }

    #[test]
    fn text_stays_as_it_was_written_where_text_is_wanted() {
        for (stdout, expected) in
            [("1.10\n", "1.10"), ("{\"output\": 1}", "{\"output\": 1}"), ("null", "null")]
        {
            let outcome = conclude(FinishedProgram {
                termination: &Termination::Exited { code: 0 },
                stdout: stdout.as_bytes(),
                is_truncated: false,
                is_text: true,
                stderr_end: b"",
                timeout: Duration::ZERO,
                processes: 10,
                output_schema: None,
            });
            assert_eq!(outcome.output, Some(json!({ "output": expected })));
        }
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
                is_text: false,
                stderr_end: b"",
                timeout,
                processes: 10,
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
        let cut = run("{\"sum\": 3}", true);
        assert_eq!((cut.phase, cut.reason, cut.output), (Phase::Failed, Reason::OutputTooLarge, None));
        let large = run(&format!("{{\"sum\": \"{}\"}}", "\\u0001".repeat(120_000)), false);
        assert_eq!(large.reason, Reason::OutputTooLarge);
        let rounded = run("{\"sum\": 12345678901234567890}", false);
        assert_eq!(rounded.reason, Reason::OutputInvalid);
        assert!(rounded.message.contains("/sum: the integer 12345678901234567890"), "{}", rounded.message);
    }
}

//! What the end of a program means for its execution: phase, reason, message, output.

use std::time::Duration;

use serde_json::Value;
use skillet_api::{Phase, Reason, duration::SkillDuration};

use crate::{
    output::interpret,
    schema::{Schema, tell},
    text::{text_tail, trim},
};

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Exited { code: i32 },
    Signaled { signal: i32 },
    TimedOut,
    Cancelled,
    OutOfMemory,
    StartFailed { message: String },
}

/// A program that ended, and what it left.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    pub ending: &'a Ending,
    /// What was kept of standard output.
    pub stdout: &'a [u8],
    /// Whether the program wrote more than that.
    pub is_truncated: bool,
    /// The end of standard error.
    pub stderr_end: &'a [u8],
    /// The time limit it ran under.
    pub timeout: Duration,
    pub output_schema: Option<&'a Schema>,
}

/// What the execution's status says.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub phase: Phase,
    pub reason: Reason,
    /// Empty where the run succeeded.
    pub message: String,
    /// Set where the run succeeded.
    pub output: Option<Value>,
    /// 128 plus the number where a signal ended the program.
    pub exit_code: Option<i32>,
}

/// Bytes of standard error that a message quotes.
const MAX_QUOTED: usize = 500;

/// What the end means. A program that succeeded must also satisfy the output schema, unless its output was cut: then
/// nothing is left that could be checked.
pub fn conclude(ended: Ended<'_>) -> Outcome {
    let stderr = ended.stderr_end;
    match ended.ending {
        Ending::Exited { code: 0 } => succeeded(ended),
        Ending::Exited { code } => {
            failed(Reason::ExitCode, quote(&format!("exit code {code}"), stderr), Some(*code))
        }
        Ending::Signaled { signal } => {
            let message = quote(&format!("ended by signal {signal}"), stderr);
            failed(Reason::ExitCode, message, Some(signal.saturating_add(128)))
        }
        Ending::TimedOut => {
            let message = format!("ran longer than its limit of {}", SkillDuration(ended.timeout));
            Outcome { phase: Phase::TimedOut, ..failed(Reason::TimedOut, quote(&message, stderr), None) }
        }
        Ending::Cancelled => {
            let message = "cancelled while running".to_owned();
            Outcome { phase: Phase::Cancelled, ..failed(Reason::Cancelled, message, None) }
        }
        Ending::OutOfMemory => {
            let message = "needed more memory than spec.limits.memory of the Skill gives";
            failed(Reason::OutOfMemory, quote(message, stderr), None)
        }
        Ending::StartFailed { message } => failed(Reason::StartFailed, message.clone(), None),
    }
}

fn succeeded(ended: Ended<'_>) -> Outcome {
    let output = interpret(ended.stdout, ended.is_truncated);
    let schema = ended.output_schema.filter(|_| !ended.is_truncated);
    if let Some(Err(violations)) = schema.map(|schema| schema.check(&output)) {
        let message = format!("the output breaks tool.outputSchema: {}", tell(&violations));
        return failed(Reason::OutputInvalid, message, Some(0));
    }
    Outcome {
        phase: Phase::Succeeded,
        reason: Reason::Succeeded,
        message: String::new(),
        output: Some(output),
        exit_code: Some(0),
    }
}

fn failed(reason: Reason, message: String, exit_code: Option<i32>) -> Outcome {
    Outcome { phase: Phase::Failed, reason, message, output: None, exit_code }
}

/// The message with the end of standard error, where there is one.
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

    fn end(ending: &Ending, stdout: &str, stderr: &str) -> Outcome {
        let (stdout, stderr_end) = (stdout.as_bytes(), stderr.as_bytes());
        let timeout = Duration::from_secs(90);
        conclude(Ended { ending, stdout, is_truncated: false, stderr_end, timeout, output_schema: None })
    }

    fn check(ending: &Ending, stderr: &str, phase: Phase, reason: Reason, message: &str, code: Option<i32>) {
        let outcome = end(ending, "{\"a\": 1}", stderr);
        assert_eq!((outcome.phase, outcome.reason, outcome.exit_code), (phase, reason, code));
        assert_eq!((outcome.message.as_str(), outcome.output), (message, None));
    }

    #[test]
    fn exit_code_zero_is_success_whatever_was_written_to_stderr() {
        let outcome = end(&Ending::Exited { code: 0 }, "{\"a\": 1}", "a warning");
        assert_eq!((outcome.phase, outcome.reason), (Phase::Succeeded, Reason::Succeeded));
        assert_eq!((outcome.output, outcome.exit_code), (Some(json!({"a": 1})), Some(0)));
        assert_eq!(outcome.message, "");
    }

    #[test]
    fn other_ends_have_their_own_reason_and_the_end_of_stderr() {
        use Ending::{Cancelled, Exited, OutOfMemory, Signaled, StartFailed, TimedOut};
        let failed = |ending: &Ending, stderr: &str, reason: Reason, message: &str, code| {
            check(ending, stderr, Phase::Failed, reason, message, code);
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
        let outcome = end(&Ending::Exited { code: 1 }, "", &("é".repeat(600) + "the end"));
        assert!(outcome.message.ends_with("éthe end"), "{}", outcome.message);
        assert!(outcome.message.len() <= MAX_QUOTED + 20);
    }

    #[test]
    fn an_output_that_breaks_its_schema_fails_the_run() {
        let schema = Schema::compile("spec.tool.outputSchema", &json!({"required": ["sum"]})).unwrap();
        let run = |stdout: &str, is_truncated| {
            let (stdout, timeout) = (stdout.as_bytes(), Duration::ZERO);
            let ending = &Ending::Exited { code: 0 };
            conclude(Ended {
                ending,
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
        let told =
            r#"the output breaks tool.outputSchema: (root): expected property "sum", which is missing"#;
        assert_eq!(broken.message, told);
        assert_eq!(run("{\"sum\": 3", true).reason, Reason::Succeeded);
    }
}

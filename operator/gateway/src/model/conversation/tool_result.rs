//! The result of a skill call, in the form that the model reads.

use std::sync::Arc;

use serde_json::{Value, json, value::RawValue};
use skillet_api::Phase;
use skillet_core::json_text::compact;
use skillet_llm::{
    ToolResult,
    result_budget::{ResultBudget, ResultPrefix},
};
use tracing::warn;

use crate::executions::{Execution, ExecutionError, Metadata, Status, script_result};

/// The outcome of a call, before the budget bounds it.
pub(super) struct CallOutcome {
    pub(super) content: ResultPrefix,
    pub(super) is_error: bool,
    /// True if the skill was run, with any result.
    pub(super) is_run: bool,
    /// The execution, if its end is known.
    pub(super) execution: Option<Metadata>,
}

impl CallOutcome {
    /// As the model reads it, as far as the bytes that are left for results let it.
    pub(super) fn to_result(&self, budget: &mut ResultBudget, id: &str, name: &str) -> ToolResult {
        let content = budget.take(&self.content).text;
        ToolResult { id: id.to_owned(), name: name.to_owned(), content, is_error: self.is_error }
    }
}

/// Turns the end of a run into an outcome. Of an output `most` bytes are kept, as one result may have.
pub(super) fn end(run: Result<Arc<Execution>, ExecutionError>, most: usize) -> CallOutcome {
    match run {
        Ok(execution) => {
            CallOutcome { execution: Some(execution.metadata.clone()), ..completed(&execution, most) }
        }
        Err(error) => {
            if is_passing(&error) {
                log(&error);
            }
            CallOutcome { is_run: is_begun(&error), ..failed(error.reason(), &error.to_string()) }
        }
    }
}

/// The cause, which is for who runs the cluster and not for a model.
pub(super) fn log(error: &ExecutionError) {
    let cause = std::error::Error::source(error).map(tracing::field::display);
    warn!(%error, cause, "Skill could not be run");
}

/// Returns true if a repeated request may succeed and no run is known to have started.
pub(super) fn is_passing(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::Create { .. }
        | ExecutionError::Read { .. }
        | ExecutionError::List { .. }
        | ExecutionError::Cancel { .. }
        | ExecutionError::Annotate { .. }
        | ExecutionError::Stopping => true,
        ExecutionError::Forbidden { .. }
        | ExecutionError::NoPlace { .. }
        | ExecutionError::Invalid { .. }
        | ExecutionError::InputRefused { .. }
        | ExecutionError::Conflict
        | ExecutionError::Gone { .. }
        | ExecutionError::TooLate { .. } => false,
    }
}

/// Returns true if an execution existed before the error.
fn is_begun(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::Gone { .. } | ExecutionError::TooLate { .. } => true,
        ExecutionError::Create { .. }
        | ExecutionError::Read { .. }
        | ExecutionError::List { .. }
        | ExecutionError::Cancel { .. }
        | ExecutionError::Annotate { .. }
        | ExecutionError::Forbidden { .. }
        | ExecutionError::NoPlace { .. }
        | ExecutionError::Invalid { .. }
        | ExecutionError::InputRefused { .. }
        | ExecutionError::Conflict
        | ExecutionError::Stopping => false,
    }
}

/// An execution's end as the model reads it.
fn completed(execution: &Execution, most: usize) -> CallOutcome {
    let Some(status) = &execution.status else { return failed("ApiError", "the execution has no status") };
    // What the operator refuses ends without an attempt.
    let is_run = status.attempts > 0;
    if is_run && execution.spec.script.is_some() {
        let content = ResultPrefix::new(script_result(status).to_string(), most);
        return CallOutcome { content, is_error: status.phase != Phase::Succeeded, is_run, execution: None };
    }
    // A tool of an MCP server tells in its result what failed.
    let has_result = execution.spec.mcp_call.is_some() && status.output.is_some();
    match status.phase {
        Phase::Failed if !has_result => of_failure(status, is_run),
        Phase::Succeeded | Phase::Failed => {
            let output = status.output.as_deref().map_or("null", RawValue::get);
            // As the API server wrote it, it is escaped for web pages.
            let content = compact(output).unwrap_or_else(|| output.to_owned());
            CallOutcome {
                content: ResultPrefix::new(content, most),
                is_error: status.phase != Phase::Succeeded,
                is_run,
                execution: None,
            }
        }
        Phase::Pending | Phase::Running | Phase::TimedOut | Phase::Cancelled => of_failure(status, is_run),
    }
}

fn of_failure(status: &Status, is_run: bool) -> CallOutcome {
    let reason = status.reason.map_or("ApiError", skillet_api::Reason::as_str);
    CallOutcome { is_run, ..failed(reason, status.message.as_deref().unwrap_or("the skill failed")) }
}

/// The outcome of a search for skills, which runs none.
pub(super) fn found(skills: &Value, most: usize) -> CallOutcome {
    let content = ResultPrefix::new(skills.to_string(), most);
    CallOutcome { content, is_error: false, is_run: false, execution: None }
}

/// The outcome of a call whose skill was not run.
pub(super) fn failed(reason: &str, message: &str) -> CallOutcome {
    let content = json!({ "error": { "reason": reason, "message": message } });
    let content = ResultPrefix::new(content.to_string(), usize::MAX);
    CallOutcome { content, is_error: true, is_run: false, execution: None }
}

#[cfg(test)]
mod tests {
    use skillet_api::Reason;

    use super::*;
    use skillet_api::execution::StreamStatus;

    use crate::executions::{Spec, Status};

    fn ended(phase: Phase, reason: Reason, attempts: u32) -> CallOutcome {
        let status = Status {
            phase,
            reason: Some(reason),
            message: Some("the end of stderr".into()),
            output: (phase == Phase::Succeeded)
                .then(|| RawValue::from_string(r#"{"n": "\u003c"}"#.into()).unwrap()),
            attempts,
            ..Status::default()
        };
        let execution = Execution { status: Some(status), ..Execution::default() };
        completed(&execution, 100)
    }

    /// As the model reads it.
    fn text(outcome: &CallOutcome) -> String {
        outcome.to_result(&mut ResultBudget::default(), "", "").content
    }

    #[test]
    fn a_success_is_its_output_and_a_failure_says_why() {
        let succeeded = ended(Phase::Succeeded, Reason::Succeeded, 1);
        assert_eq!((text(&succeeded), succeeded.is_error), (r#"{"n":"<"}"#.into(), false));
        for (phase, reason) in [
            (Phase::Failed, Reason::ExitCode),
            (Phase::TimedOut, Reason::TimedOut),
            (Phase::Cancelled, Reason::Cancelled),
        ] {
            let outcome = ended(phase, reason, 1);
            let error = json!({ "error": { "reason": reason.as_str(), "message": "the end of stderr" } });
            assert_eq!((text(&outcome), outcome.is_error), (error.to_string(), true));
        }
    }

    #[test]
    fn of_a_large_output_only_what_a_result_may_have_is_kept() {
        let output = format!("[{}0]", "0,".repeat(100_000));
        let status = Status {
            phase: Phase::Succeeded,
            output: Some(RawValue::from_string(output.clone()).unwrap()),
            ..Status::default()
        };
        let outcome = completed(&Execution { status: Some(status), ..Execution::default() }, 100);
        let whole = ResultPrefix::new(output, usize::MAX);
        assert_ne!(outcome.content, whole);
        let mut budget = ResultBudget::new(100, 1000);
        assert_eq!(
            outcome.to_result(&mut budget, "", "").content,
            ResultBudget::new(100, 1000).take(&whole).text
        );
    }

    #[test]
    fn a_script_ends_with_its_exit_code_and_both_streams() {
        let raw = |text: &str| Some(RawValue::from_string(text.to_owned()).unwrap());
        let spec = Spec { script: raw("{}"), ..Spec::default() };
        let stream = |head: &str| Some(StreamStatus { head: head.into(), ..StreamStatus::default() });
        let outcome = |status: Status| {
            let execution = Execution { spec: spec.clone(), status: Some(status), ..Execution::default() };
            let outcome = completed(&execution, 10_000);
            (serde_json::from_str::<Value>(&text(&outcome)).unwrap(), outcome.is_error)
        };
        let good = |output: &str| Status {
            phase: Phase::Succeeded,
            output: raw(output),
            exit_code: Some(0),
            attempts: 1,
            ..Status::default()
        };
        for (output, stdout) in [
            (r#"{"output":"two\nlines"}"#, json!("two\nlines")),
            (r#"{"value":5}"#, json!(5)),
            (r#"{"output":1,"a":2}"#, json!({ "output": 1, "a": 2 })),
            ("[1]", json!([1])),
        ] {
            assert_eq!(outcome(good(output)), (json!({ "exitCode": 0, "stdout": stdout }), false));
        }
        let noisy = Status { stderr: stream(&"é".repeat(5000)), truncated: true, ..good("[]") };
        let (result, _) = outcome(noisy);
        assert_eq!((result["stderr"].as_str().unwrap().len(), &result["truncated"]), (4096, &json!(true)));
        let failed = Status {
            phase: Phase::Failed,
            reason: Some(Reason::ExitCode),
            message: Some("KeyError".into()),
            exit_code: Some(1),
            stdout: stream("so far"),
            stderr: stream("KeyError"),
            attempts: 1,
            ..Status::default()
        };
        let error = json!({ "reason": "ExitCode", "message": "KeyError" });
        let expected = json!({ "exitCode": 1, "stdout": "so far", "stderr": "KeyError", "error": error });
        assert_eq!(outcome(failed.clone()), (expected, true));
        let refused = Status { attempts: 0, reason: Some(Reason::FileNotFound), ..failed };
        let error = json!({ "error": { "reason": "FileNotFound", "message": "KeyError" } });
        assert_eq!(outcome(refused), (error, true));
    }

    #[test]
    fn only_what_was_begun_is_a_run() {
        assert!(ended(Phase::Succeeded, Reason::Succeeded, 1).is_run);
        assert!(ended(Phase::Failed, Reason::ExitCode, 2).is_run);
        assert!(!ended(Phase::Failed, Reason::InputInvalid, 0).is_run, "the operator refused it");
        assert!(!failed("Forbidden", "").is_run);
        let (namespace, name) = (String::new(), String::new());
        assert!(!is_begun(&ExecutionError::Conflict));
        assert!(is_begun(&ExecutionError::TooLate { namespace, name, limit: std::time::Duration::ZERO }));
    }

    #[test]
    fn what_may_go_well_the_next_time_is_no_outcome() {
        let (namespace, message) = (String::new(), String::new());
        let source = Box::new(kube::Error::LinesCodecMaxLineLengthExceeded);
        assert!(is_passing(&ExecutionError::Create { namespace: namespace.clone(), source }));
        assert!(is_passing(&ExecutionError::Stopping));
        assert!(!is_passing(&ExecutionError::Forbidden { namespace, message }));
        assert!(!is_passing(&ExecutionError::Conflict));
    }
}

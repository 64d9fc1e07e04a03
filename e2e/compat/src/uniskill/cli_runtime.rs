//! `stdout` and `outcome`: what the end of a command-line program means.
//!
//! The reference asks a sandbox service over HTTP; its answer 504 is a run over its time, any other error a run that
//! could not be started. A failure's text is its own in both, so that there is one is compared, not which.

use std::time::Duration;

use serde_json::{Value, json};
use skillet_api::{Phase, Reason, SkillExecutionSpec, SkillPolicySpec};
use skillet_core::{
    admission::{AdmissionRequest, admit},
    content_cache::ContentCache,
    outcome::{FinishedProgram, Outcome, Termination, conclude},
};

use crate::{case::Case, judge::Answer};

pub(super) fn stdout(case: &Case) -> Result<Answer, String> {
    let code = exit_code(case)?.unwrap_or(0);
    let outcome = end(case, &Termination::Exited { code });
    let value = json!({"status": status(&outcome), "result": outcome.output});
    Ok(Answer::by_fields(case, value, &["status", "result"]))
}

pub(super) fn outcome(case: &Case) -> Result<Answer, String> {
    let what = case.text("what").to_lowercase();
    let http = case.input["http"].as_u64();
    let termination = if let Some(code) = exit_code(case)? {
        Termination::Exited { code }
    } else if what.contains("no sandbox configured") {
        return nothing_to_run_in(case);
    } else if http == Some(504)
        || ["timeout", "timed out", "time limit", "abort"].iter().any(|word| what.contains(word))
    {
        Termination::TimedOut
    } else if http.is_some_and(|status| status >= 300)
        || ["network", "fetch", "unreachable", "throws"].iter().any(|word| what.contains(word))
    {
        Termination::StartFailed { message: format!("the sandbox answered {http:?}") }
    } else {
        return Err("the input says not how the run ended".to_owned());
    };
    let outcome = end(case, &termination);
    let mut value = json!({
        "status": status(&outcome), "called": true, "reason": outcome.reason.as_str(), "message": outcome.message,
        "exit_code": outcome.exit_code, "result": outcome.output,
    });
    value["result_keys"] = keys(case, &outcome);
    Ok(compare(case, value))
}

/// The cluster has no place to run: admission refuses, and no sandbox is created.
fn nothing_to_run_in(case: &Case) -> Result<Answer, String> {
    let policy = SkillPolicySpec { execution_enabled: false, ..SkillPolicySpec::default() };
    let execution = SkillExecutionSpec { skill: "tool".to_owned(), ..SkillExecutionSpec::default() };
    let request = AdmissionRequest { execution: &execution, skill: None, versions: &[], policy: &policy };
    match admit(&request, &ContentCache::new()) {
        Ok(_) => Err("admission let a run pass without anything to run in".to_owned()),
        Err(refusal) => {
            let value = json!({
                "status": "FAILED", "called": false, "reason": refusal.reason.as_str(), "message": refusal.message,
            });
            Ok(compare(case, value))
        }
    }
}

fn compare(case: &Case, value: Value) -> Answer {
    let answer = Answer::by_fields(case, value, &["status", "called", "result_keys"]);
    let failure = &case.expected["result"];
    let has_same_code =
        failure.get("exit_code").is_none_or(|code| answer.value.get("exit_code") == Some(code));
    let has_failure_message = failure.get("error").is_none()
        || answer.value["message"].as_str().is_some_and(|text| !text.is_empty());
    let has_same_result = failure.is_null()
        || case.expected["status"] != "SUCCESS"
        || answer.value.get("result") == Some(failure);
    Answer { is_same: answer.is_same && has_same_code && has_failure_message && has_same_result, ..answer }
}

/// Returns the keys of the reference's result that have a counterpart in the product's status.
fn keys(case: &Case, outcome: &Outcome) -> Value {
    let has = |key: &str| match key {
        "output" | "error" => outcome.output.is_some() || !outcome.message.is_empty(),
        "exit_code" => outcome.exit_code.is_some(),
        "value" => outcome.output.as_ref().is_some_and(|output| output.get(key).is_some()),
        _ => false,
    };
    let expected = case.expected["result_keys"].as_array().cloned().unwrap_or_default();
    expected.into_iter().filter(|key| key.as_str().is_some_and(has)).collect()
}

fn exit_code(case: &Case) -> Result<Option<i32>, String> {
    let Some(code) = case.input.get("exit_code") else { return Ok(None) };
    let code = code.as_i64().and_then(|code| i32::try_from(code).ok());
    code.map(Some).ok_or_else(|| "exit_code is no exit code".to_owned())
}

fn end(case: &Case, termination: &Termination) -> Outcome {
    conclude(FinishedProgram {
        termination,
        stdout: case.text("stdout").as_bytes(),
        is_truncated: false,
        is_text: false,
        stderr_end: case.text("stderr").as_bytes(),
        timeout: Duration::from_secs(30),
        processes: 100,
        output_schema: None,
    })
}

/// Returns the reference's word for a phase of the product.
fn status(outcome: &Outcome) -> &'static str {
    match (outcome.phase, outcome.reason) {
        (Phase::Succeeded, Reason::Succeeded) => "SUCCESS",
        (Phase::TimedOut, _) => "TIMEOUT",
        _ => "FAILED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::judged;

    fn check(kind: &str, input: &Value, expected: &Value, result: &str) {
        let judged = judged("uniskill", json!({"kind": kind, "input": input, "expected": expected}));
        assert!(judged.starts_with(result), "{judged}");
    }

    #[test]
    fn output_is_read_as_the_product_reads_it() {
        let printed = |stdout: &str| json!({"stdout": stdout, "exit_code": 0});
        check("stdout", &printed("5"), &json!({"status": "SUCCESS", "result": {"value": 5}}), "passed");
        check("stdout", &printed("null"), &json!({"status": "SUCCESS", "result": {"value": null}}), "passed");
        check("stdout", &printed(""), &json!({"status": "SUCCESS", "result": {"output": ""}}), "passed");
        check("stdout", &printed("x"), &json!({"status": "SUCCESS", "result": {"output": "y"}}), "failed");
    }

    #[test]
    fn ends_that_are_no_success_have_their_word() {
        let exit = json!({"what": "exit", "exit_code": 3, "stdout": "", "stderr": "boom"});
        let failed = json!({"status": "FAILED", "result": {"error": "boom", "exit_code": 3}, "result_keys": ["error", "exit_code"]});
        check("outcome", &exit, &failed, "passed");
        check(
            "outcome",
            &exit,
            &json!({"status": "FAILED", "result": {"error": "boom", "exit_code": 4}}),
            "failed",
        );
        check("outcome", &exit, &json!({"status": "SUCCESS"}), "failed");
        check(
            "outcome",
            &json!({"what": "own timeout"}),
            &json!({"status": "TIMEOUT", "result_keys": ["output"]}),
            "passed",
        );
        check(
            "outcome",
            &json!({"what": "sandbox 500", "http": 500}),
            &json!({"status": "FAILED", "result_keys": ["error"]}),
            "passed",
        );
        check(
            "outcome",
            &json!({"what": "no sandbox configured"}),
            &json!({"status": "FAILED", "called": false}),
            "passed",
        );
        check("outcome", &json!({"what": "something else"}), &json!({}), "the input says not");
    }
}

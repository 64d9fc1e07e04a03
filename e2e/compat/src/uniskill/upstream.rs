//! `error` and `timeout`: what the end of a request means.
//!
//! The reference answers its caller with 502 for all of them; here each has a reason. The class, the host's own words and that
//! nothing is charged are compared.

use serde_json::{Value, json};
use skillet_api::{Reason, SkillPolicySpec, SkillSpec};
use skillet_core::{
    http::{HttpProgram, HttpResponse},
    outcome::{FinishedProgram, Termination, conclude},
    skill::validate_content,
};

use crate::{case::Case, judge::Answer};

fn spec() -> Result<SkillSpec, String> {
    let spec = json!({"version": "1.0.0", "run": {"http": {"url": "https://up.example/", "responseFormat": "Json"}}});
    serde_json::from_value(spec).map_err(|error| error.to_string())
}

pub(super) fn error(case: &Case) -> Result<Answer, String> {
    let spec = spec()?;
    let http = spec.run.and_then(|run| run.http).unwrap_or_default();
    let program = HttpProgram::read(&http, None).map_err(|problems| format!("{problems:?}"))?;
    let status = case.input["upstream_status"].as_u64().unwrap_or(200);
    let body = match &case.input["upstream_body"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let response = HttpResponse {
        status: u16::try_from(status).map_err(|error| error.to_string())?,
        content_type: case.input["content_type"].as_str(),
        location: None,
        body: body.as_bytes(),
        is_truncated: false,
    };
    match program.read_response(&response) {
        Ok(output) => Ok(Answer::by_fields(case, json!({"class": "none", "output": output}), &["class"])),
        Err(error) => Ok(compare(case, error.reason, &error.message)),
    }
}

/// A run that is over its time. The limit is the product's for a skill that names none.
pub(super) fn timeout(case: &Case) -> Result<Answer, String> {
    let content = validate_content(&spec()?, &SkillPolicySpec::default())
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<String>())?;
    let timeout = content.limits.timeout;
    let limit = u64::try_from(timeout.as_millis()).map_err(|error| error.to_string())?;
    let delay =
        ["delay_ms", "upstream_delay_ms", "after_ms"].iter().find_map(|name| case.input[*name].as_u64());
    let what = case.text("what").to_lowercase();
    let never_comes = ["hang", "never", "timeout", "timed out"].iter().any(|word| what.contains(word));
    match delay {
        Some(delay) if delay < limit => return Err("the response comes in time".to_owned()),
        None if !never_comes => return Err("the input says not how long the response takes".to_owned()),
        Some(_) | None => {}
    }
    let ended = conclude(FinishedProgram {
        termination: &Termination::TimedOut,
        stdout: b"",
        is_truncated: false,
        is_text: false,
        stderr_end: b"",
        timeout,
        processes: content.limits.processes,
        output_schema: None,
    });
    let mut answer = compare(case, ended.reason, &ended.message);
    let (limits, seconds) =
        (["timeout_ms", "limit_ms", "aborted_after_ms"], ["timeout_seconds", "limit_seconds"]);
    let expected = |names: &[&str]| names.iter().find_map(|name| case.expected[*name].as_u64());
    answer.is_same &= expected(&limits).is_none_or(|expected| expected == limit);
    answer.is_same &= expected(&seconds).is_none_or(|expected| expected * 1000 == limit);
    answer.value["limit_ms"] = json!(limit);
    Ok(answer)
}

fn compare(case: &Case, reason: Reason, message: &str) -> Answer {
    // Only a run that succeeded counts for anybody.
    let value = json!({"reason": reason.as_str(), "text": message, "charged": 0});
    let answer = Answer::by_fields(case, value, &["charged"]);
    let class = case.expected["class"].as_str().unwrap_or_default().to_lowercase();
    let has_words = case.expected["message"].as_str().is_none_or(|words| message.ends_with(words));
    let is_passed_on = class.contains("passed");
    let is_same = answer.is_same && is_of_class(reason, &class) && (!is_passed_on || has_words);
    Answer { is_same, ..answer }
}

/// True if a word of the reference is for this reason.
fn is_of_class(reason: Reason, class: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| class.contains(word));
    match reason {
        Reason::UpstreamRateLimited => has(&["rate"]),
        Reason::UpstreamNotFound => has(&["not found", "404"]),
        Reason::UpstreamFailed => has(&["trouble", "html"]),
        Reason::UpstreamRefused => has(&["passed"]),
        Reason::ResponseInvalid => has(&["json", "invalid", "parse"]),
        Reason::TimedOut => class.is_empty() || has(&["time", "timed"]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::judged;

    // Cases are written once, where they are used.
    #[allow(clippy::needless_pass_by_value)]
    fn check(kind: &str, input: Value, expected: Value, is_passed: bool) {
        let judged = judged("uniskill", json!({"kind": kind, "input": input, "expected": expected}));
        assert_eq!(judged == "passed", is_passed, "{judged}");
    }

    #[test]
    fn each_class_differs_from_the_others() {
        let classes = ["rate limit", "not found", "upstream trouble", "message passed through", "not json"];
        for (status, own) in [(429, 0), (404, 1), (503, 2), (403, 3), (200, 4)] {
            for (place, class) in classes.iter().enumerate() {
                let input =
                    json!({"upstream_status": status, "upstream_body": "nope", "content_type": "text/plain"});
                check("error", input, json!({"class": class, "message": "nope", "charged": 0}), place == own);
            }
        }
        let input = json!({"upstream_status": 400, "upstream_body": "nope"});
        check("error", input.clone(), json!({"class": "message passed through", "message": "yes"}), false);
        check("error", input, json!({"class": "message passed through", "charged": 5}), false);
    }

    #[test]
    fn a_request_has_ten_seconds() {
        check("timeout", json!({"delay_ms": 11_000}), json!({"class": "timeout", "limit_ms": 10_000}), true);
        check("timeout", json!({"what": "hangs"}), json!({"timeout_seconds": 20}), false);
        check("timeout", json!({"what": "hangs"}), json!({"timeout_seconds": 10}), true);
        check("timeout", json!({}), json!({"timeout_seconds": 10}), false);
        check("timeout", json!({"delay_ms": 9_000}), json!({"class": "timeout"}), false);
    }
}

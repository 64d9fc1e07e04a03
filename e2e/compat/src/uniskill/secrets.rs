//! Secrets of others, missing Secrets, and where a Secret shows.
//!
//! The reference has a pool of keys for each user and platform. Here a Secret is its owner's, who names skills and hosts.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skillet_api::http::Http;
use skillet_core::http::{HOSTS_ANNOTATION, HttpProgram, SKILLS_ANNOTATION, check_grant};

use super::manifest::to_http;
use crate::{case::Case, judge::Answer};

/// A Secret that its owner gave to another skill and another host stays where it is.
// Every replay has this type.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn foreign_secret(case: &Case) -> Result<Answer, String> {
    let annotations = [(SKILLS_ANNOTATION, "own-skill"), (HOSTS_ANNOTATION, "api.own.example")];
    let annotations: BTreeMap<String, String> =
        annotations.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    match check_grant("keys", &annotations, "market-skill", "evil.example") {
        Ok(()) => Ok(compare(case, true, "the Secret was given")),
        Err(refusal) => Ok(compare(case, false, &refusal.message)),
    }
}

pub(super) fn missing_secret(case: &Case) -> Result<Answer, String> {
    let http = json!({"url": "https://up.example/{{SECRETS.K}}", "secrets": [{"name": "K", "secret": "s", "key": "k"}]});
    let http: Http = serde_json::from_value(http).map_err(|error| error.to_string())?;
    let program = HttpProgram::read(&http, None).map_err(|problems| format!("{problems:?}"))?;
    match program.render(&json!({}), &BTreeMap::new()) {
        Ok(_) => Ok(compare(case, true, "the request was rendered")),
        Err(error) => Ok(compare(case, false, &error.message)),
    }
}

/// A skill without a URL is refused when it is applied.
// Every replay has this type.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn missing_endpoint(case: &Case) -> Result<Answer, String> {
    let message = match to_http(&json!({"method": "GET"})) {
        Err(why) => why,
        Ok(http) => match HttpProgram::read(&http, None) {
            Ok(_) => return Ok(compare(case, true, "the request was read")),
            Err(problems) => format!("{problems:?}"),
        },
    };
    Ok(compare(case, false, &message))
}

/// A log line of the request, and the error of a missing Secret, do not have the value.
pub(super) fn exposure(case: &Case) -> Result<Answer, String> {
    const VALUE: &str = "s3cr3t-value";
    let http = json!({"url": "https://up.example/{{SECRETS.K}}?k={{SECRETS.K}}", "headers": {"X": "{{SECRETS.K}}"},
        "body": {"k": "{{SECRETS.K}}"}, "secrets": [{"name": "K", "secret": "s", "key": "k"}]});
    let http: Http = serde_json::from_value(http).map_err(|error| error.to_string())?;
    let program = HttpProgram::read(&http, None).map_err(|problems| format!("{problems:?}"))?;
    let secrets = BTreeMap::from([("K".to_owned(), VALUE.to_owned())]);
    let request = program.render(&json!({}), &secrets).map_err(|error| error.message)?;
    let is_shown =
        format!("{request:?} {program:?}").contains(VALUE) || !request.secret_texts.contains(VALUE);
    let fields: Vec<(&String, &Value)> = case.expected.as_object().into_iter().flatten().collect();
    let mut value = json!({});
    for (name, expected) in fields {
        let hides = ["mask", "redact", "hidden", "absent"].iter().any(|word| name.contains(word));
        if expected.is_boolean() {
            value[name] = json!(hides != is_shown);
        }
    }
    if value == json!({}) {
        return Err("the expectation names nothing that the product decides here".to_owned());
    }
    let is_same = value.as_object().into_iter().flatten().all(|(name, value)| case.expected[name] == *value);
    Ok(Answer { is_same, ..Answer::exact(case, value) })
}

/// Compares the fields that say that nothing was sent, succeeded or cost. Only a run that succeeded counts for anybody.
fn compare(case: &Case, is_sent: bool, message: &str) -> Answer {
    const NAMES: [&str; 10] = [
        "upstream_called",
        "success",
        "ok",
        "sent",
        "allowed",
        "key_sent",
        "secret_sent",
        "leaked",
        "sees_secret",
        "system_key_sent",
    ];
    let mut value = json!({"message": message, "charged": u8::from(is_sent)});
    for name in NAMES {
        value[name] = json!(is_sent);
    }
    let mut names = NAMES.to_vec();
    names.push("charged");
    let has_some = names.iter().any(|name| case.expected.get(name).is_some());
    let answer = Answer::by_fields(case, value, &names);
    let is_error = case.expected["status"].as_u64().is_none_or(|status| (status >= 400) != is_sent);
    let has_some = has_some || case.expected.get("status").is_some();
    let difference =
        (!has_some).then(|| "the expectation names nothing that the product decides here".to_owned());
    Answer { is_same: answer.is_same && is_error && has_some, difference, ..answer }
}

#[cfg(test)]
mod tests {
    use crate::{judge::Judgement, registry::replay};

    use super::*;

    fn check(kind: &str, expected: &Value, result: &str) {
        let case = json!({"id": "i", "kind": kind, "input": {}, "expected": expected});
        let case: Case = serde_json::from_value(case).unwrap();
        let judgement = match replay(&Case { set: "uniskill".into(), ..case }) {
            Judgement::Passed => "passed".to_owned(),
            Judgement::Failed { got } => format!("failed {got}"),
            Judgement::Skipped { why } => why,
        };
        assert!(judgement.starts_with(result), "{kind} {expected}: {judgement}");
    }

    #[test]
    fn a_secret_stays_with_those_whom_its_owner_names() {
        for kind in ["market_system_key", "market_reads_caller_secret"] {
            check(kind, &json!({"upstream_called": false}), "passed");
            check(kind, &json!({"sent": false, "status": 403}), "passed");
            check(kind, &json!({"upstream_called": true}), "failed");
            check(kind, &json!({"status": 200}), "failed");
            check(kind, &json!({"other": 1}), "the expectation names nothing");
        }
    }

    #[test]
    fn what_is_missing_is_not_sent_and_not_charged() {
        for kind in ["missing_secret_charge", "missing_endpoint_charge"] {
            check(kind, &json!({"charged": 0, "success": false}), "passed");
            check(kind, &json!({"charged": 5}), "failed");
        }
    }

    #[test]
    fn a_log_line_has_no_secret() {
        check("secret_exposure", &json!({"secret_in_log": false}), "passed");
        check("secret_exposure", &json!({"masked": true}), "passed");
        check("secret_exposure", &json!({"secret_in_log": true}), "failed");
        check("secret_exposure", &json!({}), "the expectation names nothing");
    }
}

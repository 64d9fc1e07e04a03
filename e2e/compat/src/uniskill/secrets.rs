//! Secrets of others, missing Secrets, and where a Secret shows.
//!
//! The reference has a pool of keys for each user and platform. Here a Secret is its owner's, who names skills and hosts.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skillet_api::http::Http;
use skillet_core::http::{HOSTS_ANNOTATION, HttpProgram, SKILLS_ANNOTATION, check_grant};

use super::manifest::to_http;
use crate::{case::Case, judge::Answer};

/// Balance of the reference's callers whose case names none.
const BALANCE: f64 = 100.0;
/// The reason why cases of stored ciphertext are not replayed.
const NOT_ENCRYPTED: &str = "Kubernetes encrypts Secrets at rest; a value is used as it is written, also one of three parts between dots";

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

/// The skill names the Secret of each value: its own, or the one that all skills of its namespace may use.
pub(super) fn merge(case: &Case) -> Result<Answer, String> {
    let (own, of_all) = (&case.input["skill_secrets"], &case.input["user_secrets"]);
    if own.is_string() || of_all.is_string() {
        return Err(NOT_ENCRYPTED.to_owned());
    }
    let secret = if own["K"].is_string() { "of-skill" } else { "of-all" };
    let http = json!({"url": "https://up.example/{{SECRETS.K}}", "secrets": [{"name": "K", "secret": secret, "key": "K"}]});
    let http: Http = serde_json::from_value(http).map_err(|error| error.to_string())?;
    let program = HttpProgram::read(&http, None).map_err(|problems| format!("{problems:?}"))?;
    let stored = BTreeMap::from([("of-skill", own), ("of-all", of_all)]);
    let mut values = BTreeMap::new();
    for of in program.secrets() {
        let value = stored.get(of.secret.as_str()).and_then(|secret| secret[&of.key].as_str());
        values.extend(value.map(|value| (of.name.clone(), value.to_owned())));
    }
    match program.render(&json!({}), &values) {
        Ok(sent) => {
            let is_charged = case.expected["charged"].as_f64().is_none_or(|charged| charged > 0.0);
            let value = json!({"url": sent.request.url, "status": 200});
            let answer = Answer::by_fields(case, value, &["url", "status"]);
            Ok(Answer { is_same: answer.is_same && is_charged, ..answer })
        }
        Err(error) => {
            let difference = Some("a missing Secret refuses the run, which costs nobody anything".to_owned());
            Ok(Answer { difference, ..compare(case, false, &error.message) })
        }
    }
}

/// Secrets are the cluster's to encrypt.
pub(super) fn decrypt(_case: &Case) -> Result<Answer, String> {
    Err(NOT_ENCRYPTED.to_owned())
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
    let charged = u8::from(is_sent);
    let mut value =
        json!({"message": message, "charged": charged, "credits_charged": charged, "ledger": charged});
    // Whoever is charged nothing keeps the balance.
    let balance = case.input["credits"].as_f64().unwrap_or(BALANCE);
    value["balance_after"] = case.expected["balance_after"].clone();
    if !is_sent && case.expected["balance_after"].as_f64() != Some(balance) {
        value["balance_after"] = json!(balance);
    }
    for name in NAMES {
        value[name] = json!(is_sent);
    }
    let mut names = NAMES.to_vec();
    names.extend(["charged", "ledger"]);
    if case.expected["credits_charged"].is_number() {
        names.push("credits_charged");
    }
    if case.expected.get("balance_after").is_some() {
        names.push("balance_after");
    }
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
    use super::*;
    use crate::registry::judged;

    fn check(kind: &str, expected: &Value, result: &str) {
        check_input(kind, &json!({}), expected, result);
    }

    fn check_input(kind: &str, input: &Value, expected: &Value, result: &str) {
        let judged = judged("uniskill", json!({"kind": kind, "input": input, "expected": expected}));
        assert!(judged.starts_with(result), "{kind} {input} {expected}: {judged}");
    }

    #[test]
    fn a_skills_own_secret_wins_over_one_for_all() {
        let both = json!({"user_secrets": {"K": "all"}, "skill_secrets": {"K": "own"}});
        check_input(
            "merge",
            &both,
            &json!({"status": 200, "url": "https://up.example/own", "charged": 5}),
            "passed",
        );
        check_input("merge", &both, &json!({"url": "https://up.example/all"}), "failed");
        check_input("merge", &both, &json!({"url": "https://up.example/own", "charged": 0}), "failed");
        let all = json!({"user_secrets": {"K": "a.b.c"}, "skill_secrets": {"L": "x"}});
        check_input("merge", &all, &json!({"url": "https://up.example/a.b.c"}), "passed");
        let none = json!({"user_secrets": {}, "skill_secrets": null});
        check_input("merge", &none, &json!({"success": false, "charged": 0}), "passed");
        check_input("merge", &none, &json!({"status": 200, "charged": 5}), "a missing Secret");
        let encrypted = json!({"user_secrets": "encrypted", "skill_secrets": null});
        check_input("merge", &encrypted, &json!({"url": "https://up.example/opened"}), "Kubernetes encrypts");
        check("decrypt", &json!({"ok": false}), "Kubernetes encrypts");
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
            check(kind, &json!({"balance_after": 100, "ledger": 0}), "passed");
            check(kind, &json!({"balance_after": 95}), "failed");
            check(kind, &json!({"status": 200, "credits_charged": null}), "failed");
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

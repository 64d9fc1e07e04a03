//! Secrets of others, missing Secrets, and where a Secret shows.
//!
//! The reference has a pool of keys for each user and platform. Here a Secret is its owner's, who names skills and hosts.

use std::collections::BTreeMap;

use serde_json::json;
use skillet_api::http::Http;
use skillet_core::http::{HttpProgram, RenderedRequest, check_grant};
use skillet_protocol::Masker;

use super::{manifest::to_http, render::secrets};
use crate::{case::Case, judge::Answer};

/// Balance of the reference's callers whose case names none.
const BALANCE: f64 = 100.0;
/// The reason why cases of stored ciphertext are not replayed.
const NOT_ENCRYPTED: &str = "Kubernetes encrypts Secrets at rest; a value is used as it is written, also one of three parts between dots";

/// The request of a skill of somebody else, whose Secrets their owner has given to nobody.
pub(super) fn foreign_secret(case: &Case) -> Result<Answer, String> {
    let program = match program(case)? {
        Ok(program) => program,
        Err(why) => return Ok(compare(case, false, &why)),
    };
    let host = program.host().name;
    for secret in program.secrets() {
        if let Err(refusal) = check_grant(&secret.name, &BTreeMap::new(), case.text("skill"), &host) {
            return Ok(compare(case, false, &refusal.message));
        }
    }
    Ok(send(case, &program))
}

/// The request of a manifest whose Secrets are those that the case has, or which has no URL.
pub(super) fn missing(case: &Case) -> Result<Answer, String> {
    Ok(match program(case)? {
        Ok(program) => send(case, &program),
        Err(why) => compare(case, false, &why),
    })
}

/// Returns the program of the manifest, or the reason why it is refused when the skill is applied.
fn program(case: &Case) -> Result<Result<HttpProgram, String>, String> {
    let implementation = &case.input["implementation"];
    if !implementation.is_object() {
        return Err("the input has no implementation, so that there is no request to judge".to_owned());
    }
    let read = |http: Http| {
        HttpProgram::read(&http, None).map_err(|problems| {
            let words: Vec<String> =
                problems.into_iter().map(|it| format!("{}: {}", it.field, it.message)).collect();
            words.join("; ")
        })
    };
    Ok(to_http(implementation).and_then(read))
}

fn send(case: &Case, program: &HttpProgram) -> Answer {
    let params = case.input.get("params").cloned().unwrap_or_else(|| json!({}));
    match program.render(&params, &secrets(case)) {
        Ok(_request) => compare(case, true, "the request was rendered"),
        Err(error) => compare(case, false, &error.message),
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

/// A host that sends the whole request back shows no Secret, nor does a log line that has the request.
pub(super) fn exposure(case: &Case) -> Result<Answer, String> {
    let program = program(case)?.map_err(|why| format!("the skill is refused when it is applied: {why}"))?;
    let params = case.input.get("params").cloned().unwrap_or_else(|| json!({}));
    let sent = program.render(&params, &secrets(case)).map_err(|error| error.message)?;
    if sent.used_secrets.is_empty() {
        return Err("the request has no Secret that could show".to_owned());
    }
    let RenderedRequest { url, headers, body, .. } = &sent.request;
    let mut masker = Masker::new(sent.secret_texts.iter().map(String::as_str));
    let mut echo =
        masker.push(format!("{url} {headers:?} {}", body.as_deref().unwrap_or_default()).as_bytes());
    echo.extend(masker.finish());
    let shown = format!("{} {sent:?} {program:?}", String::from_utf8_lossy(&echo));
    let values = secrets(case);
    let is_shown = sent.used_secrets.iter().any(|name| shown.contains(&values[name]));
    let value = json!({"leaked": is_shown, "secret_in_log": is_shown, "masked": !is_shown});
    let names = ["leaked", "secret_in_log", "masked"];
    if !names.iter().any(|name| case.expected[name].is_boolean()) {
        return Err("the expectation names nothing that the product decides here".to_owned());
    }
    Ok(Answer::by_fields(case, value, &names))
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
    use serde_json::Value;

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

    const NO_REQUEST: &str = "the input has no implementation";

    /// A manifest whose URL has this path.
    fn at(path: &str) -> Value {
        json!({"implementation": {"endpoint": format!("https://up.example/{path}"), "method": "GET"}})
    }

    #[test]
    fn a_secret_stays_with_those_whom_its_owner_names() {
        let mut with_secret = at("{{SECRETS.K}}");
        with_secret["secrets"] = json!({"K": "value"});
        for kind in ["market_system_key", "market_reads_caller_secret"] {
            check_input(kind, &with_secret, &json!({"upstream_called": false}), "passed");
            check_input(kind, &with_secret, &json!({"sent": false, "status": 403}), "passed");
            check_input(kind, &with_secret, &json!({"upstream_called": true}), "failed");
            check_input(kind, &with_secret, &json!({"status": 200}), "failed");
            check_input(kind, &with_secret, &json!({"other": 1}), "the expectation names nothing");
            check_input(kind, &at("plain"), &json!({"upstream_called": true}), "passed");
            check_input(kind, &at("plain"), &json!({"upstream_called": false}), "failed");
            check(kind, &json!({"upstream_called": false}), NO_REQUEST);
        }
    }

    #[test]
    fn what_is_missing_is_not_sent_and_not_charged() {
        let mut filled = at("{{SECRETS.K}}");
        filled["secrets"] = json!({"K": "value"});
        let without_url = json!({"implementation": {"method": "GET"}});
        for (kind, input) in
            [("missing_secret_charge", at("{{SECRETS.K}}")), ("missing_endpoint_charge", without_url)]
        {
            check_input(kind, &input, &json!({"charged": 0, "success": false}), "passed");
            check_input(kind, &input, &json!({"charged": 5}), "failed");
            check_input(kind, &input, &json!({"balance_after": 100, "ledger": 0}), "passed");
            check_input(kind, &input, &json!({"balance_after": 95}), "failed");
            check_input(kind, &input, &json!({"status": 200, "credits_charged": null}), "failed");
            check_input(kind, &filled, &json!({"success": false}), "failed");
            check_input(kind, &filled, &json!({"success": true}), "passed");
            check(kind, &json!({"charged": 0}), NO_REQUEST);
        }
    }

    #[test]
    fn a_log_line_has_no_secret() {
        let mut input = at("?k={{SECRETS.K}}");
        input["secrets"] = json!({"K": "s3cr3t/value"});
        check_input("secret_exposure", &input, &json!({"secret_in_log": false}), "passed");
        check_input("secret_exposure", &input, &json!({"masked": true}), "passed");
        check_input("secret_exposure", &input, &json!({"secret_in_log": true}), "failed");
        check_input("secret_exposure", &input, &json!({}), "the expectation names nothing");
        check_input("secret_exposure", &at("plain"), &json!({"masked": true}), "the request has no Secret");
        check("secret_exposure", &json!({"masked": true}), NO_REQUEST);
    }
}

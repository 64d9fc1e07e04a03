//! `render`: the request of a manifest and parameters.
//!
//! Types are kept and nested bodies rendered here, a missing Secret is never replaced by a text, and what is no placeholder is
//! refused when the skill is applied: docs/reference/skill.md.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skillet_core::http::{HttpProgram, RenderError, SkillRequest};

use super::manifest::{body, to_http};
use crate::{case::Case, judge::Answer};

// Every replay has this type.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn render(case: &Case) -> Result<Answer, String> {
    let implementation = &case.input["implementation"];
    let http = match to_http(implementation) {
        Ok(http) => http,
        Err(why) => return Ok(compare(case, refusal(&why))),
    };
    // The reference has a scheme and a host by placeholder; these are refused like any other mistake.
    let program = match HttpProgram::read(&http, None) {
        Ok(program) => program,
        Err(problems) => {
            let words: Vec<String> =
                problems.into_iter().map(|it| format!("{}: {}", it.field, it.message)).collect();
            let why = words.join("; ");
            let answer = compare(case, refusal(&why));
            return Ok(Answer {
                difference: Some(format!("refused when the skill is applied: {why}")),
                ..answer
            });
        }
    };
    let params = case.input.get("params").cloned().unwrap_or_else(|| json!({}));
    match program.render(&params, &secrets(case)) {
        Ok(request) => {
            let value = sent(&request);
            let mut with_their_body = value.clone();
            with_their_body["body"] = case.expected["body"].clone();
            let is_body_alone = compare(case, with_their_body).is_same;
            let difference = if is_body_alone { kept_types(case, &value["body"]) } else { None };
            Ok(Answer { difference, ..compare(case, value) })
        }
        Err(error) => Ok(not_sent(case, &error)),
    }
}

/// Returns the caller's values, and those of the platform where a skill of the platform may have them.
pub(super) fn secrets(case: &Case) -> BTreeMap<String, String> {
    let is_official = case.input["official"] == true;
    let platform = ["system_keys", "platform_keys", "system", "env"].map(|name| &case.input[name]);
    let lists = platform.into_iter().filter(|_found| is_official).chain([&case.input["secrets"]]);
    let pairs = lists.filter_map(Value::as_object).flatten();
    pairs.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

fn refusal(why: &str) -> Value {
    json!({"upstream_called": false, "success": false, "why": why})
}

fn sent(request: &SkillRequest) -> Value {
    let request = &request.request;
    let body = request.body.as_ref().map(|body| serde_json::from_str(body).unwrap_or_else(|_| json!(body)));
    let headers: serde_json::Map<String, Value> =
        request.headers.iter().map(|(name, value)| (name.to_lowercase(), json!(value))).collect();
    json!({"upstream_called": true, "method": request.method.as_str(), "url": request.url, "headers": headers, "body": body})
}

fn not_sent(case: &Case, error: &RenderError) -> Answer {
    let mut value = refusal(&error.message);
    value["missing_secrets"] = json!(error.missing_secrets);
    let key = case.input["implementation"]["api_key"].as_str().unwrap_or_default();
    if error.missing_secrets.iter().any(|name| key == format!("{{{{{name}}}}}")) {
        value["error_class"] = json!("own key required");
    }
    let is_official = case.input["official"] == true;
    let difference = if error.missing_secrets.is_empty() {
        Some(format!("a value that no request can hold is refused: {}", error.message))
    } else if case.expected["body"].to_string().contains("[MISSING_USER_SECRET_") {
        Some("a missing Secret refuses the run, in whatever part of the request it is missing".to_owned())
    } else if is_official && value["error_class"].is_string() {
        Some("a skill has no keys but those that a Secret of its namespace gives it".to_owned())
    } else {
        None
    };
    Answer { difference, ..compare(case, value) }
}

/// Compares what the case names. Headers have no case, and the order of names has no meaning.
fn compare(case: &Case, mut value: Value) -> Answer {
    let sorted = |list: &Value| {
        let mut words: Vec<String> = list.as_array().into_iter().flatten().map(Value::to_string).collect();
        words.sort();
        words
    };
    let expected = &case.expected;
    let has_same_secrets = expected.get("missing_secrets").is_none()
        || sorted(&expected["missing_secrets"]) == sorted(&value["missing_secrets"]);
    let mut asked = expected["headers"].as_object().into_iter().flatten();
    let has_same_headers = asked.all(|(name, text)| value["headers"][name.to_lowercase()] == *text);
    if value["upstream_called"] == true {
        value["success"] = json!(true);
    }
    let fields = ["upstream_called", "success", "method", "url", "body", "error_class"];
    let answer = Answer::by_fields(case, value, &fields);
    Answer { is_same: answer.is_same && has_same_secrets && has_same_headers, ..answer }
}

/// Returns the difference if a body differs only because a value keeps its type, or because a nested text is rendered.
fn kept_types(case: &Case, own: &Value) -> Option<String> {
    let template = body(&case.input["implementation"])?.as_object()?;
    let (expected, own) = (case.expected["body"].as_object()?, own.as_object()?);
    if expected == own {
        return None;
    }
    let is_explained = |(name, text): (&String, &Value)| {
        let (theirs, ours) = (expected.get(name), own.get(name));
        let is_text_of = |text: &str| ours.is_some_and(|ours| !ours.is_string() && as_text(ours) == text);
        theirs == ours
            || theirs.and_then(Value::as_str).is_some_and(is_text_of)
            || (!text.is_string() && theirs == Some(text) && text.to_string().contains("{{"))
    };
    let has_same_names = expected.keys().eq(own.keys());
    (has_same_names && template.iter().all(is_explained))
        .then(|| "values keep their types, and nested texts are rendered".to_owned())
}

/// Text of a value in JavaScript.
fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(as_text).collect::<Vec<_>>().join(","),
        Value::Object(_) => "[object Object]".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::judged;

    // Cases are written once, where they are used.
    #[allow(clippy::needless_pass_by_value)]
    fn check(input: Value, expected: Value, result: &str) {
        let judged = judged("uniskill", json!({"kind": "render", "input": input, "expected": expected}));
        assert!(judged.starts_with(result), "{judged}");
    }

    #[test]
    fn a_request_is_compared_in_every_part() {
        let input = json!({"implementation": {"endpoint": "https://up.example/{{a}}", "method": "post",
            "headers": {"authorization": "x"}, "api_key": "{{SECRETS.K|d}}", "body": {"b": "{{b}}"}},
            "params": {"a": "x y", "b": "c"}, "secrets": {"K": "s"}});
        let good = json!({"upstream_called": true, "method": "POST", "url": "https://up.example/x%20y",
            "headers": {"Authorization": "Bearer s"}, "body": {"b": "c"}});
        check(input.clone(), good.clone(), "passed");
        for (field, other) in [
            ("upstream_called", json!(false)),
            ("method", json!("GET")),
            ("url", json!("https://up.example/x y")),
            ("headers", json!({"Authorization": "x"})),
            ("body", json!({"b": "d"})),
            ("body", json!(null)),
        ] {
            let mut bad = good.clone();
            bad[field] = other;
            check(input.clone(), bad, "failed");
        }
    }

    #[test]
    fn a_body_with_types_is_an_intended_difference_and_another_body_fails() {
        let input = json!({"implementation": {"url": "https://up.example/", "body": {"n": "{{n}}", "o": {"p": "{{n}}"}}},
            "params": {"n": 5}});
        check(input.clone(), json!({"body": {"n": 5, "o": {"p": 5}}}), "passed");
        check(input.clone(), json!({"body": {"n": "5", "o": {"p": "{{n}}"}}}), "values keep their types");
        check(input.clone(), json!({"body": {"n": "6", "o": {"p": "{{n}}"}}}), "failed");
        check(input.clone(), json!({"body": {"n": "5", "o": {"p": "6"}}}), "failed");
        check(input, json!({"url": "https://down.example/", "body": {"n": "5", "o": {"p": 5}}}), "failed");
    }

    #[test]
    fn inputs_are_appended_by_the_references_rule() {
        let input =
            |implementation: Value| json!({"implementation": implementation, "params": {"a": "x y", "b": 1}});
        let get = json!({"url": "https://up.example/?z=1", "method": "GET"});
        check(input(get), json!({"url": "https://up.example/?z=1&a=x+y&b=1", "body": null}), "passed");
        let body = json!({"url": "https://up.example/", "method": "GET", "body": {"q": "{{a}}"}});
        check(input(body), json!({"url": "https://up.example/"}), "passed");
        let payload = json!({"url": "https://up.example/", "method": "GET", "payload": {"q": "{{a}}"}});
        check(input(payload), json!({"url": "https://up.example/?a=x+y&b=1"}), "passed");
        let post = json!({"url": "https://up.example/", "body": "text"});
        check(input(post), json!({"body": {"a": "x y", "b": 1}}), "passed");
    }

    #[test]
    fn what_is_not_sent_is_compared_too() {
        let secret = json!({"implementation": {"url": "https://up.example/{{SECRETS.A}}", "payload": {"k": "{{SECRETS.B}}"}}});
        check(secret.clone(), json!({"upstream_called": false, "missing_secrets": ["B", "A"]}), "passed");
        check(secret.clone(), json!({"upstream_called": false, "missing_secrets": ["A"]}), "failed");
        check(
            secret,
            json!({"upstream_called": true, "body": {"k": "[MISSING_USER_SECRET_B]"}}),
            "a missing Secret",
        );
        check(json!({"implementation": {}}), json!({"upstream_called": false}), "passed");
        let spaces = json!({"implementation": {"url": "https://up.example/{{ a }}"}});
        check(spaces, json!({"upstream_called": true}), "refused when the skill is applied");
    }
}

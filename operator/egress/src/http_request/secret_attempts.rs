//! Attempts to get the value of a Secret out of an HTTP skill: each is rendered, sent and read by the product's own code, and the
//! value stands in nothing that is shown or kept, and reaches no host but the one that its owner named.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skillet_core::http::{HttpProgram, HttpResponse as SkillResponse, check_grant};
use skillet_protocol::Masker;

use super::*;
use crate::testing::{Requests, TestBroker, http_host, policy, rule};

const SECRET: &str = "s3cr+t/Val\"ue&9";
const PERCENT: &str = "s3cr%2Bt%2FVal%22ue%269";
const JSON: &str = "s3cr+t/Val\\\"ue&9";

/// One attempt: a part of the skill, its input, and what the host responds after `HTTP/1.1 `.
type Attempt = (&'static str, Value, Value, String);

fn reply(status: &str, headers: &str, body: &str) -> String {
    format!(
        "{status}\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn attempts() -> Vec<Attempt> {
    [outputs(), messages(), redirects(), templates()].concat()
}

fn outputs() -> Vec<Attempt> {
    let ok = |body: &str| reply("200 OK", "", body);
    let header = json!({"headers": {"X-Key": "{{SECRETS.K}}"}});
    let query = json!({"query": {"k": "{{SECRETS.K}}"}});
    let body = json!({"method": "POST", "body": {"k": "{{SECRETS.K}}"}});
    let none = json!({});
    vec![
        ("an output", header.clone(), none.clone(), ok(&format!(r#"{{"a": "{JSON}"}}"#))),
        ("the name of a field", header.clone(), none.clone(), ok(&format!(r#"{{"{JSON}": 1}}"#))),
        ("a nested list", header.clone(), none.clone(), ok(&format!(r#"[[["x{JSON}y"]]]"#))),
        (
            "an output with the query",
            query.clone(),
            none.clone(),
            ok(&format!(r#"{{"url": "/?k={PERCENT}"}}"#)),
        ),
        (
            "an output with the body",
            body.clone(),
            none.clone(),
            ok(&json!({"b": format!("{{\"k\":\"{JSON}\"}}")}).to_string()),
        ),
        ("a percent-encoded output", header.clone(), none.clone(), ok(&format!(r#"["{PERCENT}"]"#))),
    ]
}

fn messages() -> Vec<Attempt> {
    let ok = |body: &str| reply("200 OK", "", body);
    let bad = |status: &str, body: &str| reply(status, "", body);
    let header = json!({"headers": {"X-Key": "{{SECRETS.K}}"}});
    let query = json!({"query": {"k": "{{SECRETS.K}}"}});
    let body = json!({"method": "POST", "body": {"k": "{{SECRETS.K}}"}});
    let none = json!({});
    vec![
        (
            "a message of 400",
            header.clone(),
            none.clone(),
            bad("400 Bad", &format!(r#"{{"message": "{JSON}"}}"#)),
        ),
        ("a message of 401", header.clone(), none.clone(), bad("401 No", &format!("no key {SECRET}"))),
        ("a message of 404", query.clone(), none.clone(), bad("404 No", &format!("no /?k={PERCENT}"))),
        ("a message of 500", body.clone(), none.clone(), bad("500 No", &format!("at {JSON}"))),
        (
            "the end of a message that is cut",
            header.clone(),
            none.clone(),
            bad("400 Bad", &format!("{}{SECRET}", "x".repeat(292))),
        ),
        ("a body that is no JSON", header.clone(), none.clone(), ok(&format!("<b>{SECRET}</b>"))),
        ("the phrase of the status", header.clone(), none.clone(), bad(&format!("400 {SECRET}"), "")),
        (
            "a header of the response",
            header.clone(),
            none.clone(),
            reply("200 OK", &format!("x-echo: {SECRET}\r\n"), "{}"),
        ),
        (
            "a content type",
            header.clone(),
            none.clone(),
            format!("200 OK\r\ncontent-type: text/{PERCENT}\r\ncontent-length: 1\r\n\r\nx"),
        ),
        (
            "Retry-After",
            header.clone(),
            none.clone(),
            reply("429 Slow", &format!("retry-after: {SECRET}\r\n"), ""),
        ),
    ]
}

fn redirects() -> Vec<Attempt> {
    let header = json!({"headers": {"X-Key": "{{SECRETS.K}}"}});
    let query = json!({"query": {"k": "{{SECRETS.K}}"}});
    let none = json!({});
    let see = |to: &str| reply("302 Found", &format!("location: {to}\r\n"), "");
    vec![
        ("a host by redirect", header.clone(), none.clone(), see("http://other.example/")),
        (
            "a redirect with the value as path",
            query.clone(),
            none.clone(),
            see(&format!("http://other.example/{PERCENT}")),
        ),
        (
            "a redirect with the value as host",
            header.clone(),
            none.clone(),
            see("http://s3cr.other.example/"),
        ),
        (
            "a redirect with the value as user",
            header.clone(),
            none.clone(),
            see(&format!("http://{PERCENT}@other.example/")),
        ),
        (
            "a redirect to a private address",
            header.clone(),
            none.clone(),
            see(&format!("http://10.0.0.1/{PERCENT}")),
        ),
    ]
}

fn templates() -> Vec<Attempt> {
    let ok = |body: &str| reply("200 OK", "", body);
    let header = json!({"headers": {"X-Key": "{{SECRETS.K}}"}});
    let input = json!({"headers": {"X-Key": "{{SECRETS.K}}"}, "query": {"q": "{{q}}"}});
    let none = json!({});
    vec![
        ("another template", input.clone(), json!({"q": "{{SECRETS.K}}"}), ok(r#"["{{SECRETS.K}}"]"#)),
        ("a template in halves", input, json!({"q": "{{SECRETS{{q}}.K}}"}), ok("{}")),
        ("a template in the response", header.clone(), none.clone(), ok(r#"{"a": "{{SECRETS.K}}"}"#)),
        ("half of a response", header, none, format!("200 OK\r\ncontent-length: 999\r\n\r\n{SECRET}")),
    ]
}

/// Everything of a run that somebody may see, and the requests at the two hosts.
async fn run((_, part, input, response): &Attempt) -> (String, Requests, Requests) {
    let broker = TestBroker::start().await;
    let (own, seen) = http_host(format!("HTTP/1.1 {response}")).await;
    let (other, stolen) = http_host("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
    broker.host("own.example", 80, own);
    for name in ["other.example", "s3cr.other.example"] {
        broker.answers.set(name, &[&["93.184.216.35"]]);
    }
    broker.loopback.put("93.184.216.35", 80, other);
    let mut http = json!({"url": "http://own.example/", "method": "GET", "maxRedirects": 3,
        "secrets": [{"name": "K", "secret": "keys", "key": "k"}]});
    http.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    let network = serde_json::from_value(json!({"hosts": [{"name": "own.example", "ports": [80]}]})).unwrap();
    let program = HttpProgram::read(&serde_json::from_value(http).unwrap(), Some(&network)).unwrap();
    let sent = program.render(input, &BTreeMap::from([("K".to_owned(), SECRET.to_owned())])).unwrap();
    let request = EgressRequest {
        // The skill may reach the other host, and the Secret may not.
        policy: policy(&[("own.example", &[80]), ("*.example", &[80]), ("other.example", &[80])]),
        method: sent.request.method.as_str().to_owned(),
        url: sent.request.url.clone(),
        headers: sent.request.headers.clone(),
        body: sent.request.body.clone().map(String::into_bytes),
        timeout_ms: 10_000,
        response_bytes: 1 << 20,
        redirects: 3,
        redirect_hosts: vec![rule("own.example", &[80])],
        ..EgressRequest::default()
    };
    let outcome = broker.client().request(request).await.unwrap();
    let masker = Masker::new(sent.secret_texts.iter().map(String::as_str));
    let shown = match &outcome.result {
        EgressResult::Response(response) => read(&program, response, &masker),
        other => masked(&format!("{other:?}"), &masker),
    };
    let all = format!("{shown} {:?} {} {sent:?} {program:?}", outcome.connections, broker.metrics());
    (all, seen, stolen)
}

/// Reads a response as the run of a skill does: an error is worded from the masked body, and texts are masked.
fn read(program: &HttpProgram, response: &HttpResponse, masker: &Masker) -> String {
    let header =
        |name: &str| response.headers.iter().find(|found| found.0 == name).map(|found| found.1.as_str());
    let read = |body: &[u8]| {
        let (status, is_truncated) = (response.status, false);
        let (content_type, location) = (header("content-type"), header("location"));
        program.read_response(&SkillResponse { status, content_type, location, body, is_truncated })
    };
    if let Ok(output) = read(&response.body) {
        return masked_value(&output, masker);
    }
    let body = masked(&String::from_utf8_lossy(&response.body), masker);
    masked(&read(body.as_bytes()).unwrap_err().message, masker)
}

fn masked_value(value: &Value, masker: &Masker) -> String {
    match value {
        Value::String(text) => masked(text, masker),
        Value::Array(items) => items.iter().map(|item| masked_value(item, masker)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| masked(name, masker) + &masked_value(value, masker)).collect()
        }
        other => other.to_string(),
    }
}

fn masked(text: &str, masker: &Masker) -> String {
    let mut masker = masker.clone();
    let mut bytes = masker.push(text.as_bytes());
    bytes.extend(masker.finish());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn no_attempt_shows_the_value_of_a_secret_or_sends_it_to_another_host() {
    let attempts = attempts();
    assert!(attempts.len() >= 20);
    for attempt in &attempts {
        let (shown, seen, stolen) = run(attempt).await;
        let name = attempt.0;
        for form in [SECRET, PERCENT, JSON] {
            assert!(!shown.contains(form), "{name}: {form} stands in {shown}");
        }
        assert_eq!(stolen.all(), Vec::<String>::new(), "{name}");
        // Its own host has it once, where the skill puts it: the input adds none.
        let got = seen.all().concat();
        let places: usize = [SECRET, PERCENT, JSON].iter().map(|form| got.matches(form).count()).sum();
        assert_eq!(places, 1, "{name}: {got}");
    }
}

#[test]
fn a_template_that_could_lead_a_secret_elsewhere_is_refused() {
    for part in [
        json!({"url": "http://{{host}}/{{SECRETS.K}}"}),
        json!({"url": "http://{{SECRETS.K}}@own.example/"}),
        json!({"url": "http://own.example:{{port}}/"}),
        json!({"url": "{{SECRETS.K}}"}),
        json!({"headers": {"{{name}}": "{{SECRETS.K}}"}}),
        json!({"headers": {"{{SECRETS.K}}": "x"}}),
        json!({"headers": {"X": "{{SECRETS.OTHER}}"}}),
    ] {
        let mut http =
            json!({"url": "http://own.example/", "secrets": [{"name": "K", "secret": "keys", "key": "k"}]});
        http.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        let network =
            serde_json::from_value(json!({"hosts": [{"name": "own.example", "ports": [80]}]})).unwrap();
        assert!(HttpProgram::read(&serde_json::from_value(http).unwrap(), Some(&network)).is_err(), "{part}");
    }
}

#[test]
fn a_grant_covers_the_skill_and_the_host_that_its_owner_named_and_no_others() {
    let annotations = [("skillet.dev/skills", "weather"), ("skillet.dev/hosts", "own.example")];
    let annotations = annotations.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    for (skill, host, is_given) in [
        ("weather", "own.example", true),
        ("weather", "other.example", false),
        ("weather", "own.example.evil.dev", false),
        ("weather", "x.own.example", false),
        ("weathers", "own.example", false),
        ("*", "own.example", false),
        ("", "own.example", false),
    ] {
        assert_eq!(check_grant("keys", &annotations, skill, host).is_ok(), is_given, "{skill} {host}");
    }
}

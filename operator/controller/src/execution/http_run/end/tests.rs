//! Ends of requests: each outcome has its reason, secrets are masked, and connections are listed.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::json;
use skillet_api::{SkillPolicySpec, SkillSpec};
use skillet_core::{
    builtin::BuiltinProgram,
    http::{HttpProgram, SkillRequest},
    skill::{Handler, validate_content},
};

use super::*;

fn admitted(http: &str, tool: &str) -> (Arc<HttpProgram>, Admitted) {
    let yaml = format!(
        "{{version: 1.0.0, tool: {{{tool}}}, run: {{http: {{url: 'https://api.example.com/x', {http}}}}}}}"
    );
    let spec: SkillSpec = serde_saphyr::from_str(&yaml).unwrap();
    let content = Arc::new(validate_content(&spec, &SkillPolicySpec::default()).unwrap());
    let Handler::Http(program) = content.handler.clone() else { panic!("not HTTP") };
    let admitted = Admitted {
        skill: "s".into(),
        version: "1.0.0".parse().unwrap(),
        digest: String::new(),
        content,
        args: Vec::new(),
        stdin: "{}".into(),
        variables: BTreeMap::new(),
        timeout: Duration::from_secs(10),
        retries: 0,
    };
    (program, admitted)
}

fn response(status: u16, headers: &[(&str, &str)], body: &str) -> EgressResult {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    EgressResult::Response(Received {
        status,
        headers: headers.iter().map(owned).collect(),
        body: body.into(),
        is_truncated: false,
        url: "https://api.example.com/x".into(),
    })
}

fn end_of(tool: &str, tried: Tried, secrets: &[&str]) -> Conclusion {
    let (program, admitted) = admitted("method: GET", tool);
    let request = program.render(&json!({}), &BTreeMap::new()).unwrap();
    let secret_texts = secrets.iter().map(ToString::to_string).collect();
    let call = Call::of_skill(program, SkillRequest { secret_texts, ..request }, Vec::new());
    match read(&call, tried, &admitted) {
        Next::End(conclusion) => *conclusion,
        Next::Call(next) => panic!("{next:?}"),
    }
}

fn check(result: EgressResult, reason: Reason, message: &str) {
    let ended = end_of("", Tried::Answered(result), &[]);
    let phase = if reason == Reason::TimedOut { Phase::TimedOut } else { Phase::Failed };
    assert_eq!((ended.phase, ended.reason), (phase, Some(reason)));
    let found = ended.message.unwrap();
    assert!(found.contains(message) && !found.contains(" ("), "{found:?} has no {message:?}");
}

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

#[test]
fn a_response_is_the_output() {
    let ended = end_of("", Tried::Answered(response(200, &JSON, r#"{"a": [1]}"#)), &[]);
    assert_eq!((ended.phase, ended.output), (Phase::Succeeded, Some(json!({"a": [1]}))));
}

/// Every outcome without a response, with its reason, and the reference's code for a built-in.
fn failures() -> Vec<(EgressResult, Reason, &'static str)> {
    let failed = |verdict| EgressResult::Failed { verdict, message: "why".into() };
    let away = EgressResult::RedirectRefused { host: None, verdict: None, message: "away".into() };
    let (tls, broken) = (
        EgressResult::TlsFailed { message: "expired".into() },
        EgressResult::Broken { message: "half".into() },
    );
    vec![
        (failed(Verdict::HostNotAllowed), Reason::HostNotAllowed, "why"),
        (failed(Verdict::PortNotAllowed), Reason::PortNotAllowed, "why"),
        (failed(Verdict::AddressNotAllowed), Reason::AddressNotAllowed, "why (URL_GUARD_BLOCKED)"),
        (failed(Verdict::HostMismatch), Reason::HostMismatch, "why (NETWORK_ERROR)"),
        (failed(Verdict::NameNotFound), Reason::NameNotFound, "why (NETWORK_ERROR)"),
        (failed(Verdict::ConnectFailed), Reason::ConnectFailed, "why (NETWORK_ERROR)"),
        (failed(Verdict::ConnectTimedOut), Reason::ConnectTimedOut, "why (TIMEOUT)"),
        (failed(Verdict::EgressLimitReached), Reason::EgressLimitReached, "why"),
        (failed(Verdict::BrokerUnavailable), Reason::BrokerUnavailable, "why"),
        (away, Reason::RedirectNotAllowed, "away (REDIRECT_BLOCKED)"),
        (
            EgressResult::BodyTooLarge { limit: 7 },
            Reason::OutputTooLarge,
            "longer than 7 bytes, which are read at most",
        ),
        (tls, Reason::ConnectFailed, "expired (NETWORK_ERROR)"),
        (broken, Reason::UpstreamFailed, "half (NETWORK_ERROR)"),
        (EgressResult::TimedOut, Reason::TimedOut, "within the limit of 10s (TIMEOUT)"),
        (EgressResult::Invalid { message: "bad".into() }, Reason::InputInvalid, "bad"),
    ]
}

fn without_code(message: &str) -> &str {
    message.split(" (").next().unwrap_or_default()
}

#[test]
fn each_failure_has_its_reason() {
    for (result, reason, message) in failures() {
        check(result, reason, without_code(message));
    }
    check(response(404, &[], ""), Reason::UpstreamNotFound, "api.example.com responded with 404");
    check(response(503, &[], "busy"), Reason::UpstreamFailed, "busy");
    for was_sent in [false, true] {
        let tried = Tried::NoBroker { message: "could not reach the broker b:1".into(), was_sent };
        assert_eq!(end_of("", tried, &[]).reason, Some(Reason::BrokerUnavailable), "a GET changes nothing");
    }
}

fn end_of_builtin(program: &BuiltinProgram, tried: Tried) -> Conclusion {
    let (_program, admitted) = admitted("method: GET", "");
    let call = program.render(&json!({"url": "https://b.dev/"}), None).unwrap();
    match read(&Call::of_builtin(call, None, "team".into()), tried, &admitted) {
        Next::End(conclusion) => *conclusion,
        Next::Call(next) => panic!("{next:?}"),
    }
}

#[test]
fn each_failure_of_a_built_in_has_its_reason_and_the_code_of_the_reference() {
    for program in [BuiltinProgram::HttpRequest, BuiltinProgram::WebFetch] {
        for (result, reason, message) in failures() {
            let ended = end_of_builtin(&program, Tried::Answered(result));
            let phase = if reason == Reason::TimedOut { Phase::TimedOut } else { Phase::Failed };
            assert_eq!((ended.phase, ended.reason), (phase, Some(reason)));
            let found = ended.message.unwrap();
            assert!(found.ends_with(message), "{found:?} does not end with {message:?}");
        }
    }
    let busy = end_of_builtin(&BuiltinProgram::WebFetch, Tried::Answered(response(503, &[], "busy")));
    assert_eq!(busy.reason, Some(Reason::UpstreamFailed));
    assert_eq!(
        busy.message.unwrap(),
        "https://b.dev/ responded with 503",
        "a response is no failure of the network"
    );
}

#[test]
fn the_limit_of_the_run_is_worded_by_its_program() {
    let (program, _admitted) = admitted("method: GET", "");
    let limit = Duration::from_secs(10);
    let of = |program| timed_out(&program, limit).message.unwrap();
    let message = "there was no whole response within the limit of 10s";
    assert_eq!(of(RequestProgram::Http(program)), message);
    assert_eq!(of(RequestProgram::Builtin(BuiltinProgram::WebFetch)), format!("{message} (TIMEOUT)"));
}

#[test]
fn an_output_must_satisfy_the_schema() {
    let tool = "outputSchema: {type: object, required: [b]}";
    let ended = end_of(tool, Tried::Answered(response(200, &JSON, r#"{"a": 1}"#)), &[]);
    assert_eq!(ended.reason, Some(Reason::OutputInvalid));
    let ended = end_of(tool, Tried::Answered(response(200, &JSON, r#"{"b": 1}"#)), &[]);
    assert_eq!(ended.reason, Some(Reason::Succeeded));
}

#[test]
fn a_secret_that_the_host_sends_back_is_masked_everywhere() {
    let secret = "hunter2hunter2";
    let body = format!(r#"{{"echo": ["{secret}"], "{secret}": 1}}"#);
    let ended = end_of("", Tried::Answered(response(200, &JSON, &body)), &[secret]);
    assert_eq!(ended.output, Some(json!({"echo": ["***"], "***": 1})));
    for result in [
        response(400, &JSON, &body),
        response(500, &[], secret),
        response(302, &[("location", &format!("https://x.dev/?k={secret}"))], ""),
        EgressResult::Broken { message: secret.into() },
    ] {
        let message = end_of("", Tried::Answered(result), &[secret]).message.unwrap();
        assert!(!message.contains(secret), "{message}");
    }
}

#[test]
fn only_passing_failures_are_tried_again() {
    let is_retried = |result| Tried::Answered(result).outcome().is_some();
    assert!(no_broker(true).outcome().is_some());
    assert!(is_retried(EgressResult::Broken { message: String::new() }));
    let failed = |verdict| EgressResult::Failed { verdict, message: String::new() };
    assert!(is_retried(failed(Verdict::ConnectFailed)) && is_retried(failed(Verdict::ConnectTimedOut)));
    assert!(!is_retried(failed(Verdict::AddressNotAllowed)) && !is_retried(EgressResult::TimedOut));
    let busy = Tried::Answered(response(503, &[("Retry-After", "7")], ""));
    assert_eq!(busy.outcome(), Some(TryOutcome::Response { status: 503, retry_after: Some("7") }));
}

fn no_broker(was_sent: bool) -> Tried {
    Tried::NoBroker { message: "no broker".into(), was_sent }
}

#[test]
fn a_post_whose_answer_is_lost_is_not_sent_again_and_says_so() {
    let (program, admitted) = admitted("method: POST", "");
    let request = program.render(&json!({}), &BTreeMap::new()).unwrap();
    let call = Call::of_skill(program, request, Vec::new());
    let times = (Duration::ZERO, Duration::from_secs(10));
    assert!(call.next_try(&no_broker(false), 1, times).is_some(), "the broker never got it");
    assert_eq!(call.next_try(&no_broker(true), 1, times), None);
    let Next::End(ended) = read(&call, no_broker(true), &admitted) else { panic!("no end") };
    assert_eq!(ended.reason, Some(Reason::ResultLost));
    assert!(ended.message.unwrap().contains("look there if it took effect"));
    for unknown in [EgressResult::TimedOut, EgressResult::Broken { message: "cut".into() }] {
        let Next::End(ended) = read(&call, Tried::Answered(unknown), &admitted) else { panic!("no end") };
        assert!(ended.message.unwrap().contains("; the host may have got the POST request"));
    }
}

#[test]
fn no_part_of_a_secret_is_left_where_a_message_is_cut() {
    let secret = "hunter2hunter2hunter2";
    for length in 280..320 {
        let body = format!("{}{secret}", "x".repeat(length));
        let ended = end_of("", Tried::Answered(response(400, &[], &body)), &[secret]);
        let message = ended.message.unwrap();
        assert!(!message.contains("hunt"), "{message}");
    }
}

#[test]
fn a_redirect_goes_only_where_each_secret_may_go() {
    let rule = |name: &str| HostRule { name: name.into(), ports: vec![443] };
    let hosts = [rule("api.a.dev"), rule("*.b.dev"), rule("c.dev")];
    let names = |granted: &[&[String]]| -> Vec<String> {
        redirect_hosts(&hosts, granted).into_iter().map(|host| host.name).collect()
    };
    assert_eq!(names(&[]), ["api.a.dev", "*.b.dev", "c.dev"]);
    let wide = ["*.A.dev".to_owned(), "*.b.dev".to_owned()];
    let narrow = ["api.a.dev".to_owned(), "x.b.dev".to_owned()];
    assert_eq!(names(&[&wide]), ["api.a.dev", "*.b.dev"]);
    assert_eq!(names(&[&wide, &narrow]), ["api.a.dev"], "x.b.dev alone does not cover all of *.b.dev");
}

#[test]
fn a_lost_request_says_what_is_not_known() {
    let ended = lost(HttpMethod::Post);
    assert_eq!(ended.reason, Some(Reason::ResultLost));
    assert!(ended.message.unwrap().contains("after it sent the POST request"));
}

#[test]
fn a_run_that_is_ended_after_its_post_was_sent_says_what_is_not_known() {
    let message = |conclusion, method| with_open_request(conclusion, method).message.unwrap();
    let hint = "cancelled on request; the host may have got the POST request: look there if it took effect, before you send it again";
    assert_eq!(message(Conclusion::cancelled(), Some(HttpMethod::Post)), hint);
    let (program, _admitted) = admitted("method: DELETE", "");
    let timed_out = timed_out(&RequestProgram::Http(program), Duration::from_secs(10));
    let timed_out = message(timed_out, Some(HttpMethod::Delete));
    assert!(timed_out.contains("the host may have got the DELETE request"), "{timed_out}");
    for method in [None, Some(HttpMethod::Get)] {
        assert_eq!(message(Conclusion::cancelled(), method), "cancelled on request");
    }
    let lost = message(lost(HttpMethod::Post), Some(HttpMethod::Post));
    assert!(!lost.contains("may have got"), "it says so in its own words: {lost}");
}

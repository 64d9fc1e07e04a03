//! The skills of `charts/skillet-skills`, as its golden files have them: each is valid, and does what its cases say.
//!
//! The responses are written after the public documentation of each API. Nothing is sent here: the tests of the egress crate
//! send the same requests to a stand-in. Programs run under the machine's own Python, without a sandbox.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    fs,
    io::Write as _,
    process::{Command, Stdio},
    sync::Arc,
};

use crate::{
    builtin::{BuiltinProgram, Response, Step},
    http::{HttpProgram, HttpResponse},
    output::interpret,
    skill::{Handler, Program, check_hosts, validate_skill, warnings},
};
use serde_json::{Value, json};

use super::{Case, TOKEN, chart, every_skill, for_each_case, policy, skills};

fn check_http(case: &Case<'_>, http: &Arc<HttpProgram>) {
    let secrets = http.secrets().into_iter().map(|secret| (secret.name, TOKEN.to_owned())).collect();
    let rendered = match http.render(&case.fields["input"], &secrets) {
        Ok(rendered) => rendered,
        Err(error) => return case.check_error(error.reason.as_str(), &error.message),
    };
    case.check_request(&rendered.request);
    let (status, content_type, body) = case.response();
    let content_type = Some(content_type);
    let response = HttpResponse { status, content_type, location: None, body: &body, is_truncated: false };
    match http.read_response(&response) {
        Ok(output) => case.check_output(&output),
        Err(error) => case.check_error(error.reason().as_str(), &error.message),
    }
}

fn check_builtin(case: &Case<'_>, program: &BuiltinProgram) {
    let call = match program.render(&case.fields["input"], None) {
        Ok(call) => call,
        Err(error) => return case.check_error(error.reason().as_str(), &error.to_string()),
    };
    case.check_request(&call.request);
    let (status, content_type, body) = case.response();
    let headers = [("content-type".to_owned(), content_type.to_owned())];
    let response = Response { status, headers: &headers, body: &body };
    match call.read_response(response, "system:serviceaccount:team-a:agent") {
        Ok(Step::Output(output)) => case.check_output(&output),
        other => panic!("{}: {other:?}", case.name),
    }
}

/// Runs scripts as their sandboxes do, with the input on standard input; returns exit code and streams of each.
fn run_programs(runs: &Value) -> Vec<Value> {
    let mut child = Command::new("python3")
        .args(["-B", "tests/run.py"])
        .current_dir(chart())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(runs.to_string().as_bytes()).unwrap();
    let finished = child.wait_with_output().unwrap();
    assert!(finished.status.success(), "tests/run.py: {}", finished.status);
    serde_json::from_slice(&finished.stdout).unwrap()
}

fn check_program(case: &Case<'_>, result: &Value) {
    let stream = |name: &str| result[name].as_str().unwrap();
    let (name, error) = (&case.name, stream("stderr"));
    if let Some(part) = case.text("error") {
        assert!(error.contains(part), "{name}: {error} lacks {part}");
        assert_eq!(error.trim_end().lines().count(), 1, "{name}: {error}");
        assert_eq!((result["code"].as_i64(), stream("stdout")), (Some(65), ""), "{name}");
        return;
    }
    assert_eq!(result["code"], 0, "{name}: {error}");
    case.check_output(&interpret(stream("stdout").as_bytes(), false));
}

#[test]
fn every_skill_is_valid_under_the_policy_of_the_notes() {
    let (skills, policy) = every_skill();
    for (name, skill) in &skills {
        let spec = &skill.spec;
        let valid = validate_skill(name, spec, &policy).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        if let Some(network) = valid.network(spec) {
            check_hosts(&network, "tools", &policy).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        assert_eq!(warnings(spec), Vec::<String>::new(), "{name}");
        assert!(!spec.tags.is_empty() && !spec.examples.is_empty(), "{name} has no tags or examples");
        assert!(spec.description.len() > 60, "{name}: a model needs more than {:?}", spec.description);
    }
    assert_eq!(skills.len(), fs::read_dir(chart().join("skills")).unwrap().count());
}

#[test]
fn the_notes_name_each_host_and_no_wildcard_for_http_skills() {
    let policy = policy("http", "null");
    let mut needed = BTreeSet::new();
    for (name, skill) in &skills("http") {
        let valid = validate_skill(name, &skill.spec, &policy).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let network = valid.network(&skill.spec).unwrap();
        check_hosts(&network, "team-a", &policy).unwrap_or_else(|e| panic!("{name}: {e}"));
        needed.extend(network.hosts.into_iter().map(|host| host.name));
    }
    assert_eq!(policy.network.allowed_hosts, needed.into_iter().collect::<Vec<_>>());
    assert!(policy.builtins.is_empty());
}

#[test]
fn each_parameter_is_described_and_bounded() {
    for (name, skill) in every_skill().0 {
        let Some(input) = skill.spec.tool.and_then(|tool| tool.input_schema) else { continue };
        assert_eq!(input["additionalProperties"], false, "{name}");
        for (parameter, schema) in input["properties"].as_object().unwrap() {
            assert!(schema["description"].is_string(), "{name}: {parameter} has no description");
            let is_bounded = match schema["type"].as_str().unwrap() {
                "string" => ["maxLength", "enum", "pattern"].iter().any(|word| schema.get(word).is_some()),
                "integer" | "number" => schema["minimum"].is_number() && schema["maximum"].is_number(),
                "array" => schema["maxItems"].is_number(),
                "object" => schema["maxProperties"].is_number(),
                other => panic!("{name}: {parameter} is a {other}"),
            };
            assert!(is_bounded, "{name}: {parameter} has no bound");
        }
    }
}

#[test]
fn http_skills_send_the_requests_and_read_the_responses_of_their_cases() {
    let http = |handler: &Handler| match handler {
        Handler::Http(http) => Some(http.clone()),
        Handler::Sandbox(_) | Handler::Builtin(_) | Handler::File(_) => None,
    };
    assert!(for_each_case(http, check_http) > 40);
}

#[test]
fn built_ins_send_the_requests_and_read_the_responses_of_their_cases() {
    let builtin = |handler: &Handler| match handler {
        Handler::Builtin(program) => Some(program.clone()),
        Handler::Sandbox(_) | Handler::Http(_) | Handler::File(_) => None,
    };
    assert!(for_each_case(builtin, check_builtin) > 5);
}

#[test]
fn programs_print_the_outputs_and_the_errors_of_their_cases() {
    let script = |handler: &Handler| match handler {
        Handler::Sandbox(sandbox) => match &sandbox.program {
            Program::Script { text, .. } => Some(text.clone()),
            other => panic!("a program without a script: {other:?}"),
        },
        Handler::Http(_) | Handler::Builtin(_) | Handler::File(_) => None,
    };
    let runs = RefCell::new(Vec::new());
    let cases = for_each_case(script, |case, script| {
        runs.borrow_mut().push(json!({ "script": script, "input": case.fields["input"] }));
    });
    assert!(cases > 90);
    let results = RefCell::new(run_programs(&Value::Array(runs.into_inner())).into_iter());
    for_each_case(script, |case, _| check_program(case, &results.borrow_mut().next().unwrap()));
}

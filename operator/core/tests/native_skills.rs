//! The skills of `charts/skillet-skills`, as its golden files have them: each is valid, and does what its cases say.
//!
//! Nothing is sent: the responses are written after the public documentation of each API. Programs run under the machine's
//! own Python, without a sandbox.

// What is not a test here is still part of one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use serde_json::{Value, json};
use skillet_api::{Skill, SkillPolicySpec};
use skillet_core::{
    builtin::{BuiltinProgram, Response, Step},
    http::{HttpProgram, HttpResponse, RenderedRequest},
    output::interpret,
    skill::{Handler, Program, ValidContent, check_hosts, validate_skill, warnings},
};

const TOKEN: &str = "t0ken";

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/skillet-skills")
}

fn read(file: &str) -> String {
    fs::read_to_string(chart().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The Skills of a golden file, by name.
fn skills(golden: &str) -> BTreeMap<String, Skill> {
    let text = read(&format!("tests/golden/{golden}.yaml"));
    let documents = text.split("\n---\n").map(|document| document.trim_start_matches("---\n"));
    let skill = |document: &str| {
        let skill: Skill = serde_saphyr::from_str(document).unwrap_or_else(|e| panic!("{e} in\n{document}"));
        (skill.metadata.name.clone().unwrap(), skill)
    };
    documents.map(skill).collect()
}

/// The policy that the notes of the installation name, with this search engine.
fn policy(golden: &str, engine: &str) -> SkillPolicySpec {
    let notes = read(&format!("tests/golden/{golden}.notes.txt"));
    let fields = notes.lines().skip_while(|line| *line != "  spec:").skip(1);
    let fields: Vec<&str> = fields.take_while(|line| line.starts_with("    ")).collect();
    let mut policy: SkillPolicySpec = serde_saphyr::from_str(&fields.join("\n")).unwrap();
    policy.web_search = serde_saphyr::from_str(engine).unwrap();
    policy
}

fn every_skill() -> (BTreeMap<String, Skill>, SkillPolicySpec) {
    (skills("all"), policy("all", "{provider: SearXNG, url: 'https://search.example.com'}"))
}

/// Runs `check` on each case of the skills for which `pick` finds something, and returns the number of cases.
fn for_each_case<T>(pick: impl Fn(&Handler) -> Option<T>, check: impl Fn(&Case<'_>, &T)) -> usize {
    let (skills, policy) = every_skill();
    let mut count = 0;
    for (name, skill) in &skills {
        let valid = validate_skill(name, &skill.spec, &policy).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let content = valid.content.unwrap();
        let Some(picked) = pick(&content.handler) else { continue };
        let file: Value = serde_json::from_str(&read(&format!("tests/{name}.json"))).unwrap();
        for (place, fields) in file["cases"].as_array().unwrap().iter().enumerate() {
            let case = Case { name: format!("{name}, case {place}"), fields, content: &content };
            if !case.is_refused() {
                check(&case, &picked);
            }
            count += 1;
        }
    }
    count
}

/// An input, and what must come of it.
struct Case<'a> {
    name: String,
    fields: &'a Value,
    content: &'a ValidContent,
}

impl Case<'_> {
    fn text(&self, field: &str) -> Option<&str> {
        self.fields[field].as_str()
    }

    /// True for an input that the schema refuses, as the case says.
    fn is_refused(&self) -> bool {
        let checked = self.content.input_schema.as_ref().unwrap().check(&self.fields["input"]);
        let Some(part) = self.text("refused") else {
            assert!(checked.is_ok(), "{}: the schema refuses the input: {checked:?}", self.name);
            return false;
        };
        assert_violation(&self.name, checked, part);
        true
    }

    /// Checks an output and its schema against `output`, `contains`, `lacks` and `violation`.
    fn check_output(&self, output: &Value) {
        let name = &self.name;
        let checked = self.content.output_schema.as_ref().map_or(Ok(()), |schema| schema.check(output));
        if let Some(part) = self.text("violation") {
            return assert_violation(name, checked, part);
        }
        assert!(checked.is_ok(), "{name}: {output} violates the schema: {checked:?}");
        if let Some(expected) = self.fields.get("output") {
            assert!(is_same(expected, output), "{name}: {output}\nis not {expected}");
        } else {
            let expected = self.fields.get("contains").unwrap_or_else(|| panic!("{name} expects nothing"));
            assert!(contains(output, expected), "{name}: {output}\nlacks a part of {expected}");
        }
        for part in self.fields["lacks"].as_array().into_iter().flatten() {
            let part = part.as_str().unwrap();
            assert!(!has_text(output, part), "{name}: {part} is in {output}");
        }
    }

    /// Checks method, URL, body and the headers that the case names.
    fn check_request(&self, request: &RenderedRequest) {
        let (name, expected) = (&self.name, &self.fields["request"]);
        assert_eq!(Some(request.method.as_str()), expected["method"].as_str(), "{name}");
        assert_eq!(Some(request.url.as_str()), expected["url"].as_str(), "{name}");
        let body = request.body.as_ref().map(|body| serde_json::from_str::<Value>(body).unwrap());
        assert_eq!(body.as_ref(), expected.get("body"), "{name}");
        let value = |header: &str| {
            let found = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(header));
            found.map(|(_, value)| value.as_str())
        };
        for (header, expected) in expected["headers"].as_object().into_iter().flatten() {
            assert_eq!(value(header), expected.as_str(), "{name}: {header}");
        }
        let is_for_github = request.url.starts_with("https://api.github.com/");
        assert_eq!(value("Authorization").is_some(), is_for_github, "{name}: the token is for GitHub");
    }

    /// Checks the reason and the message of an error against `error`.
    fn check_error(&self, reason: &str, message: &str) {
        let (name, expected) = (&self.name, &self.fields["error"]);
        assert_eq!(Some(reason), expected["reason"].as_str(), "{name}: {message}");
        let part = expected["message"].as_str().unwrap();
        assert!(message.contains(part), "{name}: {message} lacks {part}");
    }

    /// Status, content type and body of the response.
    fn response(&self) -> (u16, &str, Vec<u8>) {
        let response = &self.fields["response"];
        let body = match &response["body"] {
            Value::String(text) => text.clone(),
            json => json.to_string(),
        };
        let status = u16::try_from(response["status"].as_u64().unwrap()).unwrap();
        (status, response["content_type"].as_str().unwrap(), body.into_bytes())
    }
}

fn assert_violation(name: &str, checked: Result<(), Vec<impl ToString + std::fmt::Debug>>, part: &str) {
    let texts: Vec<String> = checked.expect_err(name).iter().map(ToString::to_string).collect();
    assert!(texts.iter().any(|text| text.contains(part)), "{name}: {texts:?} lacks {part}");
}

/// True for equal values; 5 and 5.0 are the same number, as in Kubernetes.
fn is_same(a: &Value, b: &Value) -> bool {
    let is_as_long = match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len(),
        (Value::Object(a), Value::Object(b)) => a.len() == b.len(),
        _ => true,
    };
    is_as_long && contains_by(a, b, &is_same)
}

/// True if the fields of `part` are in `whole`, at each depth.
fn contains(whole: &Value, part: &Value) -> bool {
    contains_by(whole, part, &contains)
}

fn contains_by(whole: &Value, part: &Value, compare: &dyn Fn(&Value, &Value) -> bool) -> bool {
    match (whole, part) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| compare(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            b.iter().all(|(key, b)| a.get(key).is_some_and(|a| compare(a, b)))
        }
        _ => whole == part,
    }
}

fn has_text(value: &Value, part: &str) -> bool {
    match value {
        Value::String(text) => text.contains(part),
        Value::Array(list) => list.iter().any(|value| has_text(value, part)),
        Value::Object(fields) => fields.values().any(|value| has_text(value, part)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

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

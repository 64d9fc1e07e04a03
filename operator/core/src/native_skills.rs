//! The cases of the skills of `charts/skillet-skills`: an input, the request that it makes, a response, and what comes of it.
//!
//! The tests of two crates read them: those of this crate, and those of the egress crate, which send the requests.

// All of it is part of tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc)]

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    http::RenderedRequest,
    skill::{Handler, ValidContent, validate_skill},
};
use serde_json::Value;
use skillet_api::{Skill, SkillPolicySpec};

pub const TOKEN: &str = "t0ken";

pub fn chart() -> PathBuf {
    // Tests run in the folder of their package.
    Path::new("../../charts/skillet-skills").to_path_buf()
}

pub fn read(file: &str) -> String {
    fs::read_to_string(chart().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The Skills of a golden file, by name.
pub fn skills(golden: &str) -> BTreeMap<String, Skill> {
    let text = read(&format!("tests/golden/{golden}.yaml"));
    let documents = text.split("\n---\n").map(|document| document.trim_start_matches("---\n"));
    let skill = |document: &str| {
        let skill: Skill = serde_saphyr::from_str(document).unwrap_or_else(|e| panic!("{e} in\n{document}"));
        (skill.metadata.name.clone().unwrap(), skill)
    };
    documents.map(skill).collect()
}

/// The policy that the notes of the installation name, with this search engine.
pub fn policy(golden: &str, engine: &str) -> SkillPolicySpec {
    let notes = read(&format!("tests/golden/{golden}.notes.txt"));
    let fields = notes.lines().skip_while(|line| *line != "  spec:").skip(1);
    let fields: Vec<&str> = fields.take_while(|line| line.starts_with("    ")).collect();
    let mut policy: SkillPolicySpec = serde_saphyr::from_str(&fields.join("\n")).unwrap();
    policy.web_search = serde_saphyr::from_str(engine).unwrap();
    policy
}

pub fn every_skill() -> (BTreeMap<String, Skill>, SkillPolicySpec) {
    (skills("all"), policy("all", "{provider: SearXNG, url: 'https://search.example.com'}"))
}

/// Runs `check` on each case of the skills for which `pick` finds something, and returns the number of cases.
pub fn for_each_case<T>(pick: impl Fn(&Handler) -> Option<T>, check: impl Fn(&Case<'_>, &T)) -> usize {
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
pub struct Case<'a> {
    pub name: String,
    pub fields: &'a Value,
    pub content: &'a ValidContent,
}

impl Case<'_> {
    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields[field].as_str()
    }

    /// True for an input that the schema refuses, as the case says.
    pub fn is_refused(&self) -> bool {
        let checked = self.content.input_schema.as_ref().unwrap().check(&self.fields["input"]);
        let Some(part) = self.text("refused") else {
            assert!(checked.is_ok(), "{}: the schema refuses the input: {checked:?}", self.name);
            return false;
        };
        assert_violation(&self.name, checked, part);
        true
    }

    /// Checks an output and its schema against `output`, `contains`, `lacks` and `violation`.
    pub fn check_output(&self, output: &Value) {
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
    pub fn check_request(&self, request: &RenderedRequest) {
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
    pub fn check_error(&self, reason: &str, message: &str) {
        let (name, expected) = (&self.name, &self.fields["error"]);
        assert_eq!(Some(reason), expected["reason"].as_str(), "{name}: {message}");
        let part = expected["message"].as_str().unwrap();
        assert!(message.contains(part), "{name}: {message} lacks {part}");
    }

    /// Status, content type and body of the response.
    pub fn response(&self) -> (u16, &str, Vec<u8>) {
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

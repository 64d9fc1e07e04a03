//! Tables of what a kind's schema refuses: each case breaks one bound, and no bound is left without a case.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};

/// The field in which a schema has its CEL rules.
const RULES: &str = "x-kubernetes-validations";

/// One object that breaks one bound.
pub struct Case {
    /// The bound: path and keyword of the schema, such as `spec.tags[] maxLength`. A CEL rule is `rule: <message>`.
    pub breaks: &'static str,
    /// Changes of the shortest valid spec, as YAML; null removes a field.
    pub with: String,
}

/// A case.
pub fn breaks(bound: &'static str, with: impl Into<String>) -> Case {
    Case { breaks: bound, with: with.into() }
}

impl Case {
    /// Path of the field, with `[]` for an item of a list.
    pub fn path(&self) -> &'static str {
        self.breaks.split_once(' ').unwrap().0
    }

    /// Part of what the API server says of it.
    pub fn message(&self) -> &'static str {
        let keyword = self.breaks.split_once(' ').unwrap().1;
        match keyword.split(' ').next().unwrap() {
            "required" => "Required value",
            "enum" => "Unsupported value",
            "pattern" => "should match",
            "minLength" => "should be at least",
            "maxLength" => "Too long: may not be more than",
            "minimum" => "should be greater than or equal to",
            "maximum" => "should be less than or equal to",
            "minItems" => "should have at least",
            "maxItems" | "maxProperties" => "Too many",
            "unique" => "Duplicate value",
            "rule:" => keyword.strip_prefix("rule: ").unwrap(),
            other => panic!("no such keyword: {other}"),
        }
    }

    /// The spec of this case.
    pub fn spec(&self, shortest: &str) -> Value {
        with(shortest, &self.with)
    }
}

/// The shortest valid spec with a change put over it.
pub fn with(shortest: &str, change: &str) -> Value {
    let mut spec = yaml(shortest);
    merge(&mut spec, yaml(change));
    spec
}

/// Tells if a problem with `field` is about the bound at `path`: of the field, of its parent or of its content. The path of a
/// bound leaves out the name of a member of a map.
pub fn is_about(field: &str, path: &str) -> bool {
    let field = without_indices(field);
    let names: Vec<&str> = field.split('.').collect();
    let without_one = |at: usize| [&names[..at], &names[at + 1..]].concat().join(".");
    // A rule in CEL names the member in brackets.
    let without_brackets = |at: usize| [&field[..at], &field[at + 2..]].concat();
    is_at(&field, path)
        || (0..names.len() - 1).any(|at| is_at(&without_one(at), path))
        || field.match_indices("[]").any(|(at, _)| is_at(&without_brackets(at), path))
}

fn is_at(field: &str, path: &str) -> bool {
    let below = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    below(field, path) || below(path, field)
}

/// `spec.tags[3]` as `spec.tags[]`.
fn without_indices(field: &str) -> String {
    let mut text = String::new();
    let mut is_index = false;
    for c in field.chars() {
        is_index = (is_index || c == '[') && c != ']';
        if !is_index || c == '[' {
            text.push(c);
        }
    }
    text
}

pub fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn merge(into: &mut Value, change: Value) {
    let (Value::Object(into), Value::Object(change)) = (&mut *into, &change) else {
        *into = change;
        return;
    };
    for (key, value) in change {
        if value.is_null() {
            into.remove(key);
        } else {
            merge(into.entry(key).or_insert(Value::Null), value.clone());
        }
    }
}

/// Fails where the cases, and what is broken `elsewhere`, are not exactly the bounds of the definition. A rule of the
/// whole object is one of `metadata`.
pub fn assert_complete(crd: &CustomResourceDefinition, cases: &[Case], elsewhere: &[&str]) {
    let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
    let schema = &schema["openAPIV3Schema"];
    let mut bounds = BTreeSet::new();
    collect("spec", &schema["properties"]["spec"], &mut bounds);
    collect("metadata", &json!({ RULES: schema[RULES] }), &mut bounds);
    let mut broken: BTreeSet<String> = cases.iter().map(|case| case.breaks.to_owned()).collect();
    broken.extend(elsewhere.iter().map(|bound| (*bound).to_owned()));
    let lacking: Vec<&String> = bounds.difference(&broken).collect();
    let invented: Vec<&String> = broken.difference(&bounds).collect();
    assert!(lacking.is_empty(), "no case breaks {lacking:#?}");
    assert!(invented.is_empty(), "the schema has no such bound {invented:#?}");
}

fn collect(path: &str, schema: &Value, bounds: &mut BTreeSet<String>) {
    let Some(schema) = schema.as_object() else { return };
    let keywords = [
        "enum",
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "maxProperties",
    ];
    for keyword in keywords.into_iter().filter(|keyword| schema.contains_key(*keyword)) {
        bounds.insert(format!("{path} {keyword}"));
    }
    for field in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        bounds.insert(format!("{path}.{} required", field.as_str().unwrap()));
    }
    for rule in schema.get(RULES).and_then(Value::as_array).into_iter().flatten() {
        bounds.insert(format!("{path} rule: {}", rule["message"].as_str().unwrap()));
    }
    if schema.contains_key("x-kubernetes-list-map-keys") {
        bounds.insert(format!("{path}[] unique"));
    }
    if let Some(items) = schema.get("items") {
        collect(&format!("{path}[]"), items, bounds);
    }
    if let Some(values) = schema.get("additionalProperties") {
        collect(path, values, bounds);
    }
    for (name, inner) in schema.get("properties").and_then(Value::as_object).unwrap_or(&Map::new()) {
        collect(&format!("{path}.{name}"), inner, bounds);
    }
}

/// Text of `length` characters, as YAML.
pub fn long(length: usize) -> String {
    "a".repeat(length)
}

/// A YAML list of `length` items, each made from its number.
pub fn many(length: usize, item: impl Fn(usize) -> String) -> String {
    format!("[{}]", (0..length).map(item).collect::<Vec<_>>().join(", "))
}

#[test]
fn a_field_is_about_what_holds_it_and_what_it_holds() {
    assert!(is_about("spec.tags[12]", "spec.tags[]"));
    assert!(is_about("spec.run.sandbox", "spec.run.sandbox.image"));
    assert!(is_about("spec.run.sandbox.files[0].path", "spec.run.sandbox.files[]"));
    assert!(!is_about("spec.limits.cpu", "spec.limits.cpuset"));
    assert!(!is_about("spec.version", "spec.limits"));
}

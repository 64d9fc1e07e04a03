//! Accepted schemas, messages for violations, and the bounded cost of hostile schemas.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::test_cost::{assert_linear, cpu_time};

fn compile(schema: &Value) -> Result<Schema, String> {
    Schema::compile("spec.tool.inputSchema", schema).map_err(|error| error.to_string())
}

fn check(schema: &Value, value: &Value, expected: &[&str]) {
    let message = compile(schema).unwrap().check(value).err().unwrap_or_default();
    let message: Vec<String> = message.iter().map(ToString::to_string).collect();
    assert_eq!(message, expected, "{value} against {schema}");
}

fn refuse(schema: &Value, expected: &str) {
    let message = compile(schema).map(|_| ()).unwrap_err();
    assert!(message.contains(expected), "{message}");
    assert!(
        message.starts_with("spec.tool.inputSchema is not a JSON Schema that can be used: "),
        "{message}"
    );
}

#[test]
fn a_value_that_fits_passes() {
    let schema =
        json!({"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "integer"}}}});
    check(&schema, &json!({"rows": [1, 2]}), &[]);
    check(&json!(true), &json!(null), &[]);
    check(&json!({}), &json!([1]), &[]);
}

#[test]
fn a_violation_has_the_pointer_the_expectation_and_the_value() {
    let schema = json!({"properties": {"rows": {"items": {"type": "integer"}}}, "required": ["name"]});
    check(&schema, &json!({"name": 1, "rows": [1, 2, 3, "x"]}), &[r#"/rows/3: expected integer, got "x""#]);
    check(&schema, &json!({"rows": []}), &[r#"(root): expected property "name", which is missing"#]);
    check(
        &json!({"properties": {"a/b": {"type": "null"}}}),
        &json!({"a/b": 1}),
        &["/a~1b: expected null, got 1"],
    );
}

#[test]
fn every_common_keyword_has_plain_words() {
    for (schema, value, expected) in [
        (json!({"type": ["integer", "null"]}), json!("x"), r#"null or integer, got "x""#),
        (json!({"additionalProperties": false}), json!({"b": 1}), "no further property, got 1"),
        (
            json!({"properties": {"a": {}}, "additionalProperties": false}),
            json!({"b": 1}),
            r#"no property "b""#,
        ),
        (
            json!({"properties": {"a": {}}, "unevaluatedProperties": false}),
            json!({"b": 1}),
            r#"no property "b""#,
        ),
        (json!({"enum": ["a", "b"]}), json!("c"), r#"one of ["a","b"], got "c""#),
        (json!({"const": 5}), json!(6), "5, got 6"),
        (json!({"anyOf": [{"type": "null"}]}), json!(1), "null, got 1"),
        (json!({"oneOf": [{"type": "null"}, {"minimum": 2}]}), json!(1), "null or at least 2, got 1"),
        (
            json!({"oneOf": [{"required": ["a"]}, {"anyOf": [false]}]}),
            json!({}),
            "what one of oneOf describes, got {}",
        ),
        (json!({"oneOf": [{}, {}]}), json!(1), "what exactly one of oneOf describes, got 1"),
        (json!({"not": {"type": "string"}}), json!("s"), r#"anything but {"type":"string"}, got "s""#),
        (json!({"minimum": 2}), json!(1), "at least 2, got 1"),
        (json!({"maximum": 2}), json!(3), "at most 2, got 3"),
        (json!({"exclusiveMinimum": 2}), json!(2), "more than 2, got 2"),
        (json!({"exclusiveMaximum": 2}), json!(2), "less than 2, got 2"),
        (json!({"multipleOf": 2}), json!(3), "a multiple of 2, got 3"),
        (json!({"minLength": 2}), json!("é"), "at least 2 characters, got \"é\""),
        (json!({"maxLength": 1}), json!("ab"), r#"at most 1 characters, got "ab""#),
        (json!({"minItems": 1}), json!([]), "at least 1 items, got []"),
        (json!({"maxItems": 0}), json!([1]), "at most 0 items, got [1]"),
        (json!({"minProperties": 1}), json!({}), "at least 1 properties, got {}"),
        (json!({"maxProperties": 0}), json!({"a": 1}), r#"at most 0 properties, got {"a":1}"#),
        (json!({"uniqueItems": true}), json!([1, 1]), "items that differ from each other, got [1,1]"),
        (json!({"pattern": "^a+$"}), json!("b"), r#"text that matches "^a+$", got "b""#),
        (json!(false), json!(1), "nothing here, got 1"),
    ] {
        check(&schema, &value, &[&format!("(root): expected {expected}")]);
    }
    check(
        &json!({"propertyNames": {"maxLength": 1}}),
        &json!({"ab": 1}),
        &[r#"(root): expected other property names: at most 1 characters, got "ab""#],
    );
    check(
        &json!({"$schema": "http://json-schema.org/draft-07/schema#", "format": "date"}),
        &json!("x"),
        &[r#"(root): expected format date, got "x""#],
    );
    let message = compile(&json!({"contains": {"type": "null"}})).unwrap().check(&json!([1])).unwrap_err();
    assert!(message[0].expected.starts_with("otherwise ("), "{}", message[0]);
}

#[test]
fn a_message_lists_five_violations_and_counts_the_others() {
    let schema = compile(&json!({"items": {"type": "integer"}})).unwrap();
    let violations = schema.check(&json!(["a", "b", "c", "d", "e", "f", "g"])).unwrap_err();
    let message = summarize(&violations);
    assert!(message.starts_with(r#"/0: expected integer, got "a"; /1: "#), "{message}");
    assert!(message.ends_with(r#"/4: expected integer, got "e"; and 2 more"#), "{message}");
    assert_eq!(summarize(&violations[..1]), r#"/0: expected integer, got "a""#);
}

#[test]
fn long_values_are_cut() {
    let message = compile(&json!({"type": "null"})).unwrap().check(&json!("é".repeat(500))).unwrap_err();
    assert!(message[0].expected.ends_with("..."), "{}", message[0]);
    assert!(message[0].expected.len() < 100, "{}", message[0]);
}

#[test]
fn what_is_not_json_schema_is_refused_with_the_place() {
    refuse(&json!("x"), "a schema is an object");
    refuse(&json!({"type": "strin"}), "at /type: expected one of [\"array\",\"boolean\"");
    refuse(&json!({"properties": {"a": 3}}), "at /properties/a: expected boolean or object, got 3");
    refuse(&json!({"required": "a"}), "at /required: expected array, got \"a\"");
    refuse(&json!({"$schema": "https://example.com/mine"}), "Unknown meta-schema");
}

#[test]
fn the_reason_follows_the_field() {
    let reason = |field: &str| Schema::compile(field, &json!(1)).unwrap_err().reason();
    assert_eq!(reason("spec.tool.inputSchema"), skillet_api::Reason::InputSchemaInvalid);
    assert_eq!(reason("spec.tool.outputSchema"), skillet_api::Reason::OutputSchemaInvalid);
}

#[test]
fn references_stay_inside_the_schema() {
    let tree = json!({"$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}, "id": {"type": "integer"}}}},
        "$ref": "#/$defs/node"});
    check(&tree, &json!({"next": {"id": "x"}}), &[r#"/next/id: expected integer, got "x""#]);
    for outside in ["https://example.com/a.json", "file:///etc/passwd", "other.json", "#name", "#/$defs/%61"]
    {
        let leads = if outside.contains('%') { "leads nowhere" } else { "is not followed" };
        refuse(&json!({"$ref": outside}), leads);
    }
    refuse(&json!({"$ref": "#/$defs/none"}), "\"#/$defs/none\" leads nowhere in the schema");
    refuse(&json!({"$defs": {"a": {"$dynamicRef": "#x"}}}), "is not followed");
    refuse(&json!({"properties": {"a": {"$id": "https://example.com/a"}}}), "$id is read at the top only");
    assert!(
        compile(&json!({"$id": "https://example.com/a", "properties": {"$id": {"type": "string"}}})).is_ok()
    );
}

#[test]
fn patterns_match_in_linear_time() {
    let schema = compile(&json!({"pattern": "^(a+)+$"})).unwrap();
    assert_linear(10_000, |length| assert!(schema.check(&json!("a".repeat(length) + "b")).is_err()));
    check(
        &json!({"pattern": "^(a+)+$"}),
        &json!("a".repeat(40) + "b"),
        &[
            "(root): expected text that matches \"^(a+)+$\", got \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"",
        ],
    );
    refuse(&json!({"pattern": "^(?!a)b"}), "use no look-around and no back-references");
    refuse(&json!({"pattern": "("}), "is not a pattern that can be used; check its brackets");
    refuse(&json!({"pattern": r"(a)\1"}), "use no look-around and no back-references");
    refuse(&json!({"pattern": "^(a{1,1000}){1,1000}$"}), "is not a pattern");
    let many: serde_json::Map<String, Value> = (0..101).map(|n| (format!("^{n}"), json!({}))).collect();
    refuse(&json!({ "patternProperties": many }), "it has 101 patterns, at most 100 are allowed");
}

/// `count` definitions, each an alternative between twice the next.
fn doubling(count: usize) -> Value {
    let mut definitions = serde_json::Map::new();
    for n in 0..count {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        definitions.insert(format!("d{n}"), json!({"anyOf": [next, next]}));
    }
    definitions.insert(format!("d{count}"), json!({"type": "string"}));
    json!({"$defs": definitions, "$ref": "#/$defs/d0"})
}

#[test]
fn alternatives_that_multiply_are_refused() {
    refuse(&doubling(60), "its alternatives multiply");
    check(&doubling(5), &json!("x"), &[]);
    check(&doubling(5), &json!(1), &["(root): expected what one of anyOf describes, got 1"]);
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |value, _| json!({ "a": value }))
}

#[test]
fn a_recursive_schema_with_alternatives_answers_at_once() {
    let schema = json!({"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#", "title": "x"}]}}});
    let message =
        "(root): expected a value that satisfies the schema, which is too recursive to say where it does not";
    let cost = cpu_time(|| check(&schema, &nested(60), &[message]));
    assert!(cost < 10 * cost_of_ordinary_rows(), "{cost:?}");
    check(&schema, &nested(2), &["/a: expected what one of anyOf describes, got {\"a\":1}"]);
}

#[test]
fn a_recursive_schema_without_alternatives_says_where_at_any_depth() {
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}});
    let message = compile(&schema).unwrap().check(&nested(100)).unwrap_err();
    assert_eq!(message[0].to_string(), format!("{}: expected object, got 1", "/a".repeat(100)));
}

#[test]
fn nothing_overflows_the_stack() {
    let mut definitions = serde_json::Map::new();
    for n in 0..3000 {
        definitions.insert(format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}));
    }
    definitions.insert("d3000".to_owned(), json!(true));
    refuse(&json!({"$defs": definitions, "$ref": "#/$defs/d0"}), "it is nested too deeply");
    let deep = (0..30).fold(json!({"$ref": "#"}), |schema, _| json!({ "allOf": [schema] }));
    let schema = json!({"type": "object", "properties": {"a": deep}});
    let message =
        "(root): expected a value that is nested less deeply; this one is too deep for its recursive schema";
    check(&schema, &nested(110), &[message]);
    // The largest that is let pass runs on the smallest stack a runtime gives.
    let near_limit = (0..40).fold(json!({"$ref": "#"}), |schema, _| json!({ "allOf": [schema] }));
    let schema = json!({"type": "object", "properties": {"a": near_limit}});
    let run = move || compile(&schema).unwrap().check(&nested(10)).unwrap_err()[0].to_string();
    let message = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
    assert_eq!(message, "/a/a/a/a/a/a/a/a/a/a: expected object, got 1");
    check(&json!({"$ref": "#"}), &json!(1), &[]);
}

/// The cost of what users do check, beside which hostile schemas and values are measured.
fn cost_of_ordinary_rows() -> Duration {
    let row =
        json!({"type": "object", "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}});
    let rows = Value::Array(vec![json!({"name": "a", "count": 1}); 30_000]);
    cpu_time(|| check(&json!({"type": "array", "items": row}), &rows, &[]))
}

#[test]
fn large_inputs_of_ordinary_schemas_are_checked() {
    cost_of_ordinary_rows();
    let wide = json!({"allOf": vec![json!({"items": {"anyOf": vec![json!({"type": "null"}); 100]}}); 10]});
    let message = "(root): expected a smaller value; this one is too large to be checked against its schema";
    check(&wide, &json!(vec![0; 30_000]), &[message]);
    refuse(&json!({"description": "x".repeat(200_000)}), "bytes, at most 131072 are allowed");
}

#[test]
fn long_texts_and_long_enums_are_checked_in_time_or_refused() {
    let texts = |pattern: &str| json!({ "allOf": vec![json!({ "pattern": pattern }); 100] });
    let options: Vec<String> = (0..10_000).map(|n| format!("o{n}")).collect();
    let long = Value::String("ab".repeat(700_000));
    let many = Value::Array(vec![json!(options.last()); 200_000]);
    let refused = |schema: &Value, value: &Value| match compile(schema) {
        Err(_) => true,
        Ok(schema) => schema.check(value).is_err_and(|why| why[0].expected.starts_with("a smaller value")),
    };
    let cost = cpu_time(|| {
        assert!(compile(&json!({ "pattern": "[ab]*a[ab]{10000}c" })).is_err(), "its automaton is too large");
        assert!(refused(&texts("[ab]*a[ab]{100}c"), &long));
        assert!(refused(&json!({ "items": { "enum": options } }), &many));
    });
    assert!(cost < 10 * cost_of_ordinary_rows(), "{cost:?}");
}

#[test]
fn ordinary_patterns_and_enums_do_not_limit_large_values() {
    let row = json!({ "id": "0f".repeat(32), "kind": "b", "text": "x".repeat(100) });
    let schema = json!({ "items": { "properties": {
        "id": { "pattern": "^[0-9a-f]{64}$" }, "kind": { "enum": ["a", "b", "c"] }, "text": { "pattern": "^[a-z ]+$" },
    } } });
    check(&schema, &Value::Array(vec![row; 5_000]), &[]);
}

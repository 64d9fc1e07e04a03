//! Schemas as people write them: repaired or refused.

use super::*;

fn check(schema: &Value, expected: &Value) {
    let normal = normalize(schema);
    assert_eq!(normal, *expected, "{schema}");
    assert_eq!(normalize(&normal), normal, "once more changes nothing: {schema}");
}

/// The same, for what stands in `properties` of an object.
fn check_properties(properties: &Value, expected: &Value) {
    check(
        &json!({"type": "object", "properties": properties}),
        &json!({"type": "object", "properties": expected}),
    );
}

#[test]
fn an_object_schema_stays_as_it_is() {
    let full = json!({"type": "object", "properties": {"q": {"type": "string", "title": "string"}}, "required": ["q"], "x": 1});
    check(&full, &full);
    let other = json!({"type": "string", "title": "object"});
    check(&other, &other);
}

#[test]
fn a_map_of_names_to_types_is_an_objects_properties() {
    check(&json!({}), &json!({"type": "object", "properties": {}}));
    check(&json!(null), &json!({"type": "object", "properties": {}}));
    check(
        &json!({"topic": "string", "depth": {"type": "integer"}, "opts": {"a": "string", "b": {"type": "boolean"}}}),
        &json!({"type": "object", "properties": {
            "topic": {"type": "string"}, "depth": {"type": "integer"},
            "opts": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}},
        }}),
    );
    check(
        &json!({"type": {"type": "string"}}),
        &json!({"type": "object", "properties": {"type": {"type": "string"}}}),
    );
}

#[test]
fn a_schema_that_lacks_only_its_type_is_not_wrapped() {
    for schema in [
        json!({"properties": {"q": {"type": "string"}}}),
        json!({"type": ["object", "null"], "properties": {}}),
        json!({"$defs": {"q": {"type": "string"}}}),
        json!({"anyOf": [{"required": ["a"]}]}),
        json!({"additionalProperties": false}),
    ] {
        let mut expected = schema.clone();
        expected["type"] = json!("object");
        check(&schema, &expected);
    }
    check(
        &json!({"properties": "string"}),
        &json!({"type": "object", "properties": {"properties": {"type": "string"}}}),
    );
}

#[test]
fn types_are_spelled_out_where_a_schema_must_stand() {
    check_properties(
        &json!({"a": "string", "b": "text", "c": ""}),
        &json!({"a": {"type": "string"}, "b": {"type": "text"}, "c": ""}),
    );
    check_properties(
        &json!({"a": {"type": "object", "patternProperties": {"^x": "integer"}}}),
        &json!({"a": {"type": "object", "patternProperties": {"^x": {"type": "integer"}}}}),
    );
    check(
        &json!({"type": "object", "$defs": {"a": "null"}, "definitions": {"b": "array"}}),
        &json!({"type": "object", "$defs": {"a": {"type": "null"}}, "definitions": {"b": {"type": "array"}}}),
    );
    check_properties(&json!({"a": {"title": "A title"}}), &json!({"a": {"title": "A title"}}));
    check_properties(
        &json!({"a": {"anyOf": [{"type": "object", "properties": {"b": "string"}}]}}),
        &json!({"a": {"anyOf": [{"type": "object", "properties": {"b": {"type": "string"}}}]}}),
    );
}

#[test]
fn a_map_below_the_top_is_wrapped_from_the_inside() {
    check_properties(
        &json!({"opts": {"limit": {"max": {"type": "number"}}}}),
        &json!({"opts": {"type": "object", "properties": {
            "limit": {"type": "object", "properties": {"max": {"type": "number"}}},
        }}}),
    );
    check_properties(&json!({"a": {}, "b": {"x-hint": {}}}), &json!({"a": {}, "b": {"x-hint": {}}}));
}

#[test]
fn required_at_a_property_moves_to_the_list_of_its_parent() {
    check(
        &json!({"type": "object", "properties": {"q": {"type": "string", "required": true}, "r": {"type": "string", "required": false}}}),
        &json!({"type": "object", "properties": {"q": {"type": "string"}, "r": {"type": "string"}}, "required": ["q"]}),
    );
    check(
        &json!({"type": "object", "required": ["q", 1], "properties": {"q": {"required": true}, "r": {"required": true}}}),
        &json!({"type": "object", "required": ["q", "r"], "properties": {"q": {}, "r": {}}}),
    );
    check(
        &json!({"type": "object", "required": true, "properties": {"q": {"type": "string"}}}),
        &json!({"type": "object", "properties": {"q": {"type": "string"}}}),
    );
    check_properties(
        &json!({"o": {"type": "object", "required": ["a"], "properties": {"a": {}}}}),
        &json!({"o": {"type": "object", "required": ["a"], "properties": {"a": {}}}}),
    );
}

#[test]
fn data_in_a_schema_is_not_touched() {
    let data = json!({"mode": "string", "inner": {"a": {"b": "object"}}});
    for keyword in DATA {
        let schema = json!({"a": {"type": "object", keyword: data}});
        check_properties(&schema, &schema);
    }
    check_properties(
        &json!({"default": "string", "enum": {"x": "string"}}),
        &json!({"default": {"type": "string"}, "enum": {"type": "object", "properties": {"x": {"type": "string"}}}}),
    );
}

/// `levels` objects with one property each; every object is two levels of JSON.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({"a": "string"}), |inner, _| json!({"type": "object", "properties": {"o": inner}}))
}

#[test]
fn what_is_too_deep_is_left_alone_and_refused() {
    assert!(normalize(&nested(15)).to_string().contains(r#"{"type":"string"}"#));
    assert!(!normalize(&nested(20)).to_string().contains(r#"{"type":"string"}"#));
    check_problem(&nested(16), None);
    check_problem(&nested(17), Some("nested more than 32 levels deep"));
}

fn check_problem(schema: &Value, expected: Option<&str>) {
    let problem = problem(schema);
    match (&problem, expected) {
        (Some(problem), Some(expected)) => assert!(problem.contains(expected), "{problem}"),
        (problem, expected) => assert_eq!(problem.is_some(), expected.is_some(), "{problem:?} for {schema}"),
    }
}

#[test]
fn what_can_be_a_tools_parameters_is_no_problem() {
    check_problem(&json!({}), None);
    check_problem(&json!({"q": "string"}), None);
    check_problem(&json!({"type": "object", "properties": {"q": {"anyOf": [{"type": "string"}]}}}), None);
    check_problem(&json!({"type": ["object", "null"]}), None);
    check_problem(&json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}), None);
}

#[test]
fn what_no_provider_takes_is_refused_with_the_reason() {
    check_problem(&json!([1]), Some("an object"));
    check_problem(&json!(true), Some("an object"));
    check_problem(&json!({"type": "string"}), Some("of type object"));
    check_problem(&json!({"type": ["string", "null"]}), Some("of type object"));
    check_problem(&json!({"type": "object", "oneOf": [{}]}), Some("oneOf at the top"));
    check_problem(&json!({"allOf": [{}]}), Some("allOf at the top"));
    check_problem(&json!({"q": 5}), Some("/properties/q"));
    check_problem(&json!({"q": "strnig"}), Some("/properties/q/type"));
    check_problem(&json!({"q": {"$ref": "#/nowhere"}}), Some("leads nowhere"));
    check_problem(&json!({"type": "object", "properties": []}), Some("/properties"));
}

#[test]
fn a_null_property_is_the_empty_schema() {
    check_properties(
        &json!({"q": null, "r": {"type": "string"}}),
        &json!({"q": {}, "r": {"type": "string"}}),
    );
    check(&json!({"q": null}), &json!({"type": "object", "properties": {"q": {}}}));
    check(&json!({"properties": {"q": null}}), &json!({"type": "object", "properties": {"q": {}}}));
    let nested = |inner: Value| json!({"o": {"type": "object", "properties": {"q": inner}}});
    check_properties(&nested(json!(null)), &nested(json!({})));
    check_properties(&json!({"q": {"default": null}}), &json!({"q": {"default": null}}));
}

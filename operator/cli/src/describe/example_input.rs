//! An example of an input, made from a skill's schema. Pure.

use serde_json::{Map, Value, json};

/// Depth of values within values. A recursive schema has no end.
const MAX_DEPTH: usize = 8;

/// Returns an input with the required fields of `schema`, or with all fields if it requires none.
pub(super) fn example_input(schema: Option<&Value>) -> Value {
    schema.map_or_else(|| json!({}), |root| example(root, root, 0))
}

fn example(root: &Value, schema: &Value, depth: usize) -> Value {
    if let Some(value) = given(schema) {
        return value.clone();
    }
    if depth >= MAX_DEPTH {
        return Value::Null;
    }
    if let Some(target) = schema["$ref"].as_str().and_then(|target| root.pointer(target.strip_prefix('#')?)) {
        return example(root, target, depth + 1);
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if let (Some(first), None) = (schema[choice].get(0), schema.get("type")) {
            return example(root, first, depth + 1);
        }
    }
    match type_of(schema) {
        "object" => object(root, schema, depth),
        "array" => array(root, schema, depth),
        "integer" | "number" => number(schema),
        "boolean" => json!(true),
        "null" => Value::Null,
        _ => text(schema),
    }
}

/// A value that the schema itself names.
fn given(schema: &Value) -> Option<&Value> {
    let listed = ["examples", "enum"].into_iter().find_map(|list| schema[list].get(0));
    schema.get("const").or_else(|| schema.get("default")).or(listed)
}

fn type_of(schema: &Value) -> &str {
    let named = schema["type"].as_str().or_else(|| schema["type"].get(0).and_then(Value::as_str));
    named.unwrap_or(if schema.get("properties").is_some() {
        "object"
    } else if schema.get("items").is_some() {
        "array"
    } else {
        "string"
    })
}

fn object(root: &Value, schema: &Value, depth: usize) -> Value {
    let nothing = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&nothing);
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_shown = |name: &str| required.is_empty() || required.contains(&name);
    let shown = properties.iter().filter(|(name, _)| is_shown(name));
    let mut made: Map<String, Value> =
        shown.map(|(name, field)| (name.clone(), example(root, field, depth + 1))).collect();
    for name in required {
        made.entry(name).or_insert_with(|| json!("..."));
    }
    Value::Object(made)
}

fn array(root: &Value, schema: &Value, depth: usize) -> Value {
    let least = schema["minItems"].as_u64().and_then(|least| usize::try_from(least).ok()).unwrap_or(1);
    let item = schema.get("items").map_or_else(|| json!("..."), |items| example(root, items, depth + 1));
    Value::Array(vec![item; least.clamp(1, MAX_DEPTH)])
}

fn number(schema: &Value) -> Value {
    if let Some(below) = schema["exclusiveMinimum"].as_i64() {
        return json!(below + 1);
    }
    let below_one = schema.get("maximum").filter(|most| most.as_f64().is_some_and(|most| most < 1.0));
    schema.get("minimum").or(below_one).cloned().unwrap_or_else(|| json!(1))
}

fn text(schema: &Value) -> Value {
    json!(match schema["format"].as_str() {
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T09:30:00Z",
        Some("email") => "person@example.com",
        Some("uri") => "https://example.com",
        Some(_) | None => "...",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &Value, expected: &Value) {
        assert_eq!(&example_input(Some(schema)), expected);
    }

    #[test]
    fn an_example_has_the_required_fields_with_values_of_their_types() {
        check(
            &json!({ "type": "object", "required": ["text", "count", "tags"], "properties": {
                "text": { "type": "string" }, "count": { "type": "integer", "minimum": 3 },
                "tags": { "items": { "enum": ["a", "b"] }, "minItems": 2 }, "note": { "type": "string" } } }),
            &json!({ "text": "...", "count": 3, "tags": ["a", "a"] }),
        );
    }

    #[test]
    fn a_schema_that_requires_nothing_shows_all_its_fields() {
        check(
            &json!({ "properties": { "on": { "type": "boolean" }, "day": { "format": "date" } } }),
            &json!({ "on": true, "day": "2026-01-31" }),
        );
        assert_eq!(example_input(None), json!({}));
    }

    #[test]
    fn references_and_alternatives_are_resolved_and_recursion_ends() {
        check(
            &json!({ "required": ["next"], "properties": { "next": { "anyOf": [{ "$ref": "#/$defs/node" }, { "type": "null" }] } },
                "$defs": { "node": { "examples": [{ "id": 7 }] } } }),
            &json!({ "next": { "id": 7 } }),
        );
        let endless = json!({ "$ref": "#" });
        assert_eq!(example_input(Some(&endless)), Value::Null);
    }
}

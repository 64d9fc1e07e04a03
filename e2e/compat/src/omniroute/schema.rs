//! `input_schema_normalise`: the parameters that a model sees, from the schema of a skill.

use serde_json::{Value, json};
use skillet_llm::tool_schema::{normalize, problem};

use crate::{
    case::Case,
    judge::{Answer, Sense, mentions},
};

pub(super) fn input_schema_normalise(case: &Case) -> Result<Answer, String> {
    let given = case.given("schema").unwrap_or(&Value::Null);
    let normal = normalize(given);
    let is_same = sort_required(&normal) == sort_required(&case.expected["schema"]);
    let refusal = problem(given);
    let want = case.want.as_deref().unwrap_or_default();
    let is_refusal_wanted = mentions(want, &["reject", "refuse", "admission"]);
    let meets_want = if want.is_empty() {
        Sense::Unknown
    } else if is_refusal_wanted {
        Sense::of(refusal.is_some())
    } else {
        Sense::of(!is_same && refusal.is_none())
    };
    let difference = named_difference(given, &case.expected["schema"], &normal);
    let value = json!({"schema": normal, "refused": refusal});
    Ok(Answer { value, is_same, meets_want, difference })
}

/// `required` is in the order of the properties, and objects are read without order.
fn sort_required(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(sort_required).collect(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                let mut value = sort_required(value);
                if name == "required"
                    && let Some(names) = value.as_array_mut()
                {
                    names.sort_by_key(Value::to_string);
                }
                (name.clone(), value)
            };
            Value::Object(fields.iter().map(field).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

/// Returns the intended difference of the product, see `skillet_llm::tool_schema`.
fn named_difference(given: &Value, expected: &Value, normal: &Value) -> Option<String> {
    if !given.is_object() {
        return Some("the parameters of a tool are always an object".to_owned());
    }
    let is_wrapped = expected["properties"] != normal["properties"]
        && normal["properties"] == given["properties"]
        && given["type"].as_str() != Some("object");
    if is_wrapped {
        return Some("a schema that lacks only its type is not wrapped".to_owned());
    }
    let has_data = has_object_at(given, &["default", "enum", "const", "example", "examples"]);
    if has_data {
        return Some("data in a schema is not taken for schemas".to_owned());
    }
    let has_map_name =
        has_object_at(&given["properties"], &["properties", "definitions", "patternProperties"]);
    has_map_name.then(|| "a property may have the name of a keyword".to_owned())
}

fn has_object_at(value: &Value, names: &[&str]) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| has_object_at(item, names)),
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            (names.contains(&name.as_str()) && !value.is_string()) || has_object_at(value, names)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::replay_case;

    fn check(schema: &Value, expected: &Value, verdict: &str, want: Option<&str>, result: &str) {
        let (input, expected) = (json!({ "schema": schema }), json!({ "schema": expected }));
        let verdict_text = replay_case("input_schema_normalise", verdict, want, &input, &expected);
        assert!(verdict_text.starts_with(result), "{schema}: {verdict_text}");
    }

    #[test]
    fn the_order_of_required_is_no_difference_and_all_else_is() {
        let of = |required: Value| json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": required});
        let given =
            json!({"type": "object", "properties": {"b": {"required": true}, "a": {"required": true}}});
        check(&given, &of(json!(["b", "a"])), "compat", None, "passed");
        check(&given, &of(json!(["b"])), "compat", None, "failed");
    }

    #[test]
    fn what_is_done_otherwise_is_skipped_by_name() {
        let wrapped = json!({"type": "object", "properties": {"properties": {"q": {"type": "string"}}}});
        let given = json!({"properties": {"q": {"type": "string"}}});
        check(&given, &wrapped, "compat", None, "a schema that lacks only its type");
        check(&given, &wrapped, "defect", Some("it is an object schema already"), "passed");
        let data =
            json!({"type": "object", "properties": {"q": {"type": "object", "default": {"a": "string"}}}});
        let spoiled = json!({"type": "object", "properties": {"q": {"type": "object", "default": {"a": {"type": "string"}}}}});
        check(&data, &spoiled, "compat", None, "data in a schema");
        check(&json!([]), &json!([]), "compat", None, "the parameters of a tool are always an object");
    }

    #[test]
    fn a_refusal_is_met_where_it_is_wanted() {
        let given = json!({"type": "string"});
        check(&given, &given, "defect", Some("refuse it at admission"), "passed");
        check(&json!({}), &given, "defect", Some("refuse it at admission"), "not the reference's defect");
    }
}

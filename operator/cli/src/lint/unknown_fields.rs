//! Fields that no version of the kind has. The API server refuses them, and this type ignores them.

use serde::Serialize;
use serde_json::Value;

/// Returns the fields of `object` that `parsed`, which was read from it, does not have.
pub(super) fn find(object: &Value, parsed: &impl Serialize) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(known) = serde_json::to_value(parsed) {
        compare(object, &known, "", &mut found);
    }
    found
}

/// An empty value is left out of the known form, so that its absence says nothing.
fn compare(written: &Value, known: &Value, path: &str, found: &mut Vec<String>) {
    match (written, known) {
        (Value::Object(written), Value::Object(known)) => {
            for (name, value) in written {
                let field = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match known.get(name) {
                    Some(known) => compare(value, known, &field, found),
                    None if is_empty(value) || is_default(&field, value) => {}
                    None => found.push(field),
                }
            }
        }
        (Value::Array(written), Value::Array(known)) => {
            for (index, (written, known)) in written.iter().zip(known).enumerate() {
                compare(written, known, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

/// True for the value of a known field that is not in the known form, since versions that were sealed before it keep their digest.
fn is_default(field: &str, value: &Value) -> bool {
    field == "spec.instructions.dynamic" && *value == "Never"
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_are_found_at_every_depth_and_empty_ones_are_not() {
        let written = json!({ "a": [{ "b": 1, "c": 2 }], "d": [], "e": null, "f": { "g": true } });
        let known = json!({ "a": [{ "b": 1 }], "f": {} });
        assert_eq!(find(&written, &known), ["a[0].c", "f.g"]);
    }
}

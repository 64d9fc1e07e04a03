//! The inputs of an operation: parameters and fields of the body in one object.

use serde_json::{Map, Value, json};

use super::names::placeholder_name;

/// Inputs so far.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Inputs {
    /// Adds an input and returns its name. One whose name is taken gets its place in front.
    pub(super) fn add(&mut self, name: &str, place: &str, schema: Value, is_required: bool) -> String {
        let plain = placeholder_name(name);
        let mut own = plain.clone();
        let mut number = 2;
        while self.properties.contains_key(&own) {
            own = if number == 2 { format!("{place}_{plain}") } else { format!("{place}_{plain}_{number}") };
            number += 1;
        }
        self.properties.insert(own.clone(), schema);
        if is_required {
            self.required.push(own.clone());
        }
        own
    }

    pub(super) fn schema(self) -> Value {
        let Self { properties, required } = self;
        let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }
}

/// Returns the schema with no more than type and description of each input.
pub(super) fn simplified(schema: &Value) -> Value {
    let kept = |input: &Value| {
        let fields = ["type", "description"].into_iter().filter_map(|field| {
            let value = input.get(field)?;
            let is_type = value.as_str().is_some_and(is_type_name);
            (is_type || field == "description" && value.is_string())
                .then(|| (field.to_owned(), value.clone()))
        });
        Value::Object(fields.collect())
    };
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let properties: Map<String, Value> =
        properties.iter().map(|(name, input)| (name.clone(), kept(input))).collect();
    let mut simple = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if let Some(required) = schema.get("required") {
        simple["required"] = required.clone();
    }
    simple
}

fn is_type_name(name: &str) -> bool {
    matches!(name, "string" | "number" | "integer" | "boolean" | "object" | "array" | "null")
}

//! The subschemas of a schema, and the targets of its references.

use serde_json::Value;

/// The part of the parent's value that a subschema applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AppliesTo {
    /// The same value.
    Here,
    /// One named property.
    Property,
    /// Properties by other criteria than their name.
    AnyProperty,
    Item,
    /// Nothing, unless a reference leads to it.
    Definition,
}

/// Returns the direct subschemas of `schema`.
pub(super) fn subschemas(schema: &Value) -> Vec<(AppliesTo, &Value)> {
    let mut found = Vec::new();
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let (place, is_map) = match keyword.as_str() {
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "extends" => {
                (AppliesTo::Here, false)
            }
            "dependentSchemas" | "dependencies" => (AppliesTo::Here, true),
            "properties" => (AppliesTo::Property, true),
            "patternProperties" => (AppliesTo::AnyProperty, true),
            "additionalProperties" | "unevaluatedProperties" | "propertyNames" => {
                (AppliesTo::AnyProperty, false)
            }
            "items" | "prefixItems" | "additionalItems" | "contains" | "unevaluatedItems" => {
                (AppliesTo::Item, false)
            }
            "$defs" | "definitions" => (AppliesTo::Definition, true),
            _ => continue,
        };
        match value {
            Value::Object(map) if is_map => found.extend(map.values().map(|sub| (place, sub))),
            Value::Array(list) if !is_map => found.extend(list.iter().map(|sub| (place, sub))),
            _ => found.push((place, value)),
        }
    }
    found
}

/// Keywords whose value is a reference.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Returns the targets of the references of `schema`; [`super::shape::check`] has verified that every reference has a target.
pub(super) fn resolve<'a>(root: &'a Value, schema: &Value) -> Vec<&'a Value> {
    let texts = REFERENCES.into_iter().filter_map(|keyword| schema.get(keyword)?.as_str());
    texts.filter_map(|text| root.pointer(text.strip_prefix('#')?)).collect()
}

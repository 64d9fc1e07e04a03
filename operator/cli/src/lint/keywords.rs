//! Misspelt keywords of a JSON Schema, which a validator ignores by the standard.

use serde_json::Value;

use crate::suggest::suggest;

/// Keywords whose value is a schema.
const SCHEMA: [&str; 11] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value has a schema under each name.
const NAMED: [&str; 5] = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];
const OTHER: [&str; 38] = [
    "$anchor",
    "$comment",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$ref",
    "$schema",
    "$vocabulary",
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependencies",
    "dependentRequired",
    "deprecated",
    "description",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "id",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "nullable",
    "pattern",
    "readOnly",
    "required",
];
const REST: [&str; 4] = ["title", "type", "uniqueItems", "writeOnly"];

/// A word in the place of a keyword, and the keywords that it is like.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misspelt {
    /// JSON pointer within the schema.
    pub(super) pointer: String,
    similar: Vec<String>,
}

impl Misspelt {
    pub(super) fn message(&self) -> String {
        format!("is no keyword of JSON Schema and has no effect; did you mean {}?", self.similar.join(", "))
    }
}

/// Returns words that are no keywords and look like one. Other unknown words are annotations.
pub(super) fn misspelt(schema: &Value) -> Vec<Misspelt> {
    let known = SCHEMA.iter().chain(&LIST).chain(&NAMED).chain(&OTHER).chain(&REST);
    let known: Vec<String> = known.map(ToString::to_string).collect();
    let mut found = Vec::new();
    visit(schema, "", &known, &mut found);
    found
}

fn visit(schema: &Value, at: &str, known: &[String], found: &mut Vec<Misspelt>) {
    for (word, value) in schema.as_object().into_iter().flatten() {
        let pointer = format!("{at}/{word}");
        if NAMED.contains(&word.as_str()) {
            for (name, schema) in value.as_object().into_iter().flatten() {
                visit(schema, &format!("{pointer}/{name}"), known, found);
            }
        } else if LIST.contains(&word.as_str()) || value.is_array() && word == "items" {
            for (index, schema) in value.as_array().into_iter().flatten().enumerate() {
                visit(schema, &format!("{pointer}/{index}"), known, found);
            }
        } else if SCHEMA.contains(&word.as_str()) {
            visit(value, &pointer, known, found);
        } else if !known.contains(word) && !word.starts_with("x-") {
            let similar = suggest(word, known);
            if !similar.is_empty() {
                found.push(Misspelt { pointer, similar });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_like_a_keyword_are_found_where_keywords_stand() {
        let schema = json!({
            "type": "object", "requird": ["a"], "x-note": "mine",
            "properties": { "propertys": { "items": { "minimun": 1 } }, "typ": {} },
            "anyOf": [{ "descripton": "x" }],
        });
        let found: Vec<String> = misspelt(&schema).into_iter().map(|word| word.pointer).collect();
        assert_eq!(found, ["/anyOf/0/descripton", "/properties/propertys/items/minimun", "/requird"]);
    }
}

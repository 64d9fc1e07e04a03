//! Misspelt keywords of a schema. A validator ignores what it does not know, so that such a schema checks less than it says.

use serde_json::Value;

use super::subschemas::subschemas;

/// Keywords of the drafts that are read, and of OpenAPI.
const KNOWN: [&str; 67] = [
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "discriminator",
    "else",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "extends",
    "externalDocs",
    "format",
    "id",
    "if",
    "items",
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
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];
/// Most edits between a keyword and its misspelling. A word with more is somebody's own annotation.
const MAX_EDITS: usize = 2;

/// Returns a sentence about the first keyword that is probably misspelt.
pub fn find_misspelt(schema: &Value) -> Option<String> {
    let mut waiting = vec![schema];
    while let Some(schema) = waiting.pop() {
        let keywords = schema.as_object().into_iter().flatten().map(|(keyword, _)| keyword.as_str());
        for keyword in keywords.filter(|keyword| !KNOWN.contains(keyword) && keyword.len() > 2 * MAX_EDITS) {
            if let Some(known) = KNOWN.iter().find(|known| edits(keyword, known) <= MAX_EDITS) {
                return Some(format!(
                    "has {keyword:?}, which is no keyword of JSON Schema; did you mean {known:?}?"
                ));
            }
        }
        waiting.extend(subschemas(schema).into_iter().map(|(_, sub)| sub));
    }
    None
}

/// Returns the number of letters to change, add or remove.
fn edits(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > MAX_EDITS {
        return usize::MAX;
    }
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (row, a) in a.bytes().enumerate() {
        let mut next = vec![row + 1];
        for (column, b) in b.bytes().enumerate() {
            let changed = last[column] + usize::from(a != b);
            next.push(changed.min(last[column + 1] + 1).min(next[column] + 1));
        }
        last = next;
    }
    last[b.len()]
}

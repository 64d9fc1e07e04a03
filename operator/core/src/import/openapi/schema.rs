//! Schemas of OpenAPI as JSON Schema without references. Where a schema holds itself, its inner copy takes anything.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::document::Document;
use crate::text::truncate;

/// Most schemas in one that is written out.
const MAX_NODES: usize = 256;
/// Most levels of schemas.
const MAX_DEPTH: usize = 20;
/// Longest description of a field, in bytes.
const MAX_TEXT: usize = 500;

/// The side that writes a value: some fields are of one side alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Response,
}

/// Writes references out.
#[derive(Debug)]
pub(super) struct Inliner<'a> {
    document: Document<'a>,
    direction: Direction,
    /// References around the current place.
    around: Vec<&'a str>,
    depth: usize,
    pub(super) nodes: usize,
    /// Reasons why a part takes anything.
    pub(super) cuts: BTreeSet<String>,
}

impl<'a> Inliner<'a> {
    pub(super) fn new(document: Document<'a>, direction: Direction) -> Self {
        Self { document, direction, around: Vec::new(), depth: 0, nodes: 0, cuts: BTreeSet::new() }
    }

    /// Returns the schema with everything that it refers to.
    pub(super) fn schema(&mut self, schema: &'a Value) -> Value {
        self.nodes += 1;
        if self.nodes > MAX_NODES || self.depth >= MAX_DEPTH {
            self.cuts.insert("a schema is too large; its inner parts take anything".to_owned());
            return json!({});
        }
        self.depth += 1;
        let schema = match schema {
            Value::Object(fields) => match fields.get("$ref").and_then(Value::as_str) {
                Some(reference) => self.referred(reference, fields),
                None => self.written(fields),
            },
            Value::Bool(_) => schema.clone(),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => json!({}),
        };
        self.depth -= 1;
        schema
    }

    fn referred(&mut self, reference: &'a str, beside: &'a Map<String, Value>) -> Value {
        if self.around.contains(&reference) {
            self.cuts.insert(format!("{reference} holds itself; its inner copy takes anything"));
            return json!({});
        }
        let found = match self.document.find(reference) {
            Ok(found) => found,
            Err(why) => {
                self.cuts.insert(format!("{why}; that part takes anything"));
                return json!({});
            }
        };
        self.around.push(reference);
        let mut schema = self.schema(found);
        self.around.pop();
        if let (Some(schema), Some(text)) = (schema.as_object_mut(), beside.get("description")) {
            schema.insert("description".to_owned(), short(text));
        }
        schema
    }

    fn written(&mut self, fields: &'a Map<String, Value>) -> Value {
        let mut schema = Map::new();
        for (name, value) in fields {
            let value = match name.as_str() {
                "properties" | "patternProperties" | "$defs" | "dependentSchemas" => self.map(value),
                "items"
                | "additionalProperties"
                | "not"
                | "contains"
                | "propertyNames"
                | "if"
                | "then"
                | "else"
                | "unevaluatedProperties"
                | "unevaluatedItems" => self.schema(value),
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    let list = value.as_array().into_iter().flatten();
                    Value::Array(list.map(|schema| self.schema(schema)).collect())
                }
                "description" | "title" => short(value),
                "type" | "required" | "enum" | "const" | "default" | "format" | "pattern" | "minimum"
                | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" | "minLength"
                | "maxLength" | "minItems" | "maxItems" | "uniqueItems" | "minProperties"
                | "maxProperties" | "minContains" | "maxContains" | "dependentRequired" => value.clone(),
                // Words of OpenAPI, examples, and identifiers that a reference could need.
                _ => continue,
            };
            schema.insert(name.clone(), value);
        }
        self.without_foreign_fields(fields, &mut schema);
        as_2020(fields, &mut schema);
        Value::Object(schema)
    }

    fn map(&mut self, value: &'a Value) -> Value {
        let fields = value.as_object().into_iter().flatten();
        Value::Object(fields.map(|(name, schema)| (name.clone(), self.schema(schema))).collect())
    }

    /// Leaves out the fields that the other side writes.
    fn without_foreign_fields(&self, fields: &'a Map<String, Value>, schema: &mut Map<String, Value>) {
        let word = match self.direction {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
        };
        let properties = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
        let is_foreign = |value: &'a Value| {
            value[word] == true || self.document.resolve(value).is_ok_and(|found| found[word] == true)
        };
        let foreign: Vec<&String> =
            properties.filter(|(_, value)| is_foreign(value)).map(|(name, _)| name).collect();
        for name in foreign {
            if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                properties.remove(name);
            }
            if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
                required.retain(|other| other != name.as_str());
            }
        }
    }
}

/// Turns the words of 3.0 into those of JSON Schema 2020-12: `nullable`, and bounds with a boolean beside them.
fn as_2020(fields: &Map<String, Value>, schema: &mut Map<String, Value>) {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if let Some(Value::Bool(is_exclusive)) = schema.get(exclusive).cloned() {
            schema.remove(exclusive);
            if is_exclusive && let Some(number) = schema.remove(bound) {
                schema.insert(exclusive.to_owned(), number);
            }
        }
    }
    if fields.get("nullable") == Some(&Value::Bool(true)) {
        if let Some(name @ Value::String(_)) = schema.get("type").cloned() {
            schema.insert("type".to_owned(), json!([name, "null"]));
        }
        if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut)
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    }
    // "file" and the like are types of older formats.
    if schema.get("type").is_some_and(|name| *name == json!("file")) {
        schema.insert("type".to_owned(), json!("string"));
    }
}

fn short(text: &Value) -> Value {
    truncate(text.as_str().unwrap_or_default(), MAX_TEXT).0.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inlined(root: &Value, direction: Direction) -> (Value, Vec<String>) {
        let mut inliner = Inliner::new(Document::new(root), direction);
        let schema = inliner.schema(&root["s"]);
        (schema, inliner.cuts.into_iter().collect())
    }

    #[test]
    fn references_are_written_out_and_cycles_end() {
        let root = json!({"s": {"$ref": "#/node", "description": "The root."},
            "node": {"type": "object", "description": "A node.", "properties": {"next": {"$ref": "#/node"},
                "tags": {"type": "array", "items": {"$ref": "#/tag"}}}}, "tag": {"type": "string"}});
        let (schema, cuts) = inlined(&root, Direction::Request);
        let expected = json!({"type": "object", "description": "The root.",
            "properties": {"next": {}, "tags": {"type": "array", "items": {"type": "string"}}}});
        assert_eq!(schema, expected);
        assert_eq!(cuts, ["#/node holds itself; its inner copy takes anything"]);
    }

    #[test]
    fn fields_of_the_other_side_are_left_out() {
        let root = json!({"s": {"required": ["id", "key"], "properties": {"id": {"readOnly": true}, "key": {"writeOnly": true},
            "name": {"type": "string", "example": "x", "x-more": 1, "xml": {}}}}});
        let request = json!({"required": ["key"], "properties": {"key": {}, "name": {"type": "string"}}});
        assert_eq!(inlined(&root, Direction::Request).0, request);
        let response = json!({"required": ["id"], "properties": {"id": {}, "name": {"type": "string"}}});
        assert_eq!(inlined(&root, Direction::Response).0, response);
    }

    #[test]
    fn words_of_3_0_become_json_schema() {
        let root = json!({"s": {"allOf": [
            {"type": "integer", "minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false, "nullable": true},
            {"type": "string", "enum": ["a"], "nullable": true}, {"type": "file"}, true]}});
        let expected = json!({"allOf": [{"type": ["integer", "null"], "exclusiveMinimum": 1, "maximum": 9},
            {"type": ["string", "null"], "enum": ["a", null]}, {"type": "string"}, true]});
        assert_eq!(inlined(&root, Direction::Request).0, expected);
    }

    #[test]
    fn large_and_broken_schemas_are_cut() {
        let many: Map<String, Value> = (0..MAX_NODES + 5).map(|n| (format!("p{n}"), json!({}))).collect();
        let (_, cuts) = inlined(&json!({"s": {"properties": many}}), Direction::Request);
        assert_eq!(cuts, ["a schema is too large; its inner parts take anything"]);
        let deep = (0..MAX_DEPTH + 5).fold(json!({}), |inner, _| json!({ "items": inner }));
        assert_eq!(inlined(&json!({ "s": deep }), Direction::Request).1.len(), 1);
        let (schema, cuts) =
            inlined(&json!({"s": {"items": {"$ref": "a.yaml"}, "not": 5}}), Direction::Request);
        assert_eq!(schema, json!({"items": {}, "not": {}}));
        assert!(cuts[0].contains("outside of the document"), "{cuts:?}");
    }
}

//! Parameters of a tool from the schema of a skill: common mistakes are repaired, hopeless schemas refused.
//!
//! The repairs are OmniRoute's, so that a skill that moved from it keeps its parameters. Three repairs differ,
//! because OmniRoute's break valid schemas: a top level that lacks only its type is not wrapped, values in `default`,
//! `enum` and the like are data, and a property may be called `properties`.

use serde_json::{Map, Value, json};

use skillet_core::schema::Schema;

/// Most levels below the top. What is deeper is not repaired, and is refused.
pub const DEPTH_LIMIT: usize = 32;

/// Keywords whose value maps names to schemas.
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keywords whose value is data of the user's.
const DATA: [&str; 5] = ["default", "enum", "const", "example", "examples"];
/// Keywords by which an object is a schema, whatever their value is.
const KEYWORDS: [&str; 21] = [
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "default",
    "dependencies",
    "discriminator",
    "else",
    "enum",
    "example",
    "examples",
    "if",
    "items",
    "oneOf",
    "patternProperties",
    "properties",
    "propertyNames",
    "then",
];
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
/// Keywords that providers refuse at the top of a tool's parameters.
const NOT_AT_TOP: [&str; 6] = ["allOf", "anyOf", "const", "enum", "not", "oneOf"];

/// `schema` as a tool's parameters: a JSON Schema of type object.
///
/// A map of names to types or schemas becomes an object's properties, at the top and below; a type's name stands for a
/// schema of that type; `required: true` at a property moves to the list of its parent. What is no object is the empty
/// object.
pub fn normalize(schema: &Value) -> Value {
    let Value::Object(given) = schema else {
        return json!({"type": "object", "properties": {}});
    };
    let mut top = given.clone();
    if lacks_only_its_type(given) {
        top.insert("type".to_owned(), json!("object"));
    } else if !given.get("type").is_some_and(Value::is_string) {
        let properties = given.iter().map(|(name, value)| {
            let value = if value.is_string() { json!({ "type": value }) } else { value.clone() };
            (name.clone(), value)
        });
        let properties: Map<String, Value> = properties.collect();
        top = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), Value::Object(properties)),
        ]);
    }
    let mut top = Value::Object(top);
    repair(&mut top, Position::Top, 0);
    top
}

/// Returns true for a schema, as against a map of properties: some keyword in it cannot be a property.
fn lacks_only_its_type(schema: &Map<String, Value>) -> bool {
    let is_schema = |value: &Value| value.is_object() || value.is_boolean() || value.is_null();
    schema.iter().any(|(keyword, value)| match keyword.as_str() {
        "type" | "required" | "anyOf" | "oneOf" | "allOf" => value.is_array(),
        "additionalProperties" => value.is_boolean(),
        "properties" => value.as_object().is_some_and(|map| map.values().all(is_schema)),
        keyword => keyword.starts_with('$'),
    })
}

/// The position of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Top,
    /// It is none, but a map of names to schemas.
    Map,
    /// Below a keyword or a name; so are the items of a list there.
    Below,
}

fn repair(schema: &mut Value, place: Position, depth: usize) {
    if depth > DEPTH_LIMIT {
        return;
    }
    let fields = match schema {
        Value::Array(items) => return items.iter_mut().for_each(|item| repair(item, place, depth + 1)),
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
    };
    match place {
        Position::Map => spell_out_types(fields, true),
        Position::Below if !is_schema(fields) => spell_out_types(fields, false),
        Position::Below | Position::Top => (),
    }
    for (name, value) in fields.iter_mut() {
        let name = name.as_str();
        match place {
            Position::Top | Position::Below if MAPS.contains(&name) => {
                repair(value, Position::Map, depth + 1);
            }
            Position::Top | Position::Below if DATA.contains(&name) => (),
            Position::Map | Position::Top | Position::Below => repair(value, Position::Below, depth + 1),
        }
    }
    if place == Position::Map {
        return;
    }
    if is_bare_map(fields) {
        let properties = std::mem::take(fields);
        fields.insert("type".to_owned(), json!("object"));
        fields.insert("properties".to_owned(), Value::Object(properties));
    }
    move_required(fields);
}

/// `"q": "string"` becomes `"q": {"type": "string"}`, and `"q": null` the empty schema; outside of a map only for the names of types, since other text
/// may be a title.
fn spell_out_types(fields: &mut Map<String, Value>, is_map: bool) {
    for value in fields.values_mut() {
        if is_map && value.is_null() {
            *value = json!({});
        }
        let is_type =
            value.as_str().is_some_and(|text| TYPES.contains(&text) || (is_map && !text.is_empty()));
        if is_type {
            *value = json!({ "type": value.take() });
        }
    }
}

fn is_schema(fields: &Map<String, Value>) -> bool {
    fields.iter().any(|(keyword, value)| match keyword.as_str() {
        "type" => value.is_string() || value.is_array(),
        "required" => value.is_array(),
        keyword => keyword.starts_with("x-") || KEYWORDS.contains(&keyword),
    })
}

fn is_bare_map(fields: &Map<String, Value>) -> bool {
    !fields.is_empty() && !is_schema(fields) && fields.values().all(Value::is_object)
}

/// Takes `required` that is no list off each property, and lists those where it was true.
fn move_required(fields: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = fields.get_mut("properties") else { return };
    let mut required = Vec::new();
    for (name, property) in properties.iter_mut() {
        let Value::Object(property) = property else { continue };
        if property.get("required").is_some_and(|value| !value.is_array()) {
            let is_true = property.remove("required") == Some(Value::Bool(true));
            required.extend(is_true.then(|| Value::String(name.clone())));
        }
    }
    let listed = match fields.get("required") {
        Some(Value::Array(listed)) => Some(listed.iter().filter(|name| name.is_string()).cloned().collect()),
        _ => None,
    };
    let has_list = listed.is_some();
    let mut all: Vec<Value> = listed.unwrap_or_default();
    for name in required {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    if !all.is_empty() {
        fields.insert("required".to_owned(), Value::Array(all));
    } else if !has_list {
        fields.remove("required");
    }
}

/// The reason why no tool can have these parameters, for the author of the schema. `None` if a tool can.
pub fn problem(schema: &Value) -> Option<String> {
    let Value::Object(given) = schema else {
        return Some("the parameters of a tool are an object".to_owned());
    };
    let is_object = match given.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        Some(_) | None => true,
    };
    if !is_object {
        return Some("the parameters of a tool are of type object".to_owned());
    }
    if levels_exceed(schema, DEPTH_LIMIT) {
        return Some(format!("it is nested more than {DEPTH_LIMIT} levels deep"));
    }
    let parameters = normalize(schema);
    if let Some(keyword) = NOT_AT_TOP.into_iter().find(|keyword| parameters.get(keyword).is_some()) {
        return Some(format!("model providers do not take {keyword} at the top of a tool's parameters"));
    }
    Schema::compile("parameters", &parameters).err().map(|error| error.why)
}

fn levels_exceed(value: &Value, limit: usize) -> bool {
    let mut waiting = vec![(value, 0)];
    while let Some((value, level)) = waiting.pop() {
        match value {
            Value::Array(_) | Value::Object(_) if level > limit => return true,
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(fields) => waiting.extend(fields.values().map(|field| (field, level + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
        }
    }
    false
}

#[cfg(test)]
mod tests;

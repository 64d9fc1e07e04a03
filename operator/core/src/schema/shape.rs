//! Restrictions on schemas beyond valid JSON Schema: small, local, and bounded in cost.

use std::collections::HashSet;

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde_json::Value;
use skillet_api::Reason;

use super::{
    cost::{self, MAX_COST, MAX_LEVELS, Size},
    subschemas::{REFERENCES, resolve, subschemas},
};

/// Largest schema, as compact JSON.
const MAX_BYTES: usize = 128 * 1024;
/// Most patterns in one schema.
pub(super) const MAX_PATTERNS: usize = 100;

/// The reason why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is not a JSON Schema that can be used: {why}")]
pub struct SchemaError {
    pub field: String,
    pub why: String,
}

impl SchemaError {
    /// Returns the reason for the input's schema or the output's, by the field.
    pub fn reason(&self) -> Reason {
        if self.field.ends_with("outputSchema") {
            Reason::OutputSchemaInvalid
        } else {
            Reason::InputSchemaInvalid
        }
    }
}

/// Refuses a schema that could not be checked safely; returns the size of other schemas.
pub(super) fn check(root: &Value) -> Result<Size, String> {
    if !root.is_object() && !root.is_boolean() {
        return Err("a schema is an object".to_owned());
    }
    let bytes = root.to_string().len();
    if bytes > MAX_BYTES {
        return Err(format!("it has {bytes} bytes, at most {MAX_BYTES} are allowed"));
    }
    let mut seen = HashSet::new();
    let mut levels = levels(root);
    let (mut patterns, mut has_references) = (0, false);
    let (mut pattern_steps, mut pattern_bytes, mut options) = (0_u64, 0_u64, 0);
    let mut waiting = vec![root];
    while let Some(schema) = waiting.pop() {
        if !seen.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        check_identity(root, schema)?;
        check_references(root, schema)?;
        for pattern in self::patterns(schema) {
            patterns += 1;
            pattern_steps = pattern_steps.saturating_add(cost::pattern_steps(pattern));
            pattern_bytes = pattern_bytes.saturating_add(cost::pattern_bytes(pattern));
        }
        options += schema.get("enum").and_then(Value::as_array).map_or(0, |options| options.len() as u64);
        for target in resolve(root, schema) {
            has_references = true;
            if !seen.contains(&std::ptr::from_ref(target)) {
                levels += self::levels(target);
            }
            waiting.push(target);
        }
        waiting.extend(subschemas(schema).into_iter().map(|(_, sub)| sub));
    }
    if patterns > MAX_PATTERNS {
        return Err(format!("it has {patterns} patterns, at most {MAX_PATTERNS} are allowed"));
    }
    if levels > MAX_LEVELS {
        return Err("it is nested too deeply; use fewer references to references".to_owned());
    }
    let cost = cost::cost(root);
    if cost > MAX_COST {
        return Err("its alternatives multiply; use fewer allOf, anyOf, oneOf within each other".to_owned());
    }
    Ok(Size { bytes, levels, has_references, cost, pattern_steps, pattern_bytes, options })
}

fn check_identity(root: &Value, schema: &Value) -> Result<(), String> {
    // A name inside the schema would change what #/... means below it.
    let is_named = ["$id", "id"].into_iter().any(|keyword| schema.get(keyword).is_some_and(Value::is_string));
    if is_named && !std::ptr::eq(root, schema) {
        return Err("$id is read at the top only; remove it from the parts".to_owned());
    }
    Ok(())
}

fn check_references(root: &Value, schema: &Value) -> Result<(), String> {
    for text in REFERENCES.into_iter().filter_map(|keyword| schema.get(keyword)?.as_str()) {
        let place = text.strip_prefix('#').filter(|place| place.is_empty() || place.starts_with('/'));
        match place {
            Some(place) if root.pointer(place).is_some() => (),
            Some(_) => return Err(format!("{text:?} leads nowhere in the schema")),
            None => {
                return Err(format!(
                    "{text:?} is not followed; refer to a part of the same schema, like #/$defs/name"
                ));
            }
        }
    }
    Ok(())
}

fn patterns(schema: &Value) -> impl Iterator<Item = &str> {
    let own = schema.get("pattern").and_then(Value::as_str);
    let of_names = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
    own.into_iter().chain(of_names.map(|(pattern, _)| pattern.as_str()))
}

/// Returns the nesting depth of a JSON value.
fn levels(value: &Value) -> u64 {
    let mut deepest = 0;
    let mut waiting = vec![(value, 1)];
    while let Some((value, level)) = waiting.pop() {
        deepest = deepest.max(level);
        match value {
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(fields) => waiting.extend(fields.values().map(|field| (field, level + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
        }
    }
    deepest
}

/// Returns the compiler's message, with the position in the schema.
pub(super) fn explain(error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().to_string();
    let why = match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => {
            let pattern = super::violation::short(error.instance());
            let text = error.instance().as_str().unwrap_or_default();
            let is_backtracking = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|part| text.contains(part))
                || (1..=9).any(|number| text.contains(&format!("\\{number}")));
            if is_backtracking {
                format!(
                    "{pattern} is not a pattern that matches in linear time; use no look-around and no back-references"
                )
            } else {
                format!(
                    "{pattern} is not a pattern that can be used; check its brackets, escapes and repetitions"
                )
            }
        }
        _ => format!("expected {}", super::violation::expectation(error)),
    };
    if pointer.is_empty() { why } else { format!("at {pointer}: {why}") }
}

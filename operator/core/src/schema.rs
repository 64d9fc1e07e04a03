//! JSON Schema: compiles a skill's schemas, and checks values against them.
//!
//! Nothing is fetched, and no schema can make a check hang or overflow the stack. References stay inside the schema,
//! patterns match in time linear in text and pattern, and `cost` bounds the work of a check before it starts.

mod cost;
mod shape;
mod subschemas;
mod violation;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

pub use shape::SchemaError;
pub use violation::{Violation, summarize};

/// Largest compiled pattern in bytes: above any sensible pattern, and little even if a schema has a hundred.
const MAX_PATTERN_BYTES: usize = 256 << 10;

/// Violations that are collected; more are not counted.
const MAX_VIOLATIONS: usize = 1000;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    source: Value,
    validator: Validator,
    size: cost::Size,
}

impl Schema {
    /// Compiles `schema`; the message of an error names `field`.
    pub fn compile(field: &str, schema: &Value) -> Result<Self, SchemaError> {
        let size = shape::check(schema).map_err(|why| SchemaError { field: field.to_owned(), why })?;
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(
                PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES),
            )
            .build(schema)
            .map_err(|error| SchemaError { field: field.to_owned(), why: shape::explain(&error) })?;
        Ok(Self { source: schema.clone(), validator, size })
    }

    /// Returns every position at which `value` violates the schema.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        let shape = cost::Instance::of(value);
        if let Some(why) = self.size.refuses(&shape) {
            return Err(vec![Violation { pointer: String::new(), expected: why.to_owned() }]);
        }
        if self.validator.is_valid(value) {
            return Ok(());
        }
        if !cost::can_be_explained(&self.source, &shape) {
            // An explanation costs more than a check: it lists alternatives within alternatives.
            let expected =
                "a value that satisfies the schema, which is too recursive to say where it does not";
            return Err(vec![Violation { pointer: String::new(), expected: expected.to_owned() }]);
        }
        Err(self.validator.iter_errors(value).take(MAX_VIOLATIONS).map(|e| Violation::from(&e)).collect())
    }
}

#[cfg(test)]
mod tests;

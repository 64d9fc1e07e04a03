//! JSON Schema: compiles a skill's schemas, and checks values against them.
//!
//! Nothing is fetched, and no schema can make a check hang or overflow the stack. References stay inside the schema,
//! patterns match in time linear in text and pattern, and `cost` bounds the work of a check before it starts.

mod cost;
mod keywords;
mod shape;
mod subschemas;
mod violation;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

pub use keywords::find_misspelt;
pub use shape::SchemaError;
pub use violation::{Violation, summarize};

/// Largest compiled pattern in bytes: above any sensible pattern, and little even if a schema has a hundred.
const MAX_PATTERN_BYTES: usize = 256 << 10;

/// Bytes of the compiled form, patterns apart, for each byte of a schema's text.
const NODE_FACTOR: usize = 16;

/// Violations that are collected; more are not counted.
const MAX_VIOLATIONS: usize = 1000;

/// A schema that compiles.
#[derive(Debug)]
pub struct Schema {
    source: Value,
    /// `None` once it was released.
    compiled: Mutex<Option<Arc<Validator>>>,
    size: cost::Size,
}

impl Schema {
    /// Compiles `schema`; the message of an error names `field`.
    pub fn compile(field: &str, schema: &Value) -> Result<Self, SchemaError> {
        let size = shape::check(schema).map_err(|why| SchemaError { field: field.to_owned(), why })?;
        let compiled = build(schema)
            .map_err(|error| SchemaError { field: field.to_owned(), why: shape::explain(&error) })?;
        Ok(Self { source: schema.clone(), compiled: Mutex::new(Some(Arc::new(compiled))), size })
    }

    /// Frees the compiled form, which is most of a schema's memory. Each later check compiles one of its own.
    pub fn release(&self) {
        *self.lock() = None;
    }

    /// Returns an estimate of the bytes of the compiled form.
    pub fn compiled_size(&self) -> usize {
        let patterns = self.size.pattern_bytes.min((MAX_PATTERN_BYTES * shape::MAX_PATTERNS) as u64);
        // A pattern has an automaton, and a cache of its states that is as large.
        self.size.bytes * NODE_FACTOR + 2 * usize::try_from(patterns).unwrap_or(usize::MAX / 4)
    }

    #[cfg(test)]
    pub(crate) fn is_compiled(&self) -> bool {
        self.lock().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Validator>>> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns every position at which `value` violates the schema.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        let shape = cost::Instance::of(value);
        if let Some(why) = self.size.refuses(&shape) {
            return Err(vec![Violation { pointer: String::new(), expected: why.to_owned() }]);
        }
        let compiled = self.lock().clone();
        let compiled = match compiled.map_or_else(|| build(&self.source).map(Arc::new), Ok) {
            Ok(compiled) => compiled,
            // It compiled before.
            Err(error) => {
                let expected = format!("a schema that compiles again: {}", shape::explain(&error));
                return Err(vec![Violation { pointer: String::new(), expected }]);
            }
        };
        if compiled.is_valid(value) {
            return Ok(());
        }
        if !cost::can_be_explained(&self.source, &shape) {
            // An explanation costs more than a check: it lists alternatives within alternatives.
            let expected =
                "a value that satisfies the schema, which is too recursive to say where it does not";
            return Err(vec![Violation { pointer: String::new(), expected: expected.to_owned() }]);
        }
        Err(compiled.iter_errors(value).take(MAX_VIOLATIONS).map(|e| Violation::from(&e)).collect())
    }
}

fn build(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    let limits = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
    jsonschema::options().offline().with_pattern_options(limits).build(schema)
}

#[cfg(test)]
mod tests;

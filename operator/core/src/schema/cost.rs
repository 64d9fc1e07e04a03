//! An upper bound for the work of a check, from the schema and the size of the value, before the check starts.
//!
//! The validator does not memoize alternatives, so sixty lines of `anyOf` over `anyOf` would run for years.

use std::collections::HashMap;

use serde_json::Value;

use super::subschemas::{AppliesTo, resolve, subschemas};

/// Most evaluations of subschemas that one check may need.
const MAX_WORK: u64 = 5_000_000;
/// Most steps of all patterns over all texts of a value.
const MAX_STEPS: u64 = 1_000_000_000;
/// Most comparisons of values with the options of enums.
const MAX_COMPARISONS: u64 = 50_000_000;
/// Most evaluations for one path into a value.
pub(super) const MAX_COST: u64 = 20_000;
/// Most levels of recursion: a quarter of what fits on a thread's usual 2 MiB stack, without optimization.
pub(super) const MAX_LEVELS: u64 = 2_000;

/// Size of a value.
pub(super) struct Instance {
    depth: u64,
    values: u64,
    /// Bytes of all texts and names.
    bytes: u64,
}

impl Instance {
    pub(super) fn of(value: &Value) -> Self {
        let (mut depth, mut values, mut bytes) = (0, 0, 0);
        let mut waiting = vec![(value, 1)];
        while let Some((value, level)) = waiting.pop() {
            values += 1;
            depth = depth.max(level);
            match value {
                Value::Array(items) => waiting.extend(items.iter().map(|item| (item, level + 1))),
                Value::Object(fields) => {
                    bytes += fields.keys().map(|name| name.len() as u64).sum::<u64>();
                    waiting.extend(fields.values().map(|field| (field, level + 1)));
                }
                Value::String(text) => bytes += text.len() as u64,
                Value::Null | Value::Bool(_) | Value::Number(_) => (),
            }
        }
        Self { depth, values, bytes }
    }
}

/// Size of a schema that [`super::shape::check`] let pass.
#[derive(Debug)]
pub(super) struct Size {
    /// As compact JSON.
    pub(super) bytes: usize,
    /// Nesting of the schema and of everything it refers to.
    pub(super) levels: u64,
    pub(super) has_references: bool,
    /// Evaluations for one path into a value.
    pub(super) cost: u64,
    /// Most steps of all patterns for one byte.
    pub(super) pattern_steps: u64,
    /// Bytes of the automata of all patterns.
    pub(super) pattern_bytes: u64,
    /// Options of all enums.
    pub(super) options: u64,
}

impl Size {
    /// Returns the reason to refuse a check of a value of this size.
    pub(super) fn refuses(&self, value: &Instance) -> Option<&'static str> {
        let rounds = if self.has_references { value.depth } else { 1 };
        if self.levels.saturating_mul(rounds) > MAX_LEVELS {
            return Some("a value that is nested less deeply; this one is too deep for its recursive schema");
        }
        let is_too_much = self.cost.saturating_mul(value.values) > MAX_WORK
            || self.pattern_steps.saturating_mul(value.bytes) > MAX_STEPS
            || self.options.saturating_mul(value.values) > MAX_COMPARISONS;
        is_too_much.then_some("a smaller value; this one is too large to be checked against its schema")
    }
}

/// Returns the most steps of a pattern for one byte: as many as it has states. A counted repetition repeats the states of
/// what it counts.
pub(super) fn pattern_steps(pattern: &str) -> u64 {
    let counts = pattern.split('{').skip(1).filter_map(|rest| {
        let numbers = rest.split('}').next()?.split(',');
        numbers.filter_map(|number| number.parse::<u64>().ok()).max()
    });
    counts.fold(pattern.len() as u64, |states, count| states.saturating_mul(count.max(1)))
}

/// Returns an estimate of the bytes of a pattern's automaton. A class of Unicode characters has many states.
pub(super) fn pattern_bytes(pattern: &str) -> u64 {
    const STATE: u64 = 48;
    const CLASSES: [(&str, u64); 9] = [
        ("\\w", 256),
        ("\\W", 256),
        ("\\p", 256),
        ("\\P", 256),
        ("\\d", 64),
        ("\\D", 64),
        ("\\s", 16),
        ("\\S", 16),
        ("[^", 16),
    ];
    let length = pattern.len().max(1) as u64;
    let classes: u64 =
        CLASSES.iter().map(|(class, states)| pattern.matches(class).count() as u64 * states).sum();
    let states = pattern_steps(pattern).saturating_mul(length + classes) / length;
    states.saturating_mul(STATE).min(super::MAX_PATTERN_BYTES as u64)
}

/// Returns the evaluations for one path into a value, if a recursive reference counts once.
pub(super) fn cost(root: &Value) -> u64 {
    Walk { root, step: 0, known: HashMap::new() }.cost(root, 0)
}

/// True if collecting every error of a value of this size is affordable.
pub(super) fn can_be_explained(root: &Value, value: &Instance) -> bool {
    let mut walk = Walk { root, step: 1, known: HashMap::new() };
    walk.cost(root, value.depth).saturating_mul(value.values) <= MAX_WORK
}

struct Walk<'a> {
    root: &'a Value,
    /// Depth that one level of the value uses up.
    step: u64,
    /// Cost of reference targets by address and remaining depth; `None` while being computed.
    known: HashMap<(*const Value, u64), Option<u64>>,
}

impl<'a> Walk<'a> {
    fn cost(&mut self, schema: &'a Value, depth: u64) -> u64 {
        let mut sum: u64 = 1;
        let (mut named, mut any_name, mut any_item): (u64, u64, u64) = (0, 0, 0);
        for (place, sub) in subschemas(schema) {
            if place == AppliesTo::Definition {
                continue;
            }
            if place == AppliesTo::Here {
                sum = sum.saturating_add(self.cost(sub, depth));
                continue;
            }
            if self.step > depth {
                continue;
            }
            let below = self.cost(sub, depth - self.step);
            match place {
                // A path into the value goes through one of several named properties.
                AppliesTo::Property => named = named.max(below),
                AppliesTo::AnyProperty => any_name = any_name.saturating_add(below),
                AppliesTo::Item => any_item = any_item.saturating_add(below),
                AppliesTo::Here | AppliesTo::Definition => (),
            }
        }
        for target in resolve(self.root, schema) {
            sum = sum.saturating_add(self.target(target, depth));
        }
        sum.saturating_add(named.saturating_add(any_name).max(any_item))
    }

    fn target(&mut self, target: &'a Value, depth: u64) -> u64 {
        let key = (std::ptr::from_ref(target), depth);
        if let Some(known) = self.known.get(&key) {
            return known.unwrap_or(1);
        }
        self.known.insert(key, None);
        let cost = self.cost(target, depth);
        self.known.insert(key, Some(cost));
        cost
    }
}

//! Tokens and other counts of responses, summed over the rounds of a conversation.

use serde_json::{Number, Value};

/// The usage object of one response, or the sum of several: every number at any depth, under the provider's own names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage(Value);

impl Usage {
    /// Reads a usage object. Anything else counts nothing.
    pub(crate) fn of(usage: Option<&Value>) -> Self {
        Self(usage.filter(|usage| usage.is_object()).cloned().unwrap_or_default())
    }

    /// Adds the counts of another response. Fields that are no numbers are the later response's.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        add(&mut self.0, &other.0);
        self
    }

    /// Replaces a usage object. A response that counts nothing stays as it is.
    pub(crate) fn write(&self, usage: Option<&mut Value>) {
        if let Some(usage) = usage.filter(|usage| usage.is_object() && !self.0.is_null()) {
            usage.clone_from(&self.0);
        }
    }
}

fn add(total: &mut Value, more: &Value) {
    match (total, more) {
        (_, Value::Null) => {}
        (Value::Object(total), Value::Object(more)) => {
            for (name, count) in more {
                add(total.entry(name.clone()).or_insert(Value::Null), count);
            }
        }
        (Value::Array(total), Value::Array(more)) => more.iter().for_each(|item| add_item(total, item)),
        (Value::Number(total), Value::Number(more)) => *total = sum(total, more),
        (total, more) => total.clone_from(more),
    }
}

/// Adds an item of a list to the one of the same kind, such as the tokens of one modality.
fn add_item(total: &mut Vec<Value>, item: &Value) {
    match total.iter_mut().find(|own| own.is_object() && labels(own).eq(labels(item))) {
        Some(own) => add(own, item),
        None => total.push(item.clone()),
    }
}

/// The fields of an item that are texts.
fn labels(item: &Value) -> impl Iterator<Item = (&String, &Value)> {
    item.as_object().into_iter().flatten().filter(|(_, value)| value.is_string())
}

fn sum(one: &Number, other: &Number) -> Number {
    if let Some((one, other)) = one.as_u64().zip(other.as_u64()) {
        return one.saturating_add(other).into();
    }
    let sum = one.as_f64().zip(other.as_f64()).and_then(|(one, other)| Number::from_f64(one + other));
    sum.unwrap_or_else(|| other.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::DialectName;

    fn check(usages: &[Value], expected: &Value) {
        let sum = usages.iter().fold(Usage::default(), |sum, usage| sum.plus(&Usage::of(Some(usage))));
        let mut written = json!({"old": 1});
        sum.write(Some(&mut written));
        assert_eq!(written, *expected);
    }

    #[test]
    fn every_number_at_any_depth_is_summed() {
        let usage = |count: u64| json!({"in": count, "details": {"cached": 2 * count, "more": [{"kind": "a", "n": count}]}, "cost": 0.5});
        let sum = json!({"in": 3, "details": {"cached": 6, "more": [{"kind": "a", "n": 3}]}, "cost": 1.0});
        check(&[usage(1), usage(2)], &sum);
        check(&[json!({"in": u64::MAX}), json!({"in": 1})], &json!({"in": u64::MAX}));
    }

    #[test]
    fn fields_of_one_round_stay_and_texts_are_the_last_rounds() {
        check(
            &[json!({"a": 1, "tier": "x", "n": 1}), json!({"b": 2, "tier": "y", "n": null})],
            &json!({"a": 1, "b": 2, "tier": "y", "n": 1}),
        );
        let modality = |kind: &str| json!({"list": [{"modality": kind, "tokenCount": 1}]});
        let both =
            json!({"list": [{"modality": "TEXT", "tokenCount": 1}, {"modality": "IMAGE", "tokenCount": 1}]});
        check(&[modality("TEXT"), modality("IMAGE")], &both);
    }

    #[test]
    fn every_dialect_sums_its_details_and_leaves_a_response_that_counts_nothing() {
        let (usage, total) =
            (json!({"n": 1, "details": {"cached": 2}}), json!({"n": 2, "details": {"cached": 4}}));
        for name in DialectName::ALL {
            let dialect = name.dialect();
            let field = if name == DialectName::Gemini { "usageMetadata" } else { "usage" };
            let mut response = json!({ field: usage, "output": [] });
            let read = dialect.usage(&response);
            let sum = read.clone().plus(&read);
            dialect.set_usage(&mut response, &sum);
            assert_eq!(response[field], total, "{name:?}");
            for odd in [json!({}), json!({ field: null }), json!(1), json!({ field: 5 })] {
                let mut same = odd.clone();
                assert_eq!(dialect.usage(&odd), Usage::default());
                dialect.set_usage(&mut same, &sum);
                assert_eq!(same, odd, "{name:?}");
            }
        }
    }
}

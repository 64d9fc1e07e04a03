//! Arguments that come in pieces: `partialArgs`, each a JSON path and a value or more of a text.

use serde_json::{Map, Value};

/// Most steps of a path. Deeper JSON is not read elsewhere either.
const MAX_DEPTH: usize = 128;

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Item(usize),
}

/// Puts one piece into the arguments. False where it cannot be understood.
pub(super) fn add(arguments: &mut Value, piece: &Value) -> bool {
    let Some(value) = value_of(piece) else {
        // Only says that more comes, or that nothing does.
        return piece.is_object();
    };
    let steps = piece["jsonPath"].as_str().or_else(|| piece["json_path"].as_str()).and_then(steps);
    let Some(slot) = steps.and_then(|steps| slot(arguments, &steps)) else { return false };
    match (slot, value) {
        (Value::String(text), Value::String(more)) => text.push_str(&more),
        (slot, value) => *slot = value,
    }
    true
}

fn value_of(piece: &Value) -> Option<Value> {
    let names = ["stringValue", "numberValue", "boolValue", "string_value", "number_value", "bool_value"];
    let value = names.iter().find_map(|name| piece.get(name)).cloned();
    let is_null = || piece.get("nullValue").is_some() || piece.get("null_value").is_some();
    value.or_else(|| is_null().then_some(Value::Null))
}

/// `$.list[0].name` and `$['list'][0]["name"]`. None for the root itself and for what selects more than one place.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let step = if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            rest = after;
            Step::Field(Some(name).filter(|name| !matches!(*name, "" | "*"))?.to_owned())
        } else {
            let after = rest.strip_prefix('[')?;
            let quote = after.chars().next().filter(|first| matches!(first, '\'' | '"'));
            let (inner, after) = match quote {
                Some(quote) => after
                    .get(1..)?
                    .split_once([quote])
                    .and_then(|(inner, after)| Some((inner, after.strip_prefix(']')?)))?,
                None => after.split_once(']')?,
            };
            rest = after;
            if quote.is_some() { Step::Field(inner.to_owned()) } else { Step::Item(inner.parse().ok()?) }
        };
        steps.push(step);
        if steps.len() > MAX_DEPTH {
            return None;
        }
    }
    (!steps.is_empty()).then_some(steps)
}

/// The place that the steps lead to, made where it is not there. A list grows by one item at a time: a number alone
/// must not take memory.
fn slot<'a>(arguments: &'a mut Value, steps: &[Step]) -> Option<&'a mut Value> {
    let mut at = arguments;
    for step in steps {
        at = match step {
            Step::Field(name) => {
                if at.is_null() {
                    *at = Value::Object(Map::new());
                }
                at.as_object_mut()?.entry(name).or_insert(Value::Null)
            }
            Step::Item(place) => {
                if at.is_null() {
                    *at = Value::Array(Vec::new());
                }
                let list = at.as_array_mut()?;
                if list.len() == *place {
                    list.push(Value::Null);
                }
                list.get_mut(*place)?
            }
        };
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(pieces: &Value, expected: Option<&Value>) {
        let mut arguments = json!({});
        let is_understood = pieces.as_array().unwrap().iter().all(|piece| add(&mut arguments, piece));
        assert_eq!(is_understood.then_some(&arguments), expected, "{pieces}");
    }

    #[test]
    fn pieces_of_a_text_grow_and_other_values_are_set() {
        let pieces = json!([
            {"jsonPath": "$.city", "stringValue": "New ", "willContinue": true},
            {"jsonPath": "$.city", "stringValue": "Delhi"},
            {"jsonPath": "$.days", "numberValue": 3},
            {"jsonPath": "$.wind", "boolValue": false},
            {"jsonPath": "$.until", "nullValue": "NULL_VALUE"},
            {"jsonPath": "$.city", "willContinue": false},
        ]);
        check(&pieces, Some(&json!({"city": "New Delhi", "days": 3, "wind": false, "until": null})));
    }

    #[test]
    fn paths_lead_into_objects_and_lists_that_are_made_on_the_way() {
        let pieces = json!([
            {"jsonPath": "$.list[0].name", "stringValue": "a"},
            {"jsonPath": "$['list'][1][\"a.b]\"]", "stringValue": "é"},
            {"json_path": "$.list[0].size", "number_value": 0.5},
        ]);
        check(&pieces, Some(&json!({"list": [{"name": "a", "size": 0.5}, {"a.b]": "é"}]})));
    }

    #[test]
    fn paths_to_no_single_place_are_not_understood() {
        let odd =
            ["", "$", "city", "$.", "$..a", "$.*", "$[", "$[*]", "$['a", "$['a'", "$['a'x]", "$[-1]", "$é"];
        for path in odd {
            check(&json!([{"jsonPath": path, "stringValue": "x"}]), None);
        }
        check(&json!([{"jsonPath": "$.list[1000000000]", "boolValue": true}]), None);
        check(&json!([{"jsonPath": format!("${}", "[0]".repeat(200)), "boolValue": true}]), None);
        check(&json!([{"stringValue": "x"}]), None);
        check(&json!(["x"]), None);
    }

    #[test]
    fn a_path_through_a_plain_value_is_not_understood() {
        let text = json!({"jsonPath": "$.a", "stringValue": "x"});
        check(&json!([text, {"jsonPath": "$.a.b", "stringValue": "y"}]), None);
        check(&json!([text, {"jsonPath": "$.a[0]", "stringValue": "y"}]), None);
    }
}

//! Putting deltas together to what they are pieces of.

use serde_json::{Map, Value};

/// Fields that are whole wherever they come, and the same each time.
const WHOLE: [&str; 4] = ["id", "index", "role", "type"];

/// Adds what a delta holds: text is continued, objects are merged, items of lists by their `index`, else added; the rest
/// is replaced. Null says nothing.
pub(super) fn merge(into: &mut Map<String, Value>, delta: &Map<String, Value>) {
    for (field, piece) in delta {
        let own = into.entry(field).or_insert(Value::Null);
        let is_set = !own.is_null() && own.as_str() != Some("");
        if !(is_set && WHOLE.contains(&field.as_str())) {
            merge_value(own, piece);
        }
    }
}

fn merge_value(own: &mut Value, piece: &Value) {
    match (own, piece) {
        (_, Value::Null) => (),
        (Value::String(own), Value::String(piece)) => own.push_str(piece),
        (Value::Object(own), Value::Object(piece)) => merge(own, piece),
        (Value::Array(own), Value::Array(pieces)) => pieces.iter().for_each(|piece| merge_item(own, piece)),
        (own, piece) => own.clone_from(piece),
    }
}

fn merge_item(own: &mut Vec<Value>, piece: &Value) {
    let index = piece.get("index").filter(|index| index.is_number());
    let same = index.and_then(|index| own.iter_mut().find(|item| item.get("index") == Some(index)));
    match (same.and_then(Value::as_object_mut), piece) {
        (Some(item), Value::Object(piece)) => merge(item, piece),
        (_, piece) => own.push(piece.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(deltas: &[Value], expected: &Value) {
        let mut whole = Map::new();
        for delta in deltas {
            merge(&mut whole, delta.as_object().unwrap());
        }
        assert_eq!(Value::Object(whole), *expected);
    }

    #[test]
    fn text_is_continued_and_what_is_whole_is_kept() {
        check(
            &[json!({"role": "assistant", "content": "a"}), json!({"role": "assistant", "content": "b"})],
            &json!({"role": "assistant", "content": "ab"}),
        );
        check(&[json!({"id": ""}), json!({"id": "1"}), json!({"id": "2"})], &json!({"id": "1"}));
    }

    #[test]
    fn null_says_nothing_and_other_types_replace() {
        check(
            &[json!({"a": null}), json!({"a": 1}), json!({"a": null}), json!({"a": "x"})],
            &json!({"a": "x"}),
        );
        check(&[json!({"a": null})], &json!({"a": null}));
    }

    #[test]
    fn objects_are_merged_and_lists_by_index() {
        check(
            &[json!({"a": {"b": "x"}}), json!({"a": {"b": "y", "c": 1}})],
            &json!({"a": {"b": "xy", "c": 1}}),
        );
        check(
            &[
                json!({"a": [{"index": 1, "t": "x"}]}),
                json!({"a": [{"index": 1, "t": "y"}, {"index": 0}, 5]}),
            ],
            &json!({"a": [{"index": 1, "t": "xy"}, {"index": 0}, 5]}),
        );
    }
}

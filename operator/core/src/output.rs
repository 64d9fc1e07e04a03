//! The output of a skill, from its program's standard output.

use serde_json::{Value, json};

pub use crate::text::{text_head, text_tail, truncate};
use crate::{
    exact_json::find_inexact,
    text::{trim, without_cut_character},
};

/// Returns a JSON object or list unchanged, a JSON scalar as `{"value": ...}`, and other text, trimmed, as
/// `{"output": ...}`.
///
/// Bytes that are not UTF-8 become U+FFFD. Output that was cut, or is to be text, is never read as JSON: half a
/// document can be valid JSON. JSON that is nested deeper than 127 levels is text too, and so is JSON that
/// Kubernetes would change: with an integer beyond 64 bits, a number beyond a double, or a name that stands twice
/// in one object.
pub fn interpret(stdout: &[u8], is_text: bool) -> Value {
    if is_text {
        let text = text_head(without_cut_character(stdout), stdout.len());
        return json!({ "output": trim(&text) });
    }
    let text = String::from_utf8_lossy(stdout);
    let text = trim(&text);
    match serde_json::from_str(text) {
        Ok(_) if find_inexact(text).is_some() => json!({ "output": text }),
        Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
        Ok(scalar) => json!({ "value": scalar }),
        Err(_) => json!({ "output": text }),
    }
}

/// Most bytes of an output as JSON. etcd refuses objects of 1.5 MiB, and field ownership needs room too.
const MAX_BYTES: usize = 600 * 1024;

/// Cuts an output that no API server would take, and returns true if it did. JSON becomes text.
pub fn fit(value: Value) -> (Value, bool) {
    let text = value.to_string();
    if text.len() <= MAX_BYTES {
        return (value, false);
    }
    // A control character takes six bytes in JSON, so a sixth always fits. The rest is for the object around it.
    let plain = value.get("output").and_then(Value::as_str).unwrap_or(&text);
    let (head, _) = truncate(plain, MAX_BYTES / 6 - 4);
    (json!({ "output": head }), true)
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
    fn json_that_kubernetes_would_change_is_text() {
        for text in
            [r#"{"a":12345678901234567890}"#, "[1,123456789012345678901234567890]", r#"{"a":1,"a":2}"#]
        {
            check(text, &json!({ "output": text }));
        }
        check(&i64::MIN.to_string(), &json!({ "value": i64::MIN }));
    }

    #[test]
    fn an_output_that_no_api_server_takes_is_cut() {
        let (cut, is_cut) = fit(json!({ "output": "\u{1}".repeat(400_000) }));
        assert!(is_cut && cut.to_string().len() <= MAX_BYTES);
        assert!(!fit(json!({ "output": "x".repeat(400_000) })).1);
        let (cut, is_cut) = fit(json!({ "rows": vec!["abcdefgh"; 100_000] }));
        assert!(is_cut && cut["output"].as_str().unwrap().starts_with("{\"rows\":[\"abc"));
    }

    #[test]
    fn json_nested_too_deeply_is_text() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        check(&deep, &json!({ "output": deep }));
    }
}

//! Text of a JSON value, and its percent-encoding in a URL.

use std::fmt::Write as _;

use serde_json::Value;

/// Returns a value as text: a string as it is, the elements of a list with commas between them, other values as JSON.
pub(super) fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) if !list.iter().any(|element| element.is_object() || element.is_array()) => {
            list.iter().map(plain_text).collect::<Vec<_>>().join(",")
        }
        Value::Number(number) => match number.as_f64() {
            // A whole number has no point: 5.0 is 5, as JavaScript writes it.
            #[allow(clippy::cast_possible_truncation)]
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                (float as i64).to_string()
            }
            _ => number.to_string(),
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Encodes all but letters, digits and `-_.!~*'()`, so that no value begins another segment, parameter or host.
pub(super) fn percent_encode(text: &str) -> String {
    encode(text, |b| b"-_.!~*'()".contains(&b))
}

/// Encodes as forms do: a space is `+`.
pub(super) fn form_encode(text: &str) -> String {
    encode(text, |b| b"-_.*".contains(&b) || b == b' ').replace(' ', "+")
}

/// Encodes what is no ASCII, for text that a skill's author wrote.
pub(super) fn encode_non_ascii(text: &str) -> String {
    encode(text, |b| b.is_ascii())
}

fn encode(text: &str, is_kept: fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || is_kept(byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_become_text() {
        for (value, expected) in [
            (json!("a b"), "a b"),
            (json!(null), "null"),
            (json!(false), "false"),
            (json!(0), "0"),
            (json!(5.0), "5"),
            (json!(-0.5), "-0.5"),
            (json!(9_007_199_254_740_993_i64), "9007199254740993"),
            (json!([1, "b", true]), "1,b,true"),
            (json!([]), ""),
            (json!([[1], 2]), "[[1],2]"),
            (json!({"a": [1]}), r#"{"a":[1]}"#),
        ] {
            assert_eq!(plain_text(&value), expected);
        }
    }

    #[test]
    fn values_are_encoded_by_position() {
        assert_eq!(percent_encode("a/b?c#d&e=f g%é"), "a%2Fb%3Fc%23d%26e%3Df%20g%25%C3%A9");
        assert_eq!(percent_encode("A-z_0.!~*'()"), "A-z_0.!~*'()");
        assert_eq!(percent_encode("\r\n\0@:[]\\"), "%0D%0A%00%40%3A%5B%5D%5C");
        assert_eq!(form_encode("a b+c~'é"), "a+b%2Bc%7E%27%C3%A9");
        assert_eq!(encode_non_ascii("/é?a=b%20"), "/%C3%A9?a=b%20");
    }
}

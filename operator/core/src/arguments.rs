//! Arguments that a model gives to built-in skills, read as leniently as the reference reads them.
//!
//! Models write `"10000"` for a number now and then. Numbers are therefore read as JavaScript's `Number` reads them, the
//! odd cases too (`true` is 1, `"0x10"` is 16, `[5]` is 5): they are harmless, and one known rule beats an own one.

use serde_json::Value;

use crate::text::trim;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    #[error("Field args must be an array")]
    NotAnArray,
    #[error("Command arguments must be strings, numbers, or booleans")]
    NotAScalar,
}

/// The arguments of a command. Absent means none; `null` is not absent.
pub fn command_args(value: Option<&Value>) -> Result<Vec<String>, ArgumentsError> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let items = value.as_array().ok_or(ArgumentsError::NotAnArray)?;
    items.iter().map(|item| scalar_text(item).ok_or(ArgumentsError::NotAScalar)).collect()
}

/// A whole number above zero, at most `max`. What is absent, null, or no such number gives `fallback` as it is.
pub fn positive_int(value: Option<&Value>, fallback: u64, max: u64) -> u64 {
    let number = match value {
        None | Some(Value::Null) => return fallback,
        Some(value) => to_number(value),
    };
    if number.is_nan() || number.fract() != 0.0 || number <= 0.0 || number.is_infinite() {
        return fallback;
    }
    // A float beyond u64 saturates, and is above every maximum.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = number as u64;
    whole.min(max)
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number_text(number.as_f64()?)),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A number as JavaScript writes it: shortest digits, an exponent only far from 1.
fn number_text(number: f64) -> String {
    let size = number.abs();
    if number == 0.0 {
        return "0".to_owned();
    }
    if (1e-6..1e21).contains(&size) {
        return number.to_string();
    }
    let text = format!("{number:e}");
    match text.split_once("e-") {
        Some(_) => text,
        None => text.replacen('e', "e+", 1),
    }
}

fn to_number(value: &Value) -> f64 {
    match value {
        Value::Null => 0.0,
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        Value::String(text) => text_to_number(text),
        Value::Array(items) => match items.as_slice() {
            [] => 0.0,
            // A list is read through its text, in which a boolean is a word.
            [Value::Bool(_)] => f64::NAN,
            [item] => to_number(item),
            _ => f64::NAN,
        },
        Value::Object(_) => f64::NAN,
    }
}

pub fn text_to_number(text: &str) -> f64 {
    let text = trim(text);
    if text.is_empty() {
        return 0.0;
    }
    for (signs, radix) in [(["0x", "0X"], 16), (["0b", "0B"], 2), (["0o", "0O"], 8)] {
        if let Some(digits) = signs.iter().find_map(|sign| text.strip_prefix(sign)) {
            return radix_to_number(digits, radix);
        }
    }
    // Rust also reads "inf", "nan" and "infinity" in any case; JavaScript's Infinity is no whole number either.
    let is_decimal =
        text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    if is_decimal { text.parse().unwrap_or(f64::NAN) } else { f64::NAN }
}

fn radix_to_number(digits: &str, radix: u32) -> f64 {
    if digits.is_empty() {
        return f64::NAN;
    }
    digits
        .chars()
        .try_fold(0.0, |sum: f64, digit| Some(sum * f64::from(radix) + f64::from(digit.to_digit(radix)?)))
        .unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_scalars_written_as_javascript_writes_them() {
        let args =
            json!(["a b", "", 1, 1.0, -0.5, 1e21, 1.5e-7, 123_456_789_012_345_680.0, 0.0, true, false]);
        let expected =
            ["a b", "", "1", "1", "-0.5", "1e+21", "1.5e-7", "123456789012345680", "0", "true", "false"];
        assert_eq!(command_args(Some(&args)).unwrap(), expected);
        assert_eq!(command_args(None).unwrap(), Vec::<String>::new());
        assert_eq!(command_args(Some(&json!([]))).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn other_arguments_are_refused() {
        let refuse = |args: Value| command_args(Some(&args)).unwrap_err().to_string();
        for args in [json!(null), json!("ls"), json!({"0": "a"}), json!(1), json!(true)] {
            assert_eq!(refuse(args), "Field args must be an array");
        }
        for item in [json!(null), json!([]), json!({})] {
            assert_eq!(refuse(json!(["a", item])), "Command arguments must be strings, numbers, or booleans");
        }
    }

    fn check(value: &Value, expected: u64) {
        assert_eq!(positive_int(Some(value), 10_000, 60_000), expected, "{value}");
    }

    #[test]
    fn whole_numbers_above_zero_are_taken_up_to_the_maximum() {
        check(&json!(5), 5);
        check(&json!(5.0), 5);
        check(&json!(60_000), 60_000);
        check(&json!(60_001), 60_000);
        check(&json!(1e300), 60_000);
        check(&json!("5"), 5);
        check(&json!(" 5\n"), 5);
        check(&json!("+5"), 5);
    }

    #[test]
    fn javascript_coercions_are_followed() {
        check(&json!(true), 1);
        check(&json!("0x10"), 16);
        check(&json!("0B11"), 3);
        check(&json!("0o17"), 15);
        check(&json!("1e3"), 1000);
        check(&json!("5."), 5);
        check(&json!([5]), 5);
        check(&json!([["7"]]), 7);
    }

    #[test]
    fn everything_else_gives_the_default() {
        assert_eq!(positive_int(None, 7, 5), 7);
        for value in
            [json!(null), json!(0), json!(-5), json!(2.5), json!(false), json!({}), json!([]), json!([1, 2])]
        {
            check(&value, 10_000);
        }
        for text in
            ["", " ", "abc", "5ms", "-5", "2.5", "0x", "0xg", "inf", "Infinity", "NaN", "1_000", "--5", "."]
        {
            check(&json!(text), 10_000);
        }
        check(&json!([true]), 10_000);
        check(&json!([null]), 10_000);
    }
}

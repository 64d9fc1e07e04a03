//! Arguments of built-ins, read as leniently as the reference reads them: numbers and texts by the rules of JavaScript.

use serde_json::Value;

use super::error::BuiltinError;
use crate::js_number::text_to_number;

/// Reads a whole number above zero, at most `max`. An absent field, null or any other value gives `fallback` unchanged.
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

/// Reads the arguments of a command. An absent field means none; `null` is not absent.
pub fn command_args(value: Option<&Value>) -> Result<Vec<String>, BuiltinError> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let items = value.as_array().ok_or_else(|| BuiltinError::input("Field args must be an array"))?;
    let no_scalar = || BuiltinError::input("Command arguments must be strings, numbers, or booleans");
    items.iter().map(|item| scalar_text(item).ok_or_else(no_scalar)).collect()
}

/// Returns the text of a string, number or boolean.
pub(super) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number_text(number.as_f64()?)),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns a text that is not blank, trimmed.
pub(super) fn text<'a>(input: &'a Value, field: &str) -> Option<&'a str> {
    input.get(field).and_then(Value::as_str).map(crate::text::trim).filter(|text| !text.is_empty())
}

/// Writes a number as JavaScript does: shortest digits, an exponent only far from 1.
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
            // JavaScript reads a list through its text, in which a boolean is a word.
            [Value::Bool(_)] => f64::NAN,
            [item] => to_number(item),
            _ => f64::NAN,
        },
        Value::Object(_) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_are_written_as_javascript_writes_them() {
        for (value, text) in [
            (json!("a b"), "a b"),
            (json!(1), "1"),
            (json!(1.0), "1"),
            (json!(-0.5), "-0.5"),
            (json!(1e21), "1e+21"),
            (json!(1.5e-7), "1.5e-7"),
            (json!(123_456_789_012_345_680.0), "123456789012345680"),
            (json!(0.0), "0"),
            (json!(false), "false"),
        ] {
            assert_eq!(scalar_text(&value).as_deref(), Some(text));
        }
        for value in [json!(null), json!([]), json!({})] {
            assert_eq!(scalar_text(&value), None);
        }
    }

    #[test]
    fn arguments_of_a_command_are_scalars() {
        assert_eq!(command_args(Some(&json!(["a b", 1, true]))).unwrap(), ["a b", "1", "true"]);
        assert_eq!(command_args(None).unwrap(), Vec::<String>::new());
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
    fn whole_numbers_above_zero_are_read_up_to_the_maximum() {
        check(&json!(5), 5);
        check(&json!(5.0), 5);
        check(&json!(60_001), 60_000);
        check(&json!(1e300), 60_000);
        check(&json!(" 5\n"), 5);
        check(&json!(true), 1);
        check(&json!("0x10"), 16);
        check(&json!("1e3"), 1000);
        check(&json!([["7"]]), 7);
    }

    #[test]
    fn every_other_value_gives_the_fallback() {
        assert_eq!(positive_int(None, 7, 5), 7);
        for value in [
            json!(null),
            json!(0),
            json!(-5),
            json!(2.5),
            json!(false),
            json!({}),
            json!([]),
            json!([1, 2]),
            json!([true]),
            json!([null]),
            json!(""),
            json!("5ms"),
            json!("Infinity"),
        ] {
            check(&value, 10_000);
        }
    }
}

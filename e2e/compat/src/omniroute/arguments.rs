//! `command_args`, `positive_int`: arguments of OmniRoute's built-in skills, read as leniently as OmniRoute reads them.
//!
//! Skillet has no such skills. Numbers are read as JavaScript's `Number` reads them: `true` is 1, `"0x10"` is 16, `[5]` is 5.

use serde_json::{Value, json};
use skillet_core::js_number::text_to_number;

use crate::{case::Case, judge::Answer};

pub(super) fn replay_command_args(case: &Case) -> Result<Answer, String> {
    let value = match command_args(case.given("args")) {
        Ok(args) => json!({"ok": true, "args": args}),
        Err(error) => json!({"ok": false, "error": error}),
    };
    Ok(Answer::by_fields(case, value, &["ok", "args"]))
}

pub(super) fn replay_positive_int(case: &Case) -> Result<Answer, String> {
    let number = |field: &str| {
        case.input[field].as_u64().ok_or_else(|| format!("{field} is no whole number, so it is no limit"))
    };
    let value = positive_int(case.given("value"), number("fallback")?, number("max")?);
    Ok(Answer::exact(case, json!({ "value": value })))
}

/// Reads the arguments of a command. An absent field means none; `null` is not absent.
fn command_args(value: Option<&Value>) -> Result<Vec<String>, &'static str> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let items = value.as_array().ok_or("Field args must be an array")?;
    let not_a_scalar = "Command arguments must be strings, numbers, or booleans";
    items.iter().map(|item| scalar_text(item).ok_or(not_a_scalar)).collect()
}

/// Reads a whole number above zero, at most `max`. An absent field, null or any other value gives `fallback` unchanged.
fn positive_int(value: Option<&Value>, fallback: u64, max: u64) -> u64 {
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
    fn arguments_are_written_as_javascript_writes_scalars() {
        let args =
            json!(["a b", "", 1, 1.0, -0.5, 1e21, 1.5e-7, 123_456_789_012_345_680.0, 0.0, true, false]);
        let expected =
            ["a b", "", "1", "1", "-0.5", "1e+21", "1.5e-7", "123456789012345680", "0", "true", "false"];
        assert_eq!(command_args(Some(&args)).unwrap(), expected);
        assert_eq!(command_args(None).unwrap(), Vec::<String>::new());
        assert_eq!(command_args(Some(&json!([]))).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn arguments_that_are_no_scalars_are_refused() {
        let refuse = |args: Value| command_args(Some(&args)).unwrap_err();
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
        check(&json!(60_000), 60_000);
        check(&json!(60_001), 60_000);
        check(&json!(1e300), 60_000);
        check(&json!("5"), 5);
        check(&json!(" 5\n"), 5);
        check(&json!("+5"), 5);
    }

    #[test]
    fn javascript_coercions_apply() {
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
    fn every_other_value_gives_the_fallback() {
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

//! `command_args`, `positive_int`: arguments of OmniRoute's built-in skills, read as leniently as OmniRoute reads them.
//!
//! Skillet has no skill with a list of arguments.

use serde_json::{Value, json};
use skillet_core::builtin::positive_int;

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
}

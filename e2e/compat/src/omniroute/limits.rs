//! `command_args`, `positive_int`, `output_truncate`: what a built-in skill takes and how much it gives.

use serde_json::json;
use skillet_core::{arguments, output};

use crate::{case::Case, judge::Answer};

pub(super) fn command_args(case: &Case) -> Result<Answer, String> {
    let value = match arguments::command_args(case.given("args")) {
        Ok(args) => json!({"ok": true, "args": args}),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    };
    Ok(Answer::by_fields(case, value, &["ok", "args"]))
}

pub(super) fn positive_int(case: &Case) -> Result<Answer, String> {
    let number = |field: &str| {
        case.input[field].as_u64().ok_or_else(|| format!("{field} is no whole number, so it is no limit"))
    };
    let value = arguments::positive_int(case.given("value"), number("fallback")?, number("max")?);
    Ok(Answer::exact(case, json!({ "value": value })))
}

/// The reference counts UTF-16 units and the product bytes; for the text of the case they are the same.
pub(super) fn output_truncate(case: &Case) -> Result<Answer, String> {
    let unit = case.input["unit"].as_str().unwrap_or("utf16-code-units");
    let length = case.input["length"].as_u64().and_then(|length| usize::try_from(length).ok());
    let (Some(length), "utf16-code-units") = (length, unit) else {
        return Err(format!("the unit {unit} is not known"));
    };
    let text = "x".repeat(length);
    let (kept, is_cut) = output::truncate(&text, output::DEFAULT_LIMIT);
    Ok(Answer::exact(case, json!({"length": kept.encode_utf16().count(), "truncated": is_cut})))
}

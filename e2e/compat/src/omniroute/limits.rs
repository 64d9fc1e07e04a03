//! `output_truncate`: the bound of a skill's output.

use serde_json::json;
use skillet_api::SkillPolicySpec;
use skillet_core::text::truncate;

use crate::{case::Case, judge::Answer};

/// OmniRoute counts UTF-16 units and the product bytes; for the text of the case both are the same.
pub(super) fn output_truncate(case: &Case) -> Result<Answer, String> {
    let unit = case.input["unit"].as_str().unwrap_or("utf16-code-units");
    let length = case.input["length"].as_u64().and_then(|length| usize::try_from(length).ok());
    let (Some(length), "utf16-code-units") = (length, unit) else {
        return Err(format!("the unit {unit} is not known"));
    };
    let text = "x".repeat(length);
    let limit = usize::try_from(SkillPolicySpec::default().defaults.output_bytes).unwrap_or(usize::MAX);
    let (kept, is_cut) = truncate(&text, limit);
    Ok(Answer::exact(case, json!({"length": kept.encode_utf16().count(), "truncated": is_cut})))
}

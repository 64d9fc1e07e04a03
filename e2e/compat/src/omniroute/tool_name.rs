//! `tool_name_encode`, `tool_name_decode`, `mcp_dynamic_tool_name`: what skills are called as tools.

use serde_json::json;
use skillet_llm::tool_names::{MAX_LENGTH, OfferTable, SkillIdentity, omniroute};

use crate::{
    case::Case,
    judge::{Answer, Sense, mentions},
};

/// OmniRoute's name as far as the product takes it for a skill's; where that is no legal name, the product's own.
pub(super) fn tool_name_encode(case: &Case) -> Result<Answer, String> {
    let (name, version) = (case.text("name"), case.text("version"));
    let tool_name = omniroute::encode(name, version).unwrap_or_else(|| {
        let table = OfferTable::new([], [(SkillIdentity { namespace: "default", name, version }, ())]);
        table.iter().map(|(name, ())| name.to_string()).collect()
    });
    let length = tool_name.len();
    let value = json!({"toolName": tool_name, "length": length, "over64": length > MAX_LENGTH});
    let is_short_wanted = case.expected["over64"] == true;
    Ok(Answer {
        meets_want: if is_short_wanted { Sense::of(length <= MAX_LENGTH) } else { Sense::Unknown },
        difference: is_short_wanted.then(|| format!("no tool name is longer than {MAX_LENGTH} characters")),
        ..Answer::exact(case, value)
    })
}

pub(super) fn tool_name_decode(case: &Case) -> Result<Answer, String> {
    let tool_name = case.text("toolName");
    let identifier = omniroute::decode(tool_name).unwrap_or_else(|| tool_name.to_owned());
    let is_left = identifier == tool_name;
    let want = case.want.as_deref().unwrap_or_default();
    let is_leaving_wanted = mentions(want, &["leave", "as it is", "unchanged", "not a skill name"]);
    Ok(Answer {
        meets_want: if is_leaving_wanted { Sense::of(is_left) } else { Sense::Unknown },
        ..Answer::exact(case, json!({ "identifier": identifier }))
    })
}

pub(super) fn mcp_dynamic_tool_name(case: &Case) -> Result<Answer, String> {
    let tool_name = omniroute::mcp_tool_name(case.text("name"));
    let is_too_long = case.expected["toolName"].as_str().is_some_and(|name| name.len() > MAX_LENGTH);
    Ok(Answer {
        meets_want: if is_too_long { Sense::of(tool_name.len() <= MAX_LENGTH) } else { Sense::Unknown },
        difference: is_too_long.then(|| format!("no tool name is longer than {MAX_LENGTH} characters")),
        ..Answer::exact(case, json!({ "toolName": tool_name }))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::registry::replay_case;

    fn check(kind: &str, input: &Value, expected: &Value, verdict: &str, want: Option<&str>, result: &str) {
        let verdict_text = replay_case(kind, verdict, want, input, expected);
        assert!(verdict_text.starts_with(result), "{kind} {input}: {verdict_text}");
    }

    #[test]
    fn a_name_that_would_be_too_long_is_the_products_own() {
        let long = "a".repeat(60);
        let input = json!({"name": long, "version": "1.0.0"});
        let expected = json!({"toolName": format!("omr_skill_{long}"), "length": 91, "over64": true});
        check("tool_name_encode", &input, &expected, "defect", Some("at most 64"), "passed");
        check("tool_name_encode", &input, &expected, "compat", None, "no tool name is longer");
        let expected = json!({ "toolName": format!("skill_{long}") });
        check("mcp_dynamic_tool_name", &input, &expected, "defect", Some("at most 64"), "passed");
    }

    #[test]
    fn what_is_no_skills_name_is_left() {
        let input = json!({"toolName": "omr_skill_!!"});
        let expected = json!({"identifier": ""});
        check("tool_name_decode", &input, &expected, "defect", Some("leave as it is"), "passed");
        check("tool_name_decode", &input, &expected, "compat", None, "failed");
    }
}

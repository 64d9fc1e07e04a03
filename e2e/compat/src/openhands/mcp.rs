//! `mcp_tools_validate`, `mcp_variable_expansion`: the MCP servers of a skill.

use serde_json::{Map, Value, json};
use skillet_instructions::mcp::{self, Unset};

use crate::{
    case::Case,
    judge::{Answer, Sense},
};

pub(super) fn mcp_tools_validate(case: &Case) -> Result<Answer, String> {
    let config = &case.input["mcp_tools"];
    let value = match mcp::servers(config) {
        Ok(_) if config.is_null() => json!({"accept": true, "servers": null}),
        Ok(servers) => json!({"accept": true, "servers": servers}),
        Err(message) => {
            json!({"accept": false, "error_category": "skill_validation", "message": message})
        }
    };
    let is_refusal_safer = value["accept"] == false && case.expected["accept"] == true;
    let answer = Answer::by_fields(case, value, &["accept", "error_category"]);
    let is_same = answer.is_same && is_alike(&case.expected["servers"], &answer.value["servers"]);
    Ok(Answer {
        is_same,
        meets_want: if is_refusal_safer { Sense::Met } else { Sense::Unknown },
        difference: is_refusal_safer.then(|| "a server that cannot be reached is refused".to_owned()),
        ..answer
    })
}

/// True for equal values; the reference shows secrets as stars, numbers with a fraction, and leaves out `enabled: true`.
pub(super) fn is_alike(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let is_default = |(key, value): (&String, &Value)| key == "enabled" && *value == true;
            let len = |fields: &Map<String, Value>| fields.iter().filter(|field| !is_default(*field)).count();
            let is_found = |(key, value): (&String, &Value)| {
                is_default((key, value)) || found.get(key).is_some_and(|found| is_alike(value, found))
            };
            len(expected) == len(found) && expected.iter().all(is_found)
        }
        (Value::String(text), Value::String(_)) if text.len() > 3 && text.bytes().all(|b| b == b'*') => true,
        (Value::Number(expected), Value::Number(found)) => expected.as_f64() == found.as_f64(),
        _ => expected == found,
    }
}

pub(super) fn mcp_variable_expansion(case: &Case) -> Result<Answer, String> {
    let lookup = |name: &str| {
        let value = ["variables", "secrets", "env"].iter().find_map(|scope| case.input[scope].get(name));
        value.and_then(Value::as_str).map(str::to_owned)
    };
    let unset = if case.input["expand_defaults"] == false { Unset::Kept } else { Unset::Default };
    let config = mcp::expand(&case.input["config"], unset, &lookup);
    Ok(Answer::exact(case, json!({ "config": config })))
}

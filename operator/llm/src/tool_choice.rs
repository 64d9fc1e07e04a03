//! Tool calls that a request forces. After the first round the model may answer without one.

use serde_json::{Value, json};

use crate::{DialectName, OfferedNames};

impl DialectName {
    /// Lifts the force after the model has made the call, because it could never answer otherwise. A forced call of
    /// the client's own tools stays: it ends the loop.
    pub fn relax_tool_choice(self, request: &mut Value, offered: &OfferedNames) {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => openai(request, offered),
            Self::Anthropic => anthropic(request, offered),
            Self::Gemini => gemini(request, offered),
        }
    }

    /// Keeps the model from calling any tool.
    pub fn forbid_tool_calls(self, request: &mut Value) {
        let Some(fields) = request.as_object_mut() else { return };
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => {
                fields.insert("tool_choice".to_owned(), "none".into());
            }
            Self::Anthropic => {
                fields.insert("tool_choice".to_owned(), json!({"type": "none"}));
            }
            Self::Gemini => {
                let config = if fields.contains_key("tool_config") { "tool_config" } else { "toolConfig" };
                let config = fields.entry(config).or_insert_with(|| json!({}));
                if let Some(config) = config.as_object_mut() {
                    config.remove("function_calling_config");
                    config.insert("functionCallingConfig".to_owned(), json!({"mode": "NONE"}));
                }
            }
        }
    }
}

/// Both forms differ only in what is nested, and some clients send one for the other.
fn openai(request: &mut Value, offered: &OfferedNames) {
    let Some(choice) = request.get_mut("tool_choice") else { return };
    let is_skill = |place: &str| choice.pointer(place).is_some_and(|name| is_offered(name, offered));
    let is_forced_skill = choice["type"] == "function" && (is_skill("/function/name") || is_skill("/name"));
    if is_forced_skill || must(choice) {
        *choice = "auto".into();
        return;
    }
    for place in ["/type", "/mode", "/allowed_tools/mode"] {
        if let Some(mode) = choice.pointer_mut(place).filter(|mode| must(mode)) {
            *mode = "auto".into();
        }
    }
}

fn anthropic(request: &mut Value, offered: &OfferedNames) {
    let Some(choice) = request.get_mut("tool_choice").and_then(Value::as_object_mut) else { return };
    let kind = choice.get("type").and_then(Value::as_str);
    let is_forced_skill =
        kind == Some("tool") && choice.get("name").is_some_and(|name| is_offered(name, offered));
    if is_forced_skill || kind == Some("any") {
        // What else is said, such as of parallel calls, is said of every choice.
        choice.insert("type".to_owned(), "auto".into());
        choice.remove("name");
    }
}

fn gemini(request: &mut Value, offered: &OfferedNames) {
    for config in ["toolConfig", "tool_config"] {
        for calling in ["functionCallingConfig", "function_calling_config"] {
            let config = request.get_mut(config).and_then(|config| config.get_mut(calling)?.as_object_mut());
            let Some(config) = config.filter(|config| config.get("mode").is_some_and(|mode| mode == "ANY"))
            else {
                continue;
            };
            let lists = ["allowedFunctionNames", "allowed_function_names"];
            let mut names =
                lists.iter().filter_map(|list| config.get(*list)?.as_array()).flatten().peekable();
            let is_of_client = names.peek().is_some() && !names.any(|name| is_offered(name, offered));
            if !is_of_client {
                config.insert("mode".to_owned(), "AUTO".into());
                // The provider takes names in this mode only.
                config.retain(|name, _| !lists.contains(&name.as_str()));
            }
        }
    }
}

fn must(mode: &Value) -> bool {
    mode == "required" || mode == "any"
}

fn is_offered(name: &Value, offered: &OfferedNames) -> bool {
    name.as_str().is_some_and(|name| offered.contains(name) || offered.needs_confirmation(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAI: [DialectName; 2] = [DialectName::OpenAiChat, DialectName::OpenAiResponses];

    fn check(dialect: DialectName, request: &Value, expected: &Value) {
        let mut relaxed = request.clone();
        dialect.relax_tool_choice(&mut relaxed, &OfferedNames::new(["look".into()], ["pay".into()]));
        assert_eq!(relaxed, *expected, "{dialect:?} {request}");
    }

    #[test]
    fn a_model_that_had_to_call_a_skill_or_anything_may_answer_in_the_next_round() {
        let choice = |choice: Value| json!({ "tool_choice": choice });
        let tools = json!([{ "type": "function", "name": "look" }]);
        for dialect in OPENAI {
            for forced in [
                json!("required"),
                json!({ "type": "function", "function": { "name": "look" } }),
                json!({ "type": "function", "name": "pay" }),
            ] {
                check(dialect, &choice(forced), &json!({ "tool_choice": "auto" }));
            }
            let allowed = |mode| choice(json!({ "type": "allowed_tools", "mode": mode, "tools": tools }));
            check(dialect, &allowed("required"), &allowed("auto"));
            let nested = |mode| {
                choice(json!({ "type": "allowed_tools", "allowed_tools": { "mode": mode, "tools": tools } }))
            };
            check(dialect, &nested("required"), &nested("auto"));
        }
        for forced in [json!({ "type": "any" }), json!({ "type": "tool", "name": "look" })] {
            check(DialectName::Anthropic, &choice(forced), &choice(json!({ "type": "auto" })));
        }
        let one = |kind| choice(json!({ "type": kind, "disable_parallel_tool_use": true }));
        check(DialectName::Anthropic, &one("any"), &one("auto"));
    }

    #[test]
    fn gemini_is_read_in_both_cases_and_keeps_no_names_that_only_any_may_have() {
        for config in ["toolConfig", "tool_config"] {
            for calling in ["functionCallingConfig", "function_calling_config"] {
                let request = |choice: Value| json!({ config: { calling: choice, "other": 1 } });
                let relaxed = request(json!({ "mode": "AUTO" }));
                for forced in [
                    json!({ "mode": "ANY" }),
                    json!({ "mode": "ANY", "allowedFunctionNames": ["own", "look"] }),
                    json!({ "mode": "ANY", "allowed_function_names": [] }),
                ] {
                    check(DialectName::Gemini, &request(forced), &relaxed);
                }
                let kept = request(json!({ "mode": "ANY", "allowedFunctionNames": ["own"] }));
                check(DialectName::Gemini, &kept, &kept);
                let kept = request(json!({ "mode": "VALIDATED", "allowedFunctionNames": ["look"] }));
                check(DialectName::Gemini, &kept, &kept);
            }
        }
    }

    #[test]
    fn what_forces_no_skill_stays() {
        for kept in [
            json!({ "tool_choice": "none" }),
            json!({ "tool_choice": { "type": "function", "function": { "name": "own" } } }),
            json!({ "tool_choice": { "type": "function", "name": "own" } }),
            json!({ "tool_choice": { "type": "custom", "name": "look" } }),
            json!({ "tool_choice": { "type": "allowed_tools", "mode": "auto", "tools": [] } }),
            json!({ "tool_choice": { "type": "tool", "name": "own" } }),
            json!({ "tool_choice": 1, "toolConfig": [], "tool_config": { "functionCallingConfig": "ANY" } }),
            json!({ "messages": [] }),
            json!([]),
        ] {
            for dialect in DialectName::ALL {
                check(dialect, &kept, &kept);
            }
        }
    }

    #[test]
    fn a_request_that_forbids_tool_calls_says_so_in_each_dialect() {
        for (dialect, request, expected) in [
            (DialectName::OpenAiChat, json!({"tool_choice": "required"}), json!({"tool_choice": "none"})),
            (DialectName::OpenAiResponses, json!({}), json!({"tool_choice": "none"})),
            (
                DialectName::Anthropic,
                json!({"tool_choice": {"type": "any"}}),
                json!({"tool_choice": {"type": "none"}}),
            ),
            (
                DialectName::Gemini,
                json!({"tool_config": {"function_calling_config": {"mode": "ANY"}, "x": 1}}),
                json!({"tool_config": {"functionCallingConfig": {"mode": "NONE"}, "x": 1}}),
            ),
            (
                DialectName::Gemini,
                json!({}),
                json!({"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}),
            ),
        ] {
            let mut forbidding = request;
            dialect.forbid_tool_calls(&mut forbidding);
            assert_eq!(forbidding, expected, "{dialect:?}");
        }
    }
}

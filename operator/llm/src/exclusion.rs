//! Requests that a provider would refuse, or answer in a form that cannot be continued, if skills were added to them.
//!
//! Only what providers document, or are known to answer with an error, is here. Each reason is one word.

use serde_json::Value;

use crate::{DialectName, OfferedNames, wire::items};

/// Locations of Gemini's number. Google's servers read both cases.
const GEMINI: [&str; 4] = [
    "/generationConfig/candidateCount",
    "/generationConfig/candidate_count",
    "/generation_config/candidateCount",
    "/generation_config/candidate_count",
];
/// Locations of Gemini's response format.
const GEMINI_MIME_TYPE: [&str; 4] = [
    "/generationConfig/responseMimeType",
    "/generationConfig/response_mime_type",
    "/generation_config/responseMimeType",
    "/generation_config/response_mime_type",
];
/// Locations of Gemini's function calling mode.
const FORCED_MODE: [&str; 4] = [
    "/toolConfig/functionCallingConfig/mode",
    "/toolConfig/function_calling_config/mode",
    "/tool_config/functionCallingConfig/mode",
    "/tool_config/function_calling_config/mode",
];
/// The reason for models of OpenAI's that refuse functions.
pub const MODEL_WITHOUT_TOOLS: &str = "ModelWithoutTools";
/// Most tools that OpenAI and Gemini take.
const MAX_TOOLS: usize = 128;

impl DialectName {
    /// The reason why this request may not be offered anything, as one word.
    pub fn find_exclusion(self, request: &Value, model: &str) -> Option<&'static str> {
        if self.wants_multiple_candidates(request) {
            return Some("SeveralAnswers");
        }
        let reason = match self {
            Self::OpenAiChat => exclusion_of_chat(request, model),
            Self::OpenAiResponses => exclusion_of_responses(request, model),
            Self::Anthropic => None,
            Self::Gemini => exclusion_of_gemini(request, model),
        };
        reason.or_else(|| self.forces_client_call(request).then_some("ForcedChoice"))
    }

    /// Most tools of one request; `None` is no limit.
    pub fn max_tools(self) -> Option<usize> {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses | Self::Gemini => Some(MAX_TOOLS),
            Self::Anthropic => None,
        }
    }

    /// Returns true if the request demands a call and has tools of its own: its result is that call.
    fn forces_client_call(self, request: &Value) -> bool {
        if self.dialect().client_tool_names(request).is_empty() {
            return false;
        }
        // A choice that relaxing changes is one that demands a call; one of the client's own tools it leaves alone.
        let mut relaxed = request.clone();
        self.relax_tool_choice(&mut relaxed, &OfferedNames::default());
        relaxed != *request || self.names_client_tool(request)
    }

    fn names_client_tool(self, request: &Value) -> bool {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => request["tool_choice"]["type"]
                .as_str()
                .is_some_and(|kind| !matches!(kind, "allowed_tools" | "auto")),
            Self::Anthropic => request["tool_choice"]["type"] == "tool",
            Self::Gemini => {
                FORCED_MODE.iter().any(|place| request.pointer(place).is_some_and(|mode| mode == "ANY"))
            }
        }
    }

    fn wants_multiple_candidates(self, request: &Value) -> bool {
        match self {
            Self::OpenAiChat => is_several(&request["n"]),
            Self::Gemini => GEMINI.iter().filter_map(|place| request.pointer(place)).any(is_several),
            // These forms have no such number.
            Self::OpenAiResponses | Self::Anthropic => false,
        }
    }
}

fn exclusion_of_chat(request: &Value, model: &str) -> Option<&'static str> {
    if !items(&request["functions"]).is_empty() || !request["function_call"].is_null() {
        return Some("LegacyFunctions");
    }
    if !request["prediction"].is_null() {
        return Some("Prediction");
    }
    is_without_functions(model).then_some(MODEL_WITHOUT_TOOLS)
}

fn exclusion_of_responses(request: &Value, model: &str) -> Option<&'static str> {
    if request["background"] == true {
        return Some("Background");
    }
    // Tools of a request replace those of the stored prompt.
    if !request["prompt"].is_null() {
        return Some("StoredPrompt");
    }
    is_without_functions(model).then_some(MODEL_WITHOUT_TOOLS)
}

/// OpenAI's models that refuse functions.
fn is_without_functions(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.starts_with("o1-mini") || name.starts_with("o1-preview") || name.contains("search-preview")
}

fn exclusion_of_gemini(request: &Value, model: &str) -> Option<&'static str> {
    let is_set = |names: [&str; 2]| names.iter().any(|name| !request[*name].is_null());
    if is_set(["cachedContent", "cached_content"]) {
        return Some("CachedContent");
    }
    // From the third generation on, functions go with both.
    if ["gemini-1", "gemini-2"]
        .iter()
        .any(|family| model.rsplit('/').next().unwrap_or(model).starts_with(family))
    {
        let is_json = |place: &str| request.pointer(place).is_some_and(|kind| kind == "application/json");
        if GEMINI_MIME_TYPE.iter().any(|place| is_json(place)) {
            return Some("JsonMode");
        }
        if has_provider_tools(request) {
            return Some("ProviderTools");
        }
    } else if has_provider_tools(request) && !includes_server_side_calls(request) {
        return Some("ProviderTools");
    }
    None
}

/// Returns true for tools that are no functions, such as a search.
fn has_provider_tools(request: &Value) -> bool {
    let is_function =
        |name: &String| matches!(name.as_str(), "functionDeclarations" | "function_declarations");
    items(&request["tools"])
        .iter()
        .filter_map(Value::as_object)
        .any(|tool| tool.keys().any(|name| !is_function(name)))
}

fn includes_server_side_calls(request: &Value) -> bool {
    let places =
        ["/toolConfig/includeServerSideToolInvocations", "/tool_config/include_server_side_tool_invocations"];
    places.iter().any(|place| request.pointer(place).is_some_and(|included| included == true))
}

/// Returns true for a number above one, also as text, which Gemini's servers accept.
fn is_several(count: &Value) -> bool {
    let number = count.as_f64().or_else(|| count.as_str()?.trim().parse().ok());
    number.is_some_and(|number| number > 1.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(name: DialectName, request: &Value, expected: bool) {
        assert_eq!(name.wants_multiple_candidates(request), expected, "{request}");
    }

    #[test]
    fn a_forced_call_of_geminis_own_functions_excludes_others() {
        let own = json!([{"functionDeclarations": [{"name": "own"}]}]);
        let calling = json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["own"]}});
        let request = json!({"tools": own, "toolConfig": calling});
        assert_eq!(DialectName::Gemini.find_exclusion(&request, "gemini-3-pro"), Some("ForcedChoice"));
    }

    #[test]
    fn a_request_that_excludes_functions_has_one_word_for_the_reason() {
        use DialectName::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
        let own = json!([{"type": "function", "function": {"name": "own"}}]);
        let flat = json!([{"type": "function", "name": "own"}]);
        let search = json!([{"googleSearch": {}}]);
        let json_mode = json!({"generationConfig": {"responseMimeType": "application/json"}});
        for (dialect, model, request, expected) in [
            (OpenAiChat, "gpt-5", json!({"functions": [{"name": "f"}]}), Some("LegacyFunctions")),
            (OpenAiChat, "gpt-5", json!({"prediction": {"type": "content"}}), Some("Prediction")),
            (OpenAiChat, "gpt-4o-search-preview", json!({}), Some("ModelWithoutTools")),
            (OpenAiChat, "openai/o1-mini", json!({}), Some("ModelWithoutTools")),
            (OpenAiChat, "gpt-5", json!({"tools": own, "tool_choice": "required"}), Some("ForcedChoice")),
            (
                OpenAiChat,
                "gpt-5",
                json!({"tools": own, "tool_choice": {"type": "function", "function": {"name": "own"}}}),
                Some("ForcedChoice"),
            ),
            (OpenAiChat, "gpt-5", json!({"tools": own, "tool_choice": "auto"}), None),
            (OpenAiChat, "gpt-5", json!({"tool_choice": "required"}), None),
            (OpenAiResponses, "gpt-5", json!({"background": true}), Some("Background")),
            (OpenAiResponses, "gpt-5", json!({"prompt": {"id": "p"}}), Some("StoredPrompt")),
            (
                OpenAiResponses,
                "gpt-5",
                json!({"tools": flat, "tool_choice": "required"}),
                Some("ForcedChoice"),
            ),
            (
                Anthropic,
                "claude",
                json!({"tools": [{"name": "own"}], "tool_choice": {"type": "any"}}),
                Some("ForcedChoice"),
            ),
            (
                Anthropic,
                "claude",
                json!({"tools": [{"name": "own"}], "tool_choice": {"type": "tool", "name": "own"}}),
                Some("ForcedChoice"),
            ),
            (Anthropic, "claude", json!({"tools": [{"name": "own"}]}), None),
            (Gemini, "gemini-2.5-pro", json!({"cachedContent": "c"}), Some("CachedContent")),
            (Gemini, "gemini-2.5-pro", json_mode.clone(), Some("JsonMode")),
            (Gemini, "gemini-3-pro", json_mode, None),
            (Gemini, "gemini-2.5-pro", json!({"tools": search}), Some("ProviderTools")),
            (Gemini, "gemini-3-pro", json!({"tools": search}), Some("ProviderTools")),
        ] {
            assert_eq!(dialect.find_exclusion(&request, model), expected, "{dialect:?} {request}");
        }
    }

    #[test]
    fn a_number_above_one_wants_several_candidates() {
        for (count, expected) in [
            (json!(2), true),
            (json!("2"), true),
            (json!(1), false),
            (json!("one"), false),
            (json!(null), false),
        ] {
            check(DialectName::OpenAiChat, &json!({ "n": count }), expected);
            for (outer, inner) in
                [("generationConfig", "candidateCount"), ("generation_config", "candidate_count")]
            {
                check(DialectName::Gemini, &json!({ outer: { inner: count } }), expected);
            }
        }
        check(DialectName::Gemini, &json!({ "generationConfig": 2 }), false);
        check(DialectName::OpenAiChat, &json!([]), false);
    }

    #[test]
    fn a_form_without_the_number_asks_for_one() {
        for name in [DialectName::Anthropic, DialectName::OpenAiResponses] {
            check(name, &json!({ "n": 2, "generationConfig": { "candidateCount": 2 } }), false);
        }
    }
}

//! `web_search_fallback` and `resolve_builtin`: a skill in the place of a provider's search, and the names of built-ins.
//!
//! The reference decides by the format of the upstream whether it searches itself. Here the policy's `Auto` does, by the address
//! of the provider: those upstreams that search themselves are the public ones. A rule of the reference for one model is
//! `Replace` or `Keep`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use skillet_api::{
    builtin::Builtin,
    gateway::{NativeToolUse, Provider, ProviderDialect},
    skill::Run,
};
use skillet_core::builtin::{description, input_schema};
use skillet_llm::{
    DialectName, ToolDefinition,
    native_tools::{NativeTool, Replacement, stand_in},
    tool_names::{OfferTable, SkillIdentity, builtin::canonical},
};

use crate::{
    case::Case,
    judge::{Answer, Sense, mentions},
};

/// The reference's name for the tool.
const TOOL_NAME: &str = "omniroute_web_search";
/// A provider of the reference whose Anthropic form has no tools of its own.
const WITHOUT_SEARCH: &str = "minimax";

pub(super) fn web_search_fallback(case: &Case) -> Result<Answer, String> {
    let (dialect, is_public) = upstream(&case.input["options"]);
    let mut request = case.input["body"].clone();
    let mut replaced = Vec::new();
    if rule(&case.input["options"]).replaces(is_native(dialect, is_public)) {
        replaced = replace(dialect, &mut request)?;
    }
    let first = replaced.first();
    let tools: Vec<Value> = request["tools"].as_array().into_iter().flatten().map(short).collect();
    let parameters = first.and_then(|_found| parameters(&request)).unwrap_or(&Value::Null);
    let value = json!({
        "plan": {
            "enabled": first.is_some(),
            "toolName": first.map(|of| &*of.tool_name),
            "convertedToolCount": first.map_or(0, |of| of.converted),
        },
        "tools": tools,
        "toolChoice": request["tool_choice"],
        "parameterNames": parameters["properties"].as_object().map(|fields| fields.keys().collect::<Vec<_>>()),
        "defaultMaxResults": parameters["properties"]["max_results"]["default"],
    });
    Ok(compare(case, dialect, value))
}

/// Names of parameters have no order.
fn compare(case: &Case, dialect: DialectName, value: Value) -> Answer {
    let names = |list: &Value| -> BTreeSet<String> {
        list.as_array().into_iter().flatten().map(ToString::to_string).collect()
    };
    let has_same_names = names(&value["parameterNames"]) == names(&case.expected["parameterNames"]);
    let is_replaced = value["plan"]["enabled"] == true;
    let answer = Answer::by_fields(case, value, &["plan", "tools", "toolChoice", "defaultMaxResults"]);
    let asks =
        case.want.as_deref().is_some_and(|want| mentions(want, &["prefix", "dated", "convert", "replace"]));
    let has_own_form = is_replaced && dialect == DialectName::Anthropic;
    Answer {
        is_same: answer.is_same && has_same_names,
        meets_want: if asks { Sense::of(is_replaced) } else { Sense::Unknown },
        difference: has_own_form.then(|| "a tool stands in the form of the request's own dialect".to_owned()),
        ..answer
    }
}

/// Returns the dialect of the request, and true if its provider is a public one.
fn upstream(options: &Value) -> (DialectName, bool) {
    let (source, target) = (&options["sourceFormat"], &options["targetFormat"]);
    let is_codex = options["nativeCodexPassthrough"] == true;
    if target == "gemini" || target == "antigravity" {
        return (DialectName::Gemini, true);
    }
    if source == "claude" && target == "claude" {
        return (DialectName::Anthropic, options["provider"] != WITHOUT_SEARCH);
    }
    let is_responses = target == "openai-responses" || is_codex;
    (if is_responses { DialectName::OpenAiResponses } else { DialectName::OpenAiChat }, is_codex)
}

fn rule(options: &Value) -> NativeToolUse {
    match options["interceptSearchOverride"].as_bool() {
        Some(true) => NativeToolUse::Replace,
        Some(false) => NativeToolUse::Keep,
        None => NativeToolUse::Auto,
    }
}

fn is_native(dialect: DialectName, is_public: bool) -> bool {
    let family = match dialect {
        DialectName::OpenAiChat | DialectName::OpenAiResponses => ProviderDialect::OpenAI,
        DialectName::Anthropic => ProviderDialect::Anthropic,
        DialectName::Gemini => ProviderDialect::Gemini,
    };
    let base_url = if is_public { family.public_url() } else { "https://models.example" };
    let provider = Provider { base_url: base_url.to_owned(), ..Provider::default() };
    dialect.has_native_tools() && provider.is_public(family)
}

fn replace(dialect: DialectName, request: &mut Value) -> Result<Vec<Replacement>, String> {
    // Bodies of the reference are in OpenAI's form before they are translated for Gemini.
    let dialect = if dialect == DialectName::Gemini { DialectName::OpenAiChat } else { dialect };
    let taken = dialect.take_native_tools(request, &[NativeTool::WebSearch]);
    let skills: Vec<_> = taken.uses.iter().map(|of| (of.tool, stand_in(of, skill()))).collect();
    let replaced = dialect.replace_native_tools(request, &taken, &skills);
    replaced.map(|(replaced, _)| replaced).map_err(|error| error.to_string())
}

/// The product's own skill under the reference's name.
fn skill() -> ToolDefinition {
    let run = Run { builtin: Some(Builtin::WebSearch), ..Run::default() };
    ToolDefinition {
        name: TOOL_NAME.into(),
        description: description("", Some(&run)).into(),
        parameters: input_schema(None, Some(&run)).cloned().unwrap_or_default().into(),
    }
}

fn short(tool: &Value) -> Value {
    let nested = &tool["function"];
    let name = if nested["name"].is_string() { &nested["name"] } else { &tool["name"] };
    json!({ "name": name, "type": tool["type"], "nested": nested.is_object() })
}

fn parameters(request: &Value) -> Option<&Value> {
    let tools = request["tools"].as_array()?.iter();
    let function = |tool: &'_ Value| if tool["function"].is_object() { "/function" } else { "" };
    let mut found = tools.filter_map(|tool| {
        let of = tool.pointer(function(tool))?;
        (of["name"] == TOOL_NAME).then(|| of.get("parameters").or_else(|| of.get("input_schema")))?
    });
    found.next()
}

/// The allowed built-ins are skills of other names that a request was offered.
pub(super) fn resolve_builtin(case: &Case) -> Result<Answer, String> {
    let allowed = case.input["allowed"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let is_allowed: BTreeSet<&str> = allowed.map(canonical).collect();
    let offered: Vec<(String, Builtin)> = Builtin::ALL
        .into_iter()
        .filter(|builtin| is_allowed.contains(builtin.as_str()))
        .map(|builtin| (format!("my-{}", builtin.as_str()), builtin))
        .collect();
    let identities = offered
        .iter()
        .map(|(name, builtin)| (SkillIdentity { namespace: "team", name, version: "1.0.0" }, *builtin));
    let table = OfferTable::new([], identities).with_builtins(|builtin| Some(builtin.as_str()));
    let handler = table.get(case.text("toolName")).map(|builtin| builtin.as_str());
    let is_browser = handler == Some("browser");
    Ok(Answer {
        difference: is_browser
            .then(|| "the product has a browser, the reference never registers its own".to_owned()),
        ..Answer::exact(case, json!({ "handler": handler }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::replay_case;

    fn check(kind: &str, input: &Value, expected: &Value, result: &str) {
        let judged = replay_case(kind, "compat", None, input, expected);
        assert!(judged.starts_with(result), "{input}: {judged}");
    }

    #[test]
    fn aliases_are_resolved_behind_the_version() {
        for (name, allowed, handler) in [
            ("omniroute_web_fetch@1.0.0", json!(["web_fetch"]), json!("web_fetch")),
            ("web_search", json!(["web_search", "omniroute_web_search"]), json!("web_search")),
            ("web_fetch", json!([]), json!(null)),
            ("web_fetch", json!(["web_search"]), json!(null)),
            ("Web_Search", json!(["web_search"]), json!(null)),
            ("weather", json!(["weather"]), json!(null)),
        ] {
            let input = json!({"toolName": name, "allowed": allowed});
            check("resolve_builtin", &input, &json!({"handler": handler}), "passed");
            check("resolve_builtin", &input, &json!({"handler": "other"}), "failed");
        }
    }

    // Cases are written once, where they are used.
    #[allow(clippy::needless_pass_by_value)]
    fn expected(tools: Value, choice: Value, converted: usize, default: u64) -> Value {
        let names = ["query", "search_type", "max_results", "country", "language", "time_range", "filters"];
        json!({ "plan": {"enabled": true, "toolName": TOOL_NAME, "convertedToolCount": converted}, "tools": tools,
            "toolChoice": choice, "parameterNames": names, "defaultMaxResults": default })
    }

    #[test]
    fn searches_are_replaced_where_the_upstream_has_none_or_a_rule_says_so() {
        let function = |nested: bool| json!({"name": TOOL_NAME, "type": "function", "nested": nested});
        let own = json!({"name": "own", "type": "function", "nested": false});
        let tools = json!([{"type": "function", "name": "own"}, {"type": "web_search", "search_context_size": "high"},
            {"type": "web_search_preview"}]);
        let body = json!({"tools": tools, "tool_choice": {"type": "web_search"}});
        let replay = |options: Value, expected: &Value, result: &str| {
            check("web_search_fallback", &json!({"body": body, "options": options}), expected, result);
        };
        let chosen = json!({"type": "function", "name": TOOL_NAME});
        let flat = expected(json!([function(false), own]), chosen, 2, 10);
        let responses = json!({"sourceFormat": "openai-responses", "targetFormat": "openai-responses"});
        replay(responses.clone(), &flat, "passed");
        for (field, other) in [
            ("plan", json!({"enabled": true, "toolName": TOOL_NAME, "convertedToolCount": 1})),
            ("tools", json!([own, function(false)])),
            ("toolChoice", json!({"type": "web_search"})),
            ("defaultMaxResults", json!(8)),
            ("parameterNames", json!(["query"])),
        ] {
            let mut wrong = flat.clone();
            wrong[field] = other;
            replay(responses.clone(), &wrong, "failed");
        }
        let chosen = json!({"type": "function", "function": {"name": TOOL_NAME}});
        let nested = expected(json!([function(true), own]), chosen, 2, 10);
        replay(json!({"sourceFormat": "openai", "targetFormat": "openai"}), &nested, "passed");
        replay(json!({"sourceFormat": "claude", "targetFormat": "openai"}), &nested, "passed");
        let forced = json!({"targetFormat": "gemini", "interceptSearchOverride": true});
        replay(forced, &nested, "passed");
        let minimax = json!({"sourceFormat": "claude", "targetFormat": "claude", "provider": "minimax"});
        replay(minimax, &nested, "a tool stands in the form");

        let kept_tools = json!([own, {"name": null, "type": "web_search", "nested": false},
            {"name": null, "type": "web_search_preview", "nested": false}]);
        let kept = json!({"plan": {"enabled": false, "toolName": null, "convertedToolCount": 0}, "tools": kept_tools,
            "toolChoice": {"type": "web_search"}, "parameterNames": null, "defaultMaxResults": null});
        for options in [
            json!({"targetFormat": "gemini"}),
            json!({"sourceFormat": "claude", "targetFormat": "claude"}),
            json!({"targetFormat": "openai-responses", "nativeCodexPassthrough": true}),
            json!({"targetFormat": "openai", "interceptSearchOverride": false}),
        ] {
            replay(options.clone(), &kept, "passed");
            replay(options, &flat, "failed");
        }
    }

    #[test]
    fn a_dated_search_that_the_reference_misses_is_replaced() {
        let input = json!({"body": {"tools": [{"type": "web_search_20250305"}]}, "options": {"targetFormat": "openai"}});
        let missed = json!({"plan": {"enabled": false, "toolName": null, "convertedToolCount": 0}});
        let want = Some("match dated names by prefix");
        assert_eq!(replay_case("web_search_fallback", "defect", want, &input, &missed), "passed");
    }
}

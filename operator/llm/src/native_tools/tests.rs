//! Native tools of requests in every dialect, and the skills that replace them.

use serde_json::json;

use super::*;

const SEARCH: &[NativeTool] = &[NativeTool::WebSearch];

fn skill(name: &str) -> ToolDefinition {
    let max_results = json!({"type": "integer", "minimum": 1, "maximum": 20});
    let parameters =
        json!({"type": "object", "properties": {"query": {"type": "string"}, "max_results": max_results}});
    ToolDefinition { name: name.into(), description: "Searches.".into(), parameters: parameters.into() }
}

/// Replaces the search of a request by a skill named `find`.
fn replaced(dialect: DialectName, request: &Value) -> (Value, Vec<Replacement>) {
    let mut request = request.clone();
    let taken = dialect.take_native_tools(&mut request, SEARCH);
    let skills: Vec<_> = taken.uses.iter().map(|of| (of.tool, stand_in(of, skill("find")))).collect();
    let (replaced, _) = dialect.replace_native_tools(&mut request, &taken, &skills).unwrap();
    (request, replaced)
}

/// The tools of a request, each by its names and fields.
fn short(request: &Value) -> Vec<String> {
    let text = |tool: &Value| {
        let names = [&tool["name"], &tool["function"]["name"], &tool["functionDeclarations"][0]["name"]];
        let name = names.into_iter().find_map(Value::as_str).unwrap_or_default();
        let fields: Vec<&str> = tool.as_object().unwrap().keys().map(String::as_str).collect();
        format!("{name}: {}", fields.join(" "))
    };
    items(&request["tools"]).iter().map(text).collect()
}

#[test]
fn a_native_tool_is_known_by_its_type_in_every_spelling() {
    use DialectName::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
    let found = |dialect: DialectName, tool: &Value| {
        let names = dialect.native_tools(&json!({"tools": [tool]}));
        names.into_iter().map(NativeTool::as_str).collect::<Vec<_>>().join(" ")
    };
    for dialect in [OpenAiChat, OpenAiResponses, Anthropic] {
        for (kind, expected) in [
            ("web_search", "web_search"),
            ("web_search_preview", "web_search"),
            ("web_search_preview_2025_03_11", "web_search"),
            ("web_search_20250305", "web_search"),
            ("web_fetch_20250910", "web_fetch"),
            ("web_searching", ""),
            ("Web_Search", ""),
            ("function", ""),
        ] {
            assert_eq!(found(dialect, &json!({"type": kind})), expected, "{dialect:?} {kind}");
        }
        assert_eq!(found(dialect, &json!({"type": "web_search", "function": {"name": "own"}})), "");
        assert_eq!(found(dialect, &json!({"name": "web_search"})), "");
        assert_eq!(dialect.native_tools(&json!({"tools": "web_search"})), []);
    }
    for (field, expected) in [
        ("googleSearch", "web_search"),
        ("google_search", "web_search"),
        ("googleSearchRetrieval", "web_search"),
        ("urlContext", "web_fetch"),
        ("codeExecution", ""),
    ] {
        assert_eq!(found(Gemini, &json!({field: {}})), expected, "{field}");
    }
    assert_eq!(found(Gemini, &json!({"googleSearch": {}, "url_context": {}})), "web_search web_fetch");
    assert_eq!(found(Gemini, &json!({"type": "web_search"})), "");
}

#[test]
fn the_skill_stands_first_in_the_form_of_each_dialect_and_once() {
    let nested = json!({"type": "function", "function": {"name": "own"}});
    let search = json!({"type": "web_search"});
    let two = json!({"tools": [nested, search, {"type": "web_search_preview"}]});
    let (request, done) = replaced(DialectName::OpenAiChat, &two);
    assert_eq!(short(&request), ["find: function type", "own: function type"]);
    assert_eq!(done, [Replacement { tool: NativeTool::WebSearch, tool_name: "find".into(), converted: 2 }]);

    let flat = json!({"tools": [{"type": "function", "name": "own"}, search]});
    let (request, _) = replaced(DialectName::OpenAiResponses, &flat);
    assert_eq!(short(&request), ["find: description name parameters strict type", "own: name type"]);

    let own = json!({"tools": [{"name": "own"}, {"type": "web_search_20250305", "name": "web_search"}]});
    let (request, _) = replaced(DialectName::Anthropic, &own);
    assert_eq!(short(&request), ["find: description input_schema name", "own: name"]);

    let own = json!({"tools": [{"functionDeclarations": [{"name": "own"}], "googleSearch": {}}, {"google_search": {}}]});
    let (request, done) = replaced(DialectName::Gemini, &own);
    assert_eq!(short(&request), ["find: functionDeclarations", "own: functionDeclarations"]);
    assert_eq!(done[0].converted, 2);
}

#[test]
fn a_tool_that_the_client_has_already_is_not_doubled() {
    let request =
        json!({"tools": [{"type": "web_search"}, {"type": "function", "function": {"name": "find"}}]});
    let (request, done) = replaced(DialectName::OpenAiChat, &request);
    assert_eq!((short(&request), done.len()), (vec!["find: function type".to_owned()], 1));
}

#[test]
fn a_choice_of_the_native_tool_follows_and_any_other_stays() {
    use DialectName::{Anthropic, OpenAiChat, OpenAiResponses};
    let chat = json!({"type": "function", "function": {"name": "find"}});
    let flat = json!({"type": "function", "name": "find"});
    let allowed = |tool: &Value| json!({"type": "allowed_tools", "mode": "auto", "tools": [tool]});
    let nested = |tool: &Value| json!({"type": "allowed_tools", "allowed_tools": {"tools": [tool]}});
    let native = json!({"type": "web_search"});
    for (dialect, choice, expected) in [
        (OpenAiChat, json!({"type": "web_search_preview"}), chat.clone()),
        (OpenAiResponses, native.clone(), flat.clone()),
        (OpenAiResponses, allowed(&native), allowed(&flat)),
        (OpenAiChat, nested(&native), nested(&chat)),
        (OpenAiChat, json!("required"), json!("required")),
        (
            OpenAiResponses,
            json!({"type": "function", "name": "own"}),
            json!({"type": "function", "name": "own"}),
        ),
        (
            Anthropic,
            json!({"type": "tool", "name": "web_search", "disable_parallel_tool_use": true}),
            json!({"type": "tool", "name": "find", "disable_parallel_tool_use": true}),
        ),
        (Anthropic, json!({"type": "tool", "name": "own"}), json!({"type": "tool", "name": "own"})),
    ] {
        let tools = json!([{"type": "web_search", "name": "web_search"}]);
        let (request, _) = replaced(dialect, &json!({"tools": tools, "tool_choice": choice}));
        assert_eq!(request["tool_choice"], expected, "{dialect:?} {choice}");
    }
}

#[test]
fn a_request_without_its_native_tools_forces_none_and_gets_them_back_unchanged() {
    for (dialect, request) in [
        (
            DialectName::OpenAiResponses,
            json!({"tools": [{"type": "web_search"}, {"type": "code_interpreter"}], "tool_choice": {"type": "web_search"}}),
        ),
        (DialectName::Gemini, json!({"tools": [{"googleSearch": {}, "urlContext": {}}]})),
        (DialectName::Anthropic, json!({"tools": "odd", "tool_choice": 1})),
        (DialectName::OpenAiChat, json!({})),
    ] {
        let mut changed = request.clone();
        let taken = dialect.take_native_tools(&mut changed, SEARCH);
        assert_eq!(
            dialect.native_tools(&changed),
            [NativeTool::WebFetch][..usize::from(dialect == DialectName::Gemini)]
        );
        let is_forced = changed["tool_choice"]["type"] == "web_search";
        assert!(!is_forced, "{changed}");
        dialect.put_back_native_tools(&mut changed, taken);
        // A missing field is read as null.
        let same = |field: &str| changed[field] == request[field];
        assert!(same("tools") && same("tool_choice"), "{changed}");
    }
}

#[test]
fn the_number_of_results_follows_the_size_of_context() {
    let default = |tool: Value, tool_of: ToolDefinition| {
        let mut request = json!({"tools": [tool]});
        let taken = DialectName::OpenAiResponses.take_native_tools(&mut request, &NativeTool::ALL);
        let skill = stand_in(&taken.uses[0], tool_of);
        (skill.parameters["properties"]["max_results"]["default"].clone(), skill.description.to_string())
    };
    for (size, expected) in [
        (json!("low"), 5),
        (json!(" HIGH "), 10),
        (json!("medium"), 8),
        (json!("huge"), 8),
        (json!(null), 8),
        (json!(5), 8),
    ] {
        let (number, words) =
            default(json!({"type": "web_search", "search_context_size": size}), skill("find"));
        assert_eq!(number, json!(expected), "{size}");
        assert_eq!(words, format!("Searches. If max_results is omitted, prefer about {expected} results."));
    }
    let bounded = json!({"properties": {"max_results": {"maximum": 3}}});
    let (number, _) =
        default(json!({"type": "web_search"}), ToolDefinition { parameters: bounded.into(), ..skill("f") });
    assert_eq!(number, json!(3));
    let without = json!({"properties": {"q": {}}});
    let bare = ToolDefinition { parameters: without.into(), ..skill("f") };
    assert_eq!(default(json!({"type": "web_search"}), bare), (Value::Null, "Searches.".to_owned()));
    assert_eq!(default(json!({"type": "web_fetch"}), skill("f")), (Value::Null, "Searches.".to_owned()));
}

#[test]
fn the_domains_of_the_client_stand_in_the_description() {
    for settings in [
        json!({"type": "web_search_20250305", "allowed_domains": ["a.com", "b.com"], "blocked_domains": ["c.com"]}),
        json!({"type": "web_search", "filters": {"allowed_domains": ["a.com", "b.com"], "blocked_domains": ["c.com"]}}),
    ] {
        let mut request = json!({"tools": [settings]});
        let taken = DialectName::Anthropic.take_native_tools(&mut request, SEARCH);
        let words = stand_in(&taken.uses[0], skill("find")).description.to_string();
        assert!(
            words.ends_with(
                " Use results of these domains alone: a.com, b.com. Use no results of these domains: c.com."
            ),
            "{words}"
        );
    }
}

//! Native tools of all dialects through the whole gateway: replaced by a skill, kept, and called by other names.

use serde_json::json;
use skillet_api::gateway::{NativeToolUse, OfferMode};

use super::*;
use crate::{
    model::{conversation::RAN_HEADER, offered_tools::OFFERED_HEADER},
    testing::{
        TestGateway, TestResponse,
        scripts::{CHAT, asking, will_say},
    },
};

/// A gateway with a skill of `web_search` that no text of the tests matches.
fn gateway(native: NativeToolUse) -> TestGateway {
    let gateway = TestGateway::new();
    gateway.change_policy(|policy| {
        let providers = &mut policy.gateway.providers;
        for provider in [&mut providers.openai, &mut providers.anthropic, &mut providers.gemini] {
            (provider.native_web_search, provider.native_web_fetch) = (native, native);
        }
    });
    gateway.skill("team", "find", &json!({ "description": "Finds.", "run": { "builtin": "web_search" } }));
    let done =
        json!({ "phase": "Succeeded", "output": { "results": [] }, "attempts": 1, "truncated": false });
    gateway.api.set_status_on_create(done);
    gateway
}

/// The native search of a dialect, and a tool of the client's own.
fn tools(dialect: DialectName) -> Value {
    match dialect {
        DialectName::OpenAiChat => {
            json!([{ "type": "web_search" }, { "type": "function", "function": { "name": "own" } }])
        }
        DialectName::OpenAiResponses => {
            json!([{ "type": "web_search_preview", "search_context_size": "low" }, { "type": "function", "name": "own" }])
        }
        DialectName::Anthropic => {
            json!([{ "type": "web_search_20250305", "name": "web_search" }, { "name": "own", "input_schema": {} }])
        }
        DialectName::Gemini => json!([{ "functionDeclarations": [{ "name": "own" }], "googleSearch": {} }]),
    }
}

fn names(sent: &Value) -> Vec<&str> {
    let of = |tool: &'static str| move |entry: &'_ Value| entry.pointer(tool).is_some();
    let tools = sent["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let places = ["/functionDeclarations/0/name", "/function/name", "/name", "/type"];
    let name = |tool| {
        let place = places.into_iter().find(|place| of(place)(tool)).unwrap_or("/none");
        Value::pointer(tool, place).and_then(Value::as_str)
    };
    tools.iter().filter_map(name).collect()
}

fn native(response: &TestResponse) -> &str {
    response.header(NATIVE_HEADER)
}

async fn search(gateway: &TestGateway, dialect: DialectName, is_streaming: bool) -> TestResponse {
    let (path, mut request) = asking(dialect, "hi", is_streaming);
    request["tools"] = tools(dialect);
    gateway.post(&path, &request).await
}

#[tokio::test]
async fn a_skill_stands_in_the_place_of_the_search_and_answers_its_calls_in_every_dialect() {
    for dialect in DialectName::ALL {
        for is_streaming in [false, true] {
            let gateway = gateway(NativeToolUse::Replace);
            let input = json!({ "query": "rust" });
            will_say(&gateway, dialect, Some(("find", &input)), is_streaming);
            will_say(&gateway, dialect, None, is_streaming);
            let response = search(&gateway, dialect, is_streaming).await;
            let what = format!("{dialect:?} {is_streaming} {}", response.text);
            assert!(response.text.contains("all done") && !response.text.contains("rust"), "{what}");
            assert_eq!(
                (response.header(OFFERED_HEADER), native(&response)),
                ("find", "web_search=find"),
                "{what}"
            );
            if !is_streaming {
                assert_eq!(response.header(RAN_HEADER), "find", "{what}");
            }
            let sent: Vec<Value> =
                gateway.provider.texts().iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            assert_eq!(sent.len(), 2, "{what}");
            assert!(sent.iter().all(|sent| names(sent) == ["find", "own"]), "{what} {sent:?}");
            assert!(sent[1].to_string().contains("results"), "{what} {}", sent[1]);
            let runs = gateway.api.executions();
            assert_eq!(
                (runs.len(), &runs[0]["spec"]["skill"], &runs[0]["spec"]["input"]),
                (1, &json!("find"), &input)
            );
        }
    }
}

#[tokio::test]
async fn a_request_is_not_changed_unasked_in_any_dialect() {
    for dialect in DialectName::ALL {
        let gateway = gateway(NativeToolUse::Keep);
        let response = search(&gateway, dialect, false).await;
        let (_, mut request) = asking(dialect, "hi", false);
        request["tools"] = tools(dialect);
        assert_eq!((response.status, native(&response)), (200, ""));
        assert_eq!(gateway.provider.texts(), [request.to_string()], "{dialect:?}");
    }
}

#[tokio::test]
async fn the_number_of_results_and_a_forced_search_follow() {
    let gateway = gateway(NativeToolUse::Replace);
    let dialect = DialectName::OpenAiResponses;
    let (path, mut request) = asking(dialect, "hi", false);
    request["tools"] = tools(dialect);
    request["tool_choice"] = json!({ "type": "web_search_preview" });
    will_say(&gateway, dialect, Some(("find", &json!({ "query": "x" }))), false);
    will_say(&gateway, dialect, None, false);
    assert_eq!(gateway.post(&path, &request).await.header(RAN_HEADER), "find");
    let first: Value = serde_json::from_str(&gateway.provider.texts()[0]).unwrap();
    assert_eq!(first["tool_choice"], json!({ "type": "function", "name": "find" }));
    assert_eq!(first["tools"][0]["parameters"]["properties"]["max_results"]["default"], 5);
    assert_eq!(first["tools"][0]["description"], "Finds. If max_results is omitted, prefer about 5 results.");
    assert_eq!(gateway.provider.last_request()["tool_choice"], "auto", "or the model could never answer");
}

#[tokio::test]
async fn what_keeps_the_search_in_the_request_is_named() {
    let dialect = DialectName::Gemini;
    let kept = async |gateway: &TestGateway, change: fn(&mut Value), headers: &[(&str, &str)]| {
        let (path, mut request) = asking(dialect, "hi", false);
        request["tools"] = tools(dialect);
        change(&mut request);
        let text = request.to_string();
        let response = gateway.send("POST", &path, Some("team/agent"), headers, &text).await;
        assert_eq!(gateway.provider.texts().last(), Some(&text), "{response:?}");
        native(&response).to_owned()
    };
    let gateway = gateway(NativeToolUse::Replace);
    assert_eq!(kept(&gateway, |_| (), &[("x-skillet-skills", "off")]).await, "web_search: SwitchedOff");
    assert_eq!(kept(&gateway, |_| (), &[("x-skillet-skills", "only=sum")]).await, "web_search: NotNamed");
    let several = |request: &mut Value| request["generationConfig"] = json!({ "candidateCount": 2 });
    assert_eq!(kept(&gateway, several, &[]).await, "web_search: SeveralAnswers");
    let other = |request: &mut Value| request["tools"][0]["codeExecution"] = json!({});
    assert_eq!(kept(&gateway, other, &[]).await, "web_search: ProviderTools");
    gateway.skill("team", "find", &json!({ "enabled": false, "run": { "builtin": "web_search" } }));
    assert_eq!(kept(&gateway, |_| (), &[]).await, "web_search: SkillDisabled");
    gateway.remove_skills();
    assert_eq!(kept(&gateway, |_| (), &[]).await, "web_search: NoSkill");
}

#[tokio::test]
async fn a_provider_that_refuses_the_skill_gets_its_own_tool_back() {
    let gateway = gateway(NativeToolUse::Replace);
    gateway.provider.will_fail(400, &json!({ "error": { "message": "this model does not support tools" } }));
    let response = search(&gateway, DialectName::Anthropic, false).await;
    assert_eq!((response.status, native(&response)), (200, "web_search: ProviderRefused"));
    assert_eq!(names(&gateway.provider.last_request()), ["web_search", "own"]);
    let response = search(&gateway, DialectName::Anthropic, false).await;
    assert_eq!(native(&response), "web_search: ProviderRefused", "it is remembered");
}

#[tokio::test]
async fn one_of_two_native_tools_may_be_replaced() {
    let gateway = gateway(NativeToolUse::Replace);
    let (path, mut request) = asking(DialectName::Anthropic, "hi", false);
    request["tools"] = json!([{ "type": "web_fetch_20250910", "name": "web_fetch" }, { "type": "web_search_20250305", "name": "web_search" }]);
    let response = gateway.post(&path, &request).await;
    assert_eq!(native(&response), "web_fetch: NoSkill,web_search=find");
    assert_eq!(names(&gateway.provider.last_request()), ["find", "web_fetch"]);
    gateway.skill("team", "read", &json!({ "run": { "builtin": "web_fetch" } }));
    let response = gateway.post(&path, &request).await;
    assert_eq!(native(&response), "web_fetch=read,web_search=find");
    assert_eq!(names(&gateway.provider.last_request()), ["read", "find"]);
    request["tools"][0]["allowed_domains"] = json!(["docs.example.com"]);
    let response = gateway.post(&path, &request).await;
    assert_eq!(
        native(&response),
        "web_fetch: Domains,web_search=find",
        "the skill knows no limit of domains"
    );
}

#[tokio::test]
async fn the_next_request_of_the_client_has_the_skill_again_under_the_same_name() {
    let key = skillet_llm::confirmation::ConfirmationKey::new(&[7; 32]).unwrap();
    let gateway = TestGateway::with_confirmation(Some(key));
    gateway.change_policy(|policy| {
        policy.gateway.providers.anthropic.native_web_search = NativeToolUse::Replace;
    });
    gateway.skill("team", "web-search", &json!({ "run": { "builtin": "web_search" } }));
    let done = json!({ "phase": "Succeeded", "output": "found", "attempts": 1, "truncated": false });
    gateway.api.set_status_on_create(done);
    let dialect = DialectName::Anthropic;
    let (path, mut request) = asking(dialect, "hi", false);
    request["tools"] = tools(dialect);
    will_say(&gateway, dialect, Some(("web-search", &json!({ "query": "x" }))), false);
    will_say(&gateway, dialect, None, false);
    let response = gateway.post(&path, &request).await.json();
    let messages = request["messages"].as_array_mut().unwrap();
    messages.push(json!({ "role": "assistant", "content": response["content"] }));
    messages.push(json!({ "role": "user", "content": "and now?" }));
    will_say(&gateway, dialect, None, false);
    assert_eq!(gateway.post(&path, &request).await.status, 200);
    let sent = gateway.provider.last_request();
    assert_eq!(names(&sent), ["web-search", "own"]);
    let turns = sent["messages"].to_string();
    assert!(turns.contains(r#""name":"web-search""#) && turns.contains("found"), "{turns}");
}

#[tokio::test]
async fn a_built_in_is_called_by_its_own_names_too() {
    for name in ["web_search", "omniroute_web_search", "omniroute_web_search@1.0.0"] {
        for is_streaming in [false, true] {
            let gateway = gateway(NativeToolUse::Replace);
            let dialect = DialectName::OpenAiChat;
            let input = json!({ "query": "x" });
            will_say(&gateway, dialect, Some((name, &input)), is_streaming);
            will_say(&gateway, dialect, None, is_streaming);
            let response = search(&gateway, dialect, is_streaming).await;
            assert!(
                response.text.contains("all done") && !response.text.contains(name),
                "{name} {response:?}"
            );
            assert_eq!(gateway.api.executions()[0]["spec"]["skill"], "find", "{name}");
        }
    }
    // Without the skill in the offer, and for a tool of the client's own, the call is the client's.
    let gateway = gateway(NativeToolUse::Keep);
    will_say(&gateway, DialectName::OpenAiChat, Some(("web_search", &json!({}))), false);
    assert!(search(&gateway, DialectName::OpenAiChat, false).await.text.contains("web_search"));
    assert!(gateway.api.executions().is_empty());
}

#[tokio::test]
async fn a_hybrid_skill_of_a_built_in_waits_for_a_person_also_under_its_own_names() {
    let key = skillet_llm::confirmation::ConfirmationKey::new(&[7; 32]).unwrap();
    let gateway = TestGateway::with_confirmation(Some(key));
    gateway.skill(
        "team",
        "call",
        &json!({ "mode": "on", "invocation": "hybrid", "run": { "builtin": "http_request" } }),
    );
    let dialect = DialectName::OpenAiChat;
    will_say(&gateway, dialect, Some(("http_request", &json!({ "url": "https://a.example" }))), false);
    let (path, request) = asking(dialect, "hi", false);
    let response = gateway.post(&path, &request).await;
    assert!(response.text.contains(r#"skillet\":\"confirm"#), "{}", response.text);
    assert!(gateway.api.executions().is_empty());
}

#[tokio::test]
async fn the_skill_stands_beside_the_tools_of_mode_search() {
    let gateway = gateway(NativeToolUse::Replace);
    gateway.change_policy(|policy| policy.gateway.offer.mode = OfferMode::Search);
    let response = search(&gateway, DialectName::OpenAiChat, false).await;
    assert_eq!(native(&response), "web_search=find");
    let sent = gateway.provider.last_request();
    assert_eq!(names(&sent), ["find", "own", "find_skills", "run_skill"]);
}

#[tokio::test]
async fn dry_runs_routers_and_explanations_tell_of_native_tools() {
    let gateway = gateway(NativeToolUse::Replace);
    let (_, mut request) = asking(DialectName::OpenAiChat, "hi", false);
    request["tools"] = tools(DialectName::OpenAiChat);
    let replaced = json!([{ "tool": "web_search", "replacedBy": "find" }]);
    let headers = [("x-skillet-dry-run", "true")];
    let shown = gateway.send("POST", CHAT, Some("team/agent"), &headers, &request.to_string()).await.json();
    assert_eq!((&shown["nativeTools"], names(&shown["request"])), (&replaced, vec!["find", "own"]));
    let asked = json!({ "dialect": "openai-chat", "request": request });
    let injected = gateway.post("/v1/inject", &asked).await.json();
    assert_eq!((&injected["nativeTools"], names(&injected["request"])), (&replaced, vec!["find", "own"]));
    assert_eq!(injected["offered"]["find"]["skill"], "find");
    let explained = gateway.post("/v1/explain", &asked).await.json();
    assert_eq!(explained["nativeTools"], replaced);
    let decision = |explained: &Value| explained["skills"][0]["reason"].clone();
    assert_eq!(decision(&explained), "Offered");
    gateway.skill("team", "find", &json!({ "mode": "off", "run": { "builtin": "web_search" } }));
    let explained = gateway.post("/v1/explain", &asked).await.json();
    assert_eq!(explained["nativeTools"], json!([{ "tool": "web_search", "kept": "SkillOff" }]));
    assert_eq!(decision(&explained), "SkillOff");
}

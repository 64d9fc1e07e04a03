//! Mode `Search` through the whole gateway: the loop in every dialect, refusals, confirmations, and the names of the tools.

use skillet_api::gateway::{OfferMatching, OfferMode};
use skillet_llm::{
    DialectName::{self, OpenAiChat},
    confirmation::ConfirmationKey,
};

use super::*;
use crate::{
    auth::Verb,
    testing::{
        AGENT, TestGateway,
        scripts::{CHAT, asking, confirm, response, will_say},
    },
};

/// A gateway in mode `Search` with a skill that counts words, one that a person confirms, and some that no model may run.
fn searching() -> TestGateway {
    let gateway = TestGateway::with_confirmation(Some(ConfirmationKey::new(&[9; 32]).unwrap()));
    gateway.api.set_status_on_create(json!({ "phase": "Succeeded", "reason": "Succeeded", "attempts": 1,
        "truncated": false, "output": { "words": 2 } }));
    gateway.change_policy(|policy| {
        policy.gateway.offer.mode = OfferMode::Search;
        policy.gateway.offer.matching = OfferMatching::Ranked;
    });
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let tool = json!({ "inputSchema": schema });
    gateway.skill(
        "team",
        "word-count",
        &json!({ "description": "Counts the words of a text.", "tool": tool }),
    );
    gateway.skill("shop", "weather", &json!({ "description": "Weather forecast of a city.", "mode": "off" }));
    gateway.skill("shop", "deploy", &json!({ "description": "Deploys a service.", "invocation": "manual" }));
    gateway
}

fn add_hybrid(gateway: &TestGateway) {
    gateway.skill("team", "pay", &json!({ "description": "Pays an invoice.", "invocation": "hybrid" }));
}

/// Returns the tools of the requests that the provider got since the first `before`.
fn sent_tools(gateway: &TestGateway, before: usize) -> Vec<Value> {
    let sent = gateway.provider.texts().split_off(before);
    sent.iter().map(|text| serde_json::from_str::<Value>(text).unwrap()["tools"].clone()).collect()
}

#[tokio::test]
async fn a_model_finds_and_runs_a_skill_in_each_dialect_streamed_or_not() {
    let gateway = searching();
    let (query, run) =
        (json!({ "query": "count words" }), json!({ "skill": "word-count", "input": { "text": "a b" } }));
    for dialect in DialectName::ALL {
        for is_streaming in [false, true] {
            let (before, runs) = (gateway.provider.texts().len(), gateway.api.executions().len());
            will_say(&gateway, dialect, Some(("find_skills", &query)), is_streaming);
            will_say(&gateway, dialect, Some(("run_skill", &run)), is_streaming);
            will_say(&gateway, dialect, None, is_streaming);
            let (path, request) = asking(dialect, "How many words are in: a b", is_streaming);
            let answer = gateway.post(&path, &request).await;
            let case = format!("{dialect:?} {is_streaming} {}", answer.text);
            assert!(answer.text.contains("all done") && !answer.text.contains("find_skills"), "{case}");
            assert_eq!(answer.header("x-skillet-offered"), "find_skills,run_skill", "{case}");
            if !is_streaming {
                assert_eq!(answer.header("x-skillet-ran"), "word-count", "{case}");
            }
            let sent = gateway.provider.texts().split_off(before);
            let [first, second, third] = sent.as_slice() else { panic!("{case} {sent:?}") };
            assert!(
                !first.contains("word-count") && second.contains("Counts the words of a text."),
                "{second}"
            );
            assert!(third.contains("\\\"words\\\":2") || third.contains("\"words\":2"), "{third}");
            let tools = sent_tools(&gateway, before);
            assert!(tools.iter().all(|sent| *sent == tools[0] && !sent.is_null()), "{case} {tools:?}");
            let executions = gateway.api.executions();
            assert_eq!(executions.len(), runs + 1, "{case}");
            let spec = &executions.last().unwrap()["spec"];
            assert_eq!((&spec["skill"], &spec["input"]), (&json!("word-count"), &json!({ "text": "a b" })));
        }
    }
}

#[tokio::test]
async fn the_tools_are_the_same_for_every_text_and_every_change_of_the_skills() {
    let gateway = searching();
    for text in ["hi", "count the words", "weather in Rome"] {
        gateway.post(CHAT, &asking(OpenAiChat, text, false).1).await;
    }
    gateway.skill("team", "translate", &json!({ "description": "Translates a text." }));
    gateway.post(CHAT, &asking(OpenAiChat, "translate this", false).1).await;
    let tools = sent_tools(&gateway, 0);
    assert_eq!(tools.len(), 4);
    assert!(tools.iter().all(|sent| *sent == tools[0] && sent.as_array().unwrap().len() == 2), "{tools:?}");
}

/// Returns the result of a call that a router intercepts.
async fn intercepted(gateway: &TestGateway, tool: &str, input: &Value, headers: &[(&str, &str)]) -> Value {
    let answer: Value = serde_json::from_str(&response(OpenAiChat, Some((tool, input)), false)).unwrap();
    let offered = json!({ "find_skills": { "search": "Find" }, "run_skill": { "search": "Run" },
        "run_skill_with_confirmation": { "search": "RunWithConfirmation" } });
    let body = json!({ "dialect": "openai-chat", "request": asking(OpenAiChat, "x", false).1, "answer": answer,
        "offered": offered });
    let answer = gateway.send("POST", "/v1/intercept", Some(AGENT), headers, &body.to_string()).await.json();
    serde_json::from_str(answer["results"][0]["content"].as_str().unwrap_or("null")).unwrap()
}

#[tokio::test]
async fn a_skill_that_models_may_not_run_is_neither_found_nor_run() {
    let gateway = searching();
    add_hybrid(&gateway);
    for query in ["weather forecast of a city", "deploy a service"] {
        let found = intercepted(&gateway, "find_skills", &json!({ "query": query }), &[]).await;
        assert_eq!(found["skills"], json!([]), "{found}");
    }
    for (skill, reason) in
        [("weather", "SkillOff"), ("deploy", "ManualOnly"), ("nothing", "Unknown"), ("pay", "NotConfirmed")]
    {
        let result = intercepted(&gateway, "run_skill", &json!({ "skill": skill, "input": {} }), &[]).await;
        assert_eq!(result["error"]["reason"], reason, "{result}");
    }
    for input in [json!({}), json!({ "skill": "word-count", "input": [] })] {
        let result = intercepted(&gateway, "run_skill", &input, &[]).await;
        assert_eq!(result["error"]["reason"], "InputInvalid", "{result}");
    }
    gateway.deny("team", Some("word-count"), Verb::Execute);
    let input = json!({ "skill": "word-count", "input": {} });
    assert_eq!(intercepted(&gateway, "run_skill", &input, &[]).await["error"]["reason"], "Forbidden");
    assert_eq!(gateway.created(), 0);
}

#[tokio::test]
async fn a_request_narrows_the_skills_that_are_found_and_run() {
    let gateway = searching();
    let (query, run) = (json!({ "query": "count words" }), json!({ "skill": "word-count", "input": {} }));
    for (skills, found, reason) in
        [("all", 1, Value::Null), ("only=word-count", 1, Value::Null), ("only=other", 0, json!("NotNamed"))]
    {
        let headers = [("x-skillet-skills", skills)];
        let listed = intercepted(&gateway, "find_skills", &query, &headers).await;
        assert_eq!(listed["skills"].as_array().unwrap().len(), found, "{skills} {listed}");
        let result = intercepted(&gateway, "run_skill", &run, &headers).await;
        assert_eq!(result["error"]["reason"], reason, "{skills} {result}");
    }
    for (skills, offered) in
        [("off", ""), ("exactly=word-count", "word-count"), ("all", "find_skills,run_skill")]
    {
        let body = asking(OpenAiChat, "hi", false).1.to_string();
        let answer = gateway.send("POST", CHAT, Some(AGENT), &[("x-skillet-skills", skills)], &body).await;
        assert_eq!(answer.header("x-skillet-offered"), offered, "{skills}");
    }
}

#[tokio::test]
async fn a_person_confirms_the_skill_and_the_input_that_a_call_names() {
    for (is_streaming, mode) in
        [(false, OfferMode::Search), (true, OfferMode::Search), (false, OfferMode::Tools)]
    {
        let gateway = searching();
        add_hybrid(&gateway);
        let input = json!({ "skill": "pay", "input": { "amount": 5 } });
        will_say(&gateway, OpenAiChat, Some(("run_skill_with_confirmation", &input)), is_streaming);
        let answer = gateway.post(CHAT, &asking(OpenAiChat, "pay", is_streaming).1).await;
        assert!(answer.text.contains("The skill pay waits"), "{}", answer.text);
        assert_eq!(gateway.created(), 0);
        let offered = "find_skills,run_skill,run_skill_with_confirmation";
        assert_eq!(answer.header("x-skillet-offered"), offered);
        // The policy may change before the reply.
        gateway.change_policy(|policy| policy.gateway.offer.mode = mode);
        confirm(&gateway, &answer, "run_skill_with_confirmation", &input).await;
        let spec = &gateway.api.executions()[0]["spec"];
        assert_eq!((&spec["skill"], &spec["input"]), (&json!("pay"), &json!({ "amount": 5 })));
    }
}

#[tokio::test]
async fn no_tool_has_the_name_of_a_clients_own() {
    let gateway = searching();
    gateway.change_policy(|policy| policy.gateway.offer.search_tools.run = "do_it".into());
    let mut request = asking(OpenAiChat, "hi", false).1;
    request["tools"] =
        json!([{ "type": "function", "function": { "name": "find_skills", "parameters": {} } }]);
    let answer = gateway.post(CHAT, &request).await;
    assert_eq!(answer.header("x-skillet-offered"), "find_skills_2,do_it");
    let sent = gateway.provider.last_request()["tools"].to_string();
    assert!(sent.contains("that find_skills_2 has found"), "{sent}");
}

#[tokio::test]
async fn tools_over_the_budget_or_without_a_skill_are_not_offered() {
    let gateway = searching();
    gateway.change_policy(|policy| policy.gateway.offer.token_budget = 50);
    let request = asking(OpenAiChat, "hi", false).1;
    assert_eq!(gateway.post(CHAT, &request).await.header("x-skillet-offered"), "");
    gateway.change_policy(|policy| policy.gateway.offer.token_budget = 16_000);
    assert_eq!(gateway.post(CHAT, &request).await.header("x-skillet-offered"), "find_skills,run_skill");
    gateway.remove_skills();
    assert_eq!(gateway.post(CHAT, &request).await.header("x-skillet-offered"), "");
}

#[tokio::test]
async fn the_explanation_is_that_of_a_search_for_the_last_turn() {
    let gateway = searching();
    let body = json!({ "dialect": "openai-chat", "request": asking(OpenAiChat, "count words", false).1 });
    let explained = gateway.post("/v1/explain", &body).await.json();
    assert_eq!(explained["mode"], "Search");
    let skills = explained["skills"].as_array().unwrap();
    let of = |name: &str| skills.iter().find(|skill| skill["name"] == name).unwrap();
    assert_eq!((&of("word-count")["offered"], &of("word-count")["threshold"]), (&json!(true), &json!(1)));
    assert_eq!(of("weather")["reason"], "SkillOff");
}

#[test]
fn an_input_may_be_text_or_stand_beside_the_name() {
    for arguments in [
        json!({ "skill": "a", "input": { "n": 1 } }),
        json!({ "skill": "a", "input": "{\"n\":1}" }),
        json!({ "skill": " a ", "n": 1 }),
    ] {
        assert_eq!(read_run(&arguments), Ok(("a", json!({ "n": 1 }))), "{arguments}");
    }
    for arguments in [json!({}), json!({ "skill": "" }), json!({ "skill": "a", "input": "[1]" })] {
        assert!(read_run(&arguments).is_err(), "{arguments}");
    }
}

//! Scripts of bundles through the whole gateway: run in each dialect, refused with words that help, and confirmed.

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

/// A gateway with a skill that has two scripts and a file. Every run ends at once.
fn scripted(invocation: &str) -> TestGateway {
    let gateway = TestGateway::with_confirmation(Some(ConfirmationKey::new(&[9; 32]).unwrap()));
    gateway.api.set_status_on_create(json!({ "phase": "Succeeded", "reason": "Succeeded", "attempts": 1,
        "truncated": false, "exitCode": 0, "output": { "output": "3 pages" } }));
    gateway.skill(
        "team",
        "pdf",
        &json!({ "description": "Reads pdf files.", "run": null, "invocation": invocation,
            "instructions": { "body": "Count the pages with scripts/pages.py." },
            "files": [{ "path": "scripts/pages.py", "content": "print(3)" },
                { "path": "tool", "content": "#!/bin/bash\necho" }, { "path": "notes.md", "content": "Notes." }] }),
    );
    gateway
}

fn call() -> Value {
    json!({ "name": "pdf", "path": "./scripts/pages.py", "args": ["--from", 1], "stdin": "text" })
}

#[tokio::test]
async fn a_model_runs_a_script_in_each_dialect_streamed_or_not() {
    let gateway = scripted("auto");
    for dialect in DialectName::ALL {
        for is_streaming in [false, true] {
            let before = (gateway.provider.texts().len(), gateway.api.executions().len());
            will_say(&gateway, dialect, Some(("run_skill_script", &call())), is_streaming);
            will_say(&gateway, dialect, None, is_streaming);
            let (path, request) = asking(dialect, "How many pages?", is_streaming);
            let answer = gateway.post(&path, &request).await;
            let case = format!("{dialect:?} {is_streaming} {}", answer.text);
            assert!(answer.text.contains("all done") && !answer.text.contains("run_skill_script"), "{case}");
            assert_eq!(
                answer.header("x-skillet-offered"),
                "skill,read_skill_file,run_skill_script",
                "{case}"
            );
            if !is_streaming {
                assert_eq!(answer.header("x-skillet-ran"), "pdf", "{case}");
            }
            let texts = gateway.provider.texts().split_off(before.0);
            assert!(texts[1].contains("exitCode") && texts[1].contains("3 pages"), "{case} {}", texts[1]);
            let made = gateway.api.executions().split_off(before.1);
            let spec = &made[0]["spec"];
            assert_eq!(
                spec["script"],
                json!({ "path": "scripts/pages.py", "args": ["--from", "1"], "stdin": "text" })
            );
            assert_eq!((&spec["skill"], &spec["version"]), (&json!("pdf"), &json!("1.0.0")), "{case}");
            assert!(spec.get("input").is_none(), "{spec}");
        }
    }
}

#[tokio::test]
async fn the_tool_names_the_skills_that_have_scripts_and_is_absent_without_one() {
    let gateway = scripted("auto");
    gateway.skill(
        "team",
        "text",
        &json!({ "run": null, "instructions": {}, "files": [{ "path": "a.md", "content": "x" }] }),
    );
    let (_, request) = asking(OpenAiChat, "hi", false);
    gateway.post(CHAT, &request).await;
    let tools = gateway.provider.last_request()["tools"].clone();
    let names = |place: usize| tools[place]["function"]["parameters"]["properties"]["name"]["enum"].clone();
    assert_eq!((names(1), names(2)), (json!(["pdf", "text"]), json!(["pdf"])));
    let headers = [("x-skillet-skills", "only=text")];
    let answer = gateway.send("POST", CHAT, Some(AGENT), &headers, &request.to_string()).await;
    assert_eq!(answer.header("x-skillet-offered"), "skill,read_skill_file");
}

/// Returns the result of a call that a router intercepts.
async fn intercepted(gateway: &TestGateway, headers: &[(&str, &str)], input: &Value) -> Value {
    let called = response(OpenAiChat, Some(("run_skill_script", input)), false);
    let answer: Value = serde_json::from_str(&called).unwrap();
    let body = json!({ "dialect": "openai-chat", "request": asking(OpenAiChat, "x", false).1, "answer": answer,
        "offered": { "run_skill_script": { "instructions": "RunScript" } } });
    let account = headers.iter().find(|(name, _)| *name == "account").map_or(AGENT, |(_, account)| account);
    let headers: Vec<_> = headers.iter().copied().filter(|(name, _)| *name != "account").collect();
    let answer =
        gateway.send("POST", "/v1/intercept", Some(account), &headers, &body.to_string()).await.json();
    serde_json::from_str(answer["results"][0]["content"].as_str().unwrap_or("null")).unwrap()
}

#[tokio::test]
async fn what_cannot_run_is_refused_and_makes_no_execution() {
    let gateway = scripted("auto");
    for (input, reason, part) in [
        (json!({ "name": "pdf", "path": "../x.py" }), "FileNotFound", "its scripts: scripts/pages.py, tool"),
        (json!({ "name": "pdf", "path": "/etc/passwd" }), "FileNotFound", "has no file"),
        (
            json!({ "name": "pdf", "path": "notes.md" }),
            "NoInterpreter",
            "its scripts: scripts/pages.py, tool",
        ),
        (json!({ "name": "pdf" }), "InputInvalid", "`path` is missing"),
        (json!({ "path": "tool" }), "InputInvalid", "`name` is missing"),
        (json!({ "name": "pdf", "path": "tool", "args": "-l" }), "InputInvalid", "list of strings"),
        (json!({ "name": "other", "path": "tool" }), "SkillNotFound", "the listing has the names"),
    ] {
        let result = intercepted(&gateway, &[], &input).await;
        assert_eq!(result["error"]["reason"], reason, "{result}");
        assert!(result["error"]["message"].as_str().unwrap().contains(part), "{result}");
    }
    let result = intercepted(&gateway, &[("account", "other/agent")], &call()).await;
    assert_eq!(result["error"]["reason"], "SkillNotFound", "{result}");
    gateway.deny("team", Some("pdf"), Verb::Execute);
    assert_eq!(intercepted(&gateway, &[], &call()).await["error"]["reason"], "Forbidden");
    assert_eq!(gateway.created(), 0);
}

#[tokio::test]
async fn a_repeated_call_with_a_key_is_one_run_and_another_script_is_another() {
    let gateway = scripted("auto");
    let key = [("idempotency-key", "k")];
    let other = json!({ "name": "pdf", "path": "tool" });
    for (input, runs) in [(call(), 1), (call(), 1), (other.clone(), 2), (other, 2)] {
        let result = intercepted(&gateway, &key, &input).await;
        assert_eq!(result, json!({ "exitCode": 0, "stdout": "3 pages" }));
        assert_eq!(gateway.api.executions().len(), runs, "{input}");
    }
}

#[tokio::test]
async fn a_skill_that_is_not_listed_has_its_files_and_scripts_while_its_text_is_there() {
    let gateway = scripted("auto");
    let hidden =
        json!({ "body": "Count.", "disableModelInvocation": true, "triggers": { "keywords": ["pages"] } });
    let files = json!([{ "path": "a.sh", "content": "ls" }]);
    gateway.skill("team", "pdf", &json!({ "run": null, "instructions": hidden, "files": files }));
    let input = json!({ "name": "pdf", "path": "a.sh" });
    for (text, offered, runs) in [
        ("hi", "", 0),
        ("how many pages", "read_skill_file,run_skill_script", 1),
        ("/pdf", "read_skill_file,run_skill_script", 2),
    ] {
        if !offered.is_empty() {
            will_say(&gateway, OpenAiChat, Some(("read_skill_file", &input)), false);
            will_say(&gateway, OpenAiChat, Some(("run_skill_script", &input)), false);
        }
        will_say(&gateway, OpenAiChat, None, false);
        let answer = gateway.post(CHAT, &asking(OpenAiChat, text, false).1).await;
        assert_eq!(answer.header("x-skillet-offered"), offered, "{text}");
        assert_eq!(gateway.api.executions().len(), runs, "{text}");
        assert!(!gateway.provider.texts().pop().unwrap().contains("<available_skills>"), "{text}");
    }
    // Without the text a router cannot run it either.
    assert_eq!(intercepted(&gateway, &[], &input).await["error"]["reason"], "SkillNotFound");
}

#[tokio::test]
async fn a_person_confirms_the_script_of_a_hybrid_skill() {
    let gateway = scripted("hybrid");
    let (tool, input) = (RUN_SCRIPT_WITH_CONFIRMATION, call());
    let result = intercepted(&gateway, &[], &input).await;
    assert_eq!(result["error"]["reason"], "NotConfirmed", "{result}");
    for is_offered_later in [true, false] {
        let before = gateway.api.executions().len();
        will_say(&gateway, OpenAiChat, Some((tool, &input)), false);
        let answer = gateway.post(CHAT, &asking(OpenAiChat, "pages", false).1).await;
        assert!(answer.text.contains("The skill pdf waits"), "{}", answer.text);
        assert_eq!(answer.header("x-skillet-offered"), format!("skill,read_skill_file,{tool}"));
        assert_eq!(gateway.api.executions().len(), before);
        if !is_offered_later {
            gateway.change_policy(|policy| policy.gateway.offer.token_budget = 1);
        }
        confirm(&gateway, &answer, tool, &input).await;
        let made = gateway.api.executions();
        assert_eq!(made.len(), before + 1);
        assert!(made.iter().all(|run| run["spec"]["script"]["path"] == "scripts/pages.py"), "{made:?}");
    }
}

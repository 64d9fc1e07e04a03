//! Cases as OmniRoute would give them, and what becomes of each.

use super::*;
use crate::judge::{Judgement, judge};

fn check(case: &Value, result: &str) {
    let mut whole = json!({"id": "i", "verdict": "compat"});
    whole.as_object_mut().unwrap().extend(case.as_object().unwrap().clone());
    let case: Case = serde_json::from_value(whole).unwrap();
    let answer = match case.kind.as_str() {
        "extract_tool_calls" => extract_tool_calls(&case),
        "splice_results" => splice_results(&case),
        _ => follow_up_body(&case),
    };
    let judgement = match answer.map(|answer| judge(&case, answer)) {
        Ok(Judgement::Passed) => "passed".to_owned(),
        Ok(Judgement::Failed { got }) => format!("failed {got}"),
        Ok(Judgement::Skipped { why }) | Err(why) => why,
    };
    assert!(judgement.starts_with(result), "{judgement}");
}

fn extract(model: &str, response: &Value, expected: &Value, defect: Option<&str>, result: &str) {
    let verdict = if defect.is_some() { "defect" } else { "compat" };
    let input = json!({"model": model, "response": response});
    check(
        &json!({"kind": "extract_tool_calls", "input": input, "expected": expected, "verdict": verdict, "want": defect}),
        result,
    );
}

#[test]
fn calls_are_read_by_the_models_form() {
    let claude = json!({"content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "t", "name": "n", "input": {"x": 1}}]});
    let call = json!({"calls": [{"id": "t", "name": "n", "arguments": {"x": 1}}]});
    extract("claude-sonnet", &claude, &call, None, "passed");
    extract("mistral", &claude, &json!({"calls": []}), None, "passed");
    extract("gpt-anthropic", &claude, &call, None, "the answer is in the form of OpenAI");
    let made = json!({"calls": [{"id": "$generated", "name": "n", "arguments": {}}]});
    extract("gemini-pro", &json!({"functionCalls": [{"name": "n"}]}), &made, None, "passed");
    extract("gemini-pro", &json!({"functionCalls": []}), &made, None, "failed");
}

#[test]
fn what_the_reference_does_not_read_is_read() {
    let rest = json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "n"}}]}}]});
    extract(
        "gemini",
        &rest,
        &json!({"calls": []}),
        Some("the REST shape candidates[] is read too"),
        "passed",
    );
    extract(
        "claude",
        &json!("text"),
        &json!({"throws": "TypeError"}),
        Some("no calls, no exception"),
        "passed",
    );
}

fn splice(model: &str, response: &Value, expected: &Value, defect: Option<&str>, result: &str) {
    let verdict = if defect.is_some() { "defect" } else { "compat" };
    let context = json!({"owner": "key-a", "customSkillExecutionEnabled": true});
    let input = json!({"fixtures": "runtime", "model": model, "response": response, "context": context});
    check(
        &json!({"kind": "splice_results", "input": input, "expected": expected, "verdict": verdict, "want": defect}),
        result,
    );
}

fn tool_use(name: &str) -> Value {
    json!({"type": "tool_use", "id": name, "name": name, "input": {"id": "9"}})
}

fn tool_result(name: &str, result: &str) -> Value {
    json!({"type": "text", "text": format!("[Skill result: {name}]\n{result}")})
}

#[test]
fn results_stand_in_an_anthropic_answer_as_the_reference_puts_them() {
    let response =
        json!({"content": [tool_use("lookup@1.0.0"), tool_use("broken@1.0.0")], "stop_reason": "tool_use"});
    let content = [
        tool_result("lookup@1.0.0", "{\"record\":\"resolved:9\"}"),
        tool_result("broken@1.0.0", "{\"error\":\"x\"}"),
    ];
    let ended = json!({"content": content, "stop_reason": "end_turn", "stop_sequence": null});
    splice("claude", &response, &json!({"response": ended, "executionsRecorded": 2}), None, "passed");
    splice("claude", &response, &json!({"response": ended, "executionsRecorded": 1}), None, "failed");
    let foreign =
        json!({"content": [tool_use("bash"), tool_use("lookup@latest")], "stop_reason": "tool_use"});
    splice("claude", &foreign, &json!({"response": foreign, "executionsRecorded": 0}), None, "passed");
}

#[test]
fn a_skill_that_cannot_run_is_left_to_the_client() {
    for (name, words, recorded) in
        [("offskill@1.0.0", "Skill is disabled", 0), ("nohandler@1.0.0", "Handler not found", 1)]
    {
        let response = json!({"content": [tool_use(name)], "stop_reason": "tool_use"});
        let content = [tool_result(name, &json!({ "error": words }).to_string())];
        let ended = json!({"content": content, "stop_reason": "end_turn", "stop_sequence": null});
        let expected = json!({"response": ended, "executionsRecorded": recorded});
        splice("claude", &response, &expected, Some("should be left to the client"), "passed");
        splice("claude", &response, &expected, None, "a skill that cannot run");
    }
    let empty = json!({"content": [tool_use("empty@1.0.0")], "stop_reason": "tool_use"});
    let content = [tool_result("empty@1.0.0", "{\"error\":\"Skill execution returned no output\"}")];
    let ended = json!({"content": content, "stop_reason": "end_turn", "stop_sequence": null});
    splice(
        "claude",
        &empty,
        &json!({"response": ended, "executionsRecorded": 1}),
        None,
        "an output is never null",
    );
}

#[test]
fn geminis_results_are_not_thrown_away() {
    let response = json!({"functionCalls": [{"name": "lookup@1.0.0", "args": {"id": "9"}}]});
    let want = "the result is thrown away; continue the conversation";
    splice(
        "gemini",
        &response,
        &json!({"response": response, "executionsRecorded": 1}),
        Some(want),
        "passed",
    );
    splice("gemini", &response, &json!({"response": response, "executionsRecorded": 1}), None, "failed");
}

#[test]
fn the_next_request_is_the_references_but_for_streaming() {
    let answer = json!({"content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}, {"type": "text", "text": "late"}]});
    let turns = json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "{\"a\":1}"}]},
    ]);
    let input = |format: &str| {
        json!({"sourceFormat": format, "sourceBody": {"stream": true, "messages": [{"role": "user", "content": "q"}]},
            "previousResponse": answer, "results": [{"id": "t", "name": "n", "result": {"a": 1}}]})
    };
    let expected = json!({"body": {"stream": false, "messages": turns}});
    check(&json!({"kind": "follow_up_body", "input": input("claude"), "expected": expected}), "passed");
    check(&json!({"kind": "follow_up_body", "input": input("claude"), "expected": {"body": {}}}), "failed");
    check(
        &json!({"kind": "follow_up_body", "input": input("openai"), "expected": expected}),
        "the answer is in the form",
    );
    check(
        &json!({"kind": "follow_up_body", "input": input("cohere"), "expected": expected}),
        "the format is not known",
    );
}

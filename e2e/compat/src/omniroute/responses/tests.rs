//! Cases in the form of the Responses API, through the registry.

use super::*;
use crate::{judge::Judgement, registry::replay};

fn replay_case(case: Value) -> String {
    let case: Case = serde_json::from_value(case).unwrap();
    match replay(&Case { set: "omniroute".into(), ..case }) {
        Judgement::Passed => "passed".to_owned(),
        Judgement::Failed { got } => format!("failed {got}"),
        Judgement::Skipped { why } => why,
    }
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments})
}

fn check_extract(model: &str, response: &Value, expected: &Value, result: &str) {
    let judgement = replay_case(json!({
        "id": "i", "kind": "extract_tool_calls", "verdict": "compat",
        "input": {"model": model, "response": response}, "expected": {"calls": expected},
    }));
    assert!(judgement.starts_with(result), "{response}: {judgement}");
}

#[test]
fn function_calls_of_a_whole_or_wrapped_answer_are_read() {
    let output = json!([{"type": "message", "content": []}, call("c", "lookup@1.0.0", "{\"id\":\"5\"}")]);
    let expected = json!([{"id": "c", "name": "lookup@1.0.0", "arguments": {"id": "5"}}]);
    check_extract("openai", &json!({ "output": output }), &expected, "passed");
    check_extract("gpt-5", &json!({"response": {"output": output}}), &expected, "passed");
    check_extract("openai", &json!({ "output": output }), &json!([]), "failed");
    // Other forms are other dialects', which read nothing here.
    check_extract("claude", &json!({ "output": output }), &json!([]), "passed");
    check_extract("openai", &json!({"choices": []}), &json!([]), "passed");
}

#[test]
fn generated_ids_other_kinds_and_broken_arguments_are_recognized() {
    let made = json!([{"type": "function_call", "name": "a"}, {"type": "custom_tool_call", "name": "b"}]);
    let expected = json!([{"id": "$generated", "name": "a", "arguments": {}}]);
    check_extract("openai", &json!({ "output": made }), &expected, "passed");
    let expected = json!([{"id": "c", "name": "a", "arguments": {}}]);
    let broken = json!({ "output": [call("c", "a", "not-json")] });
    check_extract("openai", &broken, &expected, "arguments that are no JSON");
}

fn check_splice(output: &[Value], is_on: bool, verdict: (&str, &str), expected: &Value, result: &str) {
    let judgement = replay_case(json!({
        "id": "i", "kind": "splice_results", "verdict": verdict.0, "want": verdict.1, "expected": expected,
        "input": {"fixtures": "runtime", "model": "openai", "response": {"output": output},
            "context": {"owner": "key-a", "customSkillExecutionEnabled": is_on}},
    }));
    assert!(judgement.starts_with(result), "{output:?}: {judgement}");
}

fn untouched(output: &[Value]) -> Value {
    json!({"response": {"output": output}, "executionsRecorded": 0})
}

#[test]
fn what_is_not_offered_stays_with_the_client() {
    for name in ["lookup@9.9.9", "lookup@latest", "own", "lookup@^1.0.0"] {
        let output = [call("c", name, "{}")];
        check_splice(&output, true, ("compat", ""), &untouched(&output), "passed");
    }
    let output = [call("c", "lookup@1.0.0", "{}")];
    check_splice(&output, false, ("compat", ""), &untouched(&output), "passed");
    for name in ["offskill@1.0.0", "modeoff@1.0.0"] {
        let copied = json!({"response": {}, "executionsRecorded": 1});
        let want = "a disabled skill is not offered, so the call should be left to the client";
        check_splice(&[call("c", name, "{}")], true, ("defect", want), &copied, "passed");
    }
}

#[test]
fn results_continue_the_conversation() {
    let want = "the client has no answer. Better: continue the conversation (see tool_loop.json)";
    for name in ["lookup@1.0.0", "broken@1.0.0", "slow@1.0.0", "empty@1.0.0"] {
        let output = [call("c", name, "{\"id\":\"9\"}")];
        let copied = json!({"response": {}, "executionsRecorded": 1});
        check_splice(&output, true, ("defect", want), &copied, "passed");
        check_splice(&output, true, ("compat", ""), &copied, "the model gets the results");
    }
}

#[test]
fn a_mixed_answer_has_the_result_as_text_before_the_clients_call() {
    let own = call("d", "own", "{}");
    let text = "[Skill result: lookup@1.0.0]\n{\"record\":\"resolved:9\"}";
    let message = json!({"type": "message", "id": "msg_skillet_c", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]});
    let expected = json!({"response": {"output": [message, own]}, "executionsRecorded": 1});
    let output = [call("c", "lookup@1.0.0", "{\"id\":\"9\"}"), own];
    check_splice(&output, true, ("compat", ""), &expected, "passed");
}

#[test]
fn broken_arguments_run_nothing() {
    let output = [call("c", "lookup@1.0.0", "not-json"), call("d", "own", "{}")];
    let judged = json!({"response": {}, "executionsRecorded": 1});
    check_splice(&output, true, ("compat", ""), &judged, "the model gets the results and is asked again");
}

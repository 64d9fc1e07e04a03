//! Whole answers: calls, the next request, mixed answers.

// What json! makes is given away where it is written.
#![allow(clippy::needless_pass_by_value)]

use serde_json::{Value, json};

use crate::{
    Dialect as _, DialectName, ToolResult,
    anthropic::Anthropic,
    testing::fixtures::{self, check_json_calls},
};

fn result(id: &str, content: &str) -> ToolResult {
    fixtures::result(id, "sum", content)
}

fn check_calls(content: Value, expected: &[(&str, &str, Value)]) {
    check_json_calls(DialectName::Anthropic, &json!({ "content": content }), expected);
}

#[test]
fn calls_are_the_tool_use_blocks() {
    let content = json!([
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "t1", "name": "sum", "input": {"a": 1}},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "mcp_tool_use", "id": "m1", "name": "mail", "input": {}},
        {"type": "tool_use", "id": "t2", "name": "lookup"},
    ]);
    check_calls(content, &[("t1", "sum", json!({"a": 1})), ("t2", "lookup", json!({}))]);
}

#[test]
fn odd_responses_have_no_calls() {
    for odd in [json!(null), json!("x"), json!([1, "tool_use", null, {}]), json!({"type": "tool_use"})] {
        check_calls(odd, &[]);
    }
    assert!(Anthropic.tool_calls(&json!("text")).is_empty());
}

fn check_next(response: Value, results: &[ToolResult], expected_turns: Value) {
    let request = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "q"}]});
    let mut expected = request.clone();
    expected["messages"].as_array_mut().unwrap().extend(expected_turns.as_array().unwrap().clone());
    assert_eq!(Anthropic.next_request(&request, &response, results), expected, "{response}");
}

#[test]
fn the_next_request_has_the_models_turn_as_it_was_and_one_turn_of_results() {
    let content = json!([
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "a", "citations": [1]},
        {"type": "tool_use", "id": "t1", "name": "sum", "input": {"a": 1}, "cache_control": {"type": "ephemeral"}},
        {"type": "tool_use", "id": "t2", "name": "sum", "input": {}},
    ]);
    let results =
        [ToolResult { is_error: true, ..result("t2", "{\"error\":\"e\"}") }, result("t1", "{\"sum\":1}")];
    check_next(
        json!({"content": content}),
        &results,
        json!([
            {"role": "assistant", "content": content},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "{\"sum\":1}"},
                {"type": "tool_result", "tool_use_id": "t2", "content": "{\"error\":\"e\"}", "is_error": true},
            ]},
        ]),
    );
}

#[test]
fn what_the_provider_does_not_take_back_is_mended() {
    let response = json!({"content": [
        {"type": "text", "text": " \n"},
        {"type": "text", "text": "a"},
        {"type": "tool_use", "name": "sum", "input": 5},
        {"type": "text", "text": "late"},
        {"type": "thinking", "thinking": "late", "signature": "s"},
        {"type": "tool_use", "id": "t2", "name": "sum"},
    ]});
    let made = Anthropic.tool_calls(&response)[0].id.clone();
    check_next(
        response,
        &[result(&made, "1")],
        json!([
            {"role": "assistant", "content": [
                {"type": "text", "text": "a"},
                {"type": "tool_use", "id": made, "name": "sum", "input": {}},
                {"type": "thinking", "thinking": "late", "signature": "s"},
                {"type": "tool_use", "id": "t2", "name": "sum", "input": {}},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": made, "content": "1"}]},
        ]),
    );
}

#[test]
fn without_results_only_the_models_turn_is_added() {
    let content = json!([{"type": "text", "text": "a"}]);
    check_next(
        json!({ "content": content }),
        &[result("x", "1")],
        json!([{"role": "assistant", "content": content}]),
    );
    check_next(json!({"content": [{"type": "text", "text": " "}]}), &[], json!([]));
    check_next(json!({"content": "a"}), &[], json!([{"role": "assistant", "content": "a"}]));
    check_next(json!({}), &[], json!([]));
    let odd = json!({"messages": "odd"});
    assert_eq!(Anthropic.next_request(&odd, &json!({}), &[]), odd);
    assert_eq!(Anthropic.next_request(&json!(1), &json!(2), &[]), json!(1));
}

#[test]
fn the_next_round_runs_in_the_container_of_this_one() {
    let response = json!({"content": [], "container": {"id": "c1", "expires_at": "2026"}});
    let next = |container: Value| {
        let request = json!({"messages": [], "container": container});
        Anthropic.next_request(&request, &response, &[])["container"].clone()
    };
    assert_eq!(next(json!(null)), json!("c1"));
    assert_eq!(next(json!({"skills": [1]})), json!({"skills": [1], "id": "c1"}));
    assert_eq!(next(json!("c0")), json!("c0"));
}

fn check_mixed(response: &Value, results: &[ToolResult], expected: Value) {
    assert_eq!(Anthropic.client_response(response, results), expected, "{response}");
}

#[test]
fn results_stand_as_text_before_the_clients_first_call() {
    let (text, late) = (json!({"type": "text", "text": "a"}), json!({"type": "text", "text": "b"}));
    let ours = |id: &str| json!({"type": "tool_use", "id": id, "name": "sum", "input": {}});
    let client = json!({"type": "tool_use", "id": "c1", "name": "bash", "input": {}});
    let server = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let shown = |json: &str| json!({"type": "text", "text": format!("[Skill result: sum]\n{json}")});
    let response =
        json!({"content": [text, ours("t1"), server, client, ours("t2"), late], "stop_reason": "tool_use"});
    let expected =
        json!({"content": [text, server, shown("1"), shown("2"), client, late], "stop_reason": "tool_use"});
    check_mixed(&response, &[result("t1", "1"), result("t2", "2")], expected);
}

#[test]
fn with_no_call_left_the_turn_ends() {
    let ours = json!({"type": "tool_use", "id": "t1", "name": "sum", "input": {}});
    let shown = json!({"type": "text", "text": "[Skill result: sum]\n1"});
    let check = |reason: Value, expected: Value| {
        let mut response = json!({"content": [ours], "usage": {"output_tokens": 3}});
        let mut mixed = json!({"content": [shown], "usage": {"output_tokens": 3}});
        for (into, from) in [(&mut response, reason), (&mut mixed, expected)] {
            into.as_object_mut().unwrap().extend(from.as_object().unwrap().clone());
        }
        check_mixed(&response, &[result("t1", "1")], mixed);
    };
    let ended = json!({"stop_reason": "end_turn", "stop_sequence": null});
    check(json!({"stop_reason": "tool_use"}), ended.clone());
    check(json!({}), ended.clone());
    check(json!({"stop_reason": null, "stop_sequence": null}), ended);
    check(json!({"stop_reason": "max_tokens"}), json!({"stop_reason": "max_tokens"}));
}

#[test]
fn a_response_without_results_of_ours_is_as_it_was() {
    let response =
        json!({"content": [{"type": "tool_use", "id": "c", "name": "bash"}], "stop_reason": "tool_use"});
    check_mixed(&response, &[], response.clone());
    check_mixed(&response, &[result("other", "1")], response.clone());
    check_mixed(&json!("odd"), &[result("t", "1")], json!("odd"));
}

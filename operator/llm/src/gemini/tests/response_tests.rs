//! Whole answers: calls, the next request, mixed answers.

// What json! makes is given away where it is written.
#![allow(clippy::needless_pass_by_value)]

use serde_json::{Value, json};

use crate::{
    Dialect as _, DialectName, ToolResult,
    gemini::{Gemini, response_object},
    testing::fixtures::{self, check_json_calls},
};

fn response(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]})
}

/// The id that a call without one gets.
fn made(response: &Value, call: usize) -> String {
    Gemini.tool_calls(response)[call].id.clone()
}

fn result(id: &str, content: &str) -> ToolResult {
    fixtures::result(id, "sum", content)
}

fn check_calls(response: &Value, expected: &[(&str, &str, Value)]) {
    check_json_calls(DialectName::Gemini, response, expected);
}

#[test]
fn calls_are_read_from_the_parts_of_all_candidates() {
    let parts = json!([
        {"text": "a"},
        {"functionCall": {"name": "sum", "args": {"a": 1}, "id": "f1"}},
        {"functionCall": {"name": "sum"}},
        {"function_call": {"name": "lookup", "args": null}},
    ]);
    let mut whole = response(parts);
    whole["candidates"]
        .as_array_mut()
        .unwrap()
        .push(json!({"content": {"parts": [{"functionCall": {"name": "b"}}]}}));
    check_calls(
        &whole,
        &[
            ("f1", "sum", json!({"a": 1})),
            (&made(&whole, 1), "sum", json!({})),
            (&made(&whole, 2), "lookup", json!({})),
            (&made(&whole, 3), "b", json!({})),
        ],
    );
}

#[test]
fn calls_are_read_from_the_list_of_the_sdks_where_candidates_have_none() {
    let list = json!([{"name": "a", "args": {"x": 1}}, {"id": "i", "name": "b"}, 3]);
    let listed = json!({"functionCalls": list});
    check_calls(&listed, &[(&made(&listed, 0), "a", json!({"x": 1})), ("i", "b", json!({}))]);
    let mut both = response(json!([{"functionCall": {"name": "c", "id": "i"}}]));
    both["functionCalls"] = list;
    check_calls(&both, &[("i", "c", json!({}))]);
}

#[test]
fn odd_responses_have_no_calls() {
    for odd in
        [json!(null), json!("x"), json!({"candidates": {}}), json!({"candidates": [1, {"content": "x"}]})]
    {
        check_calls(&odd, &[]);
    }
    check_calls(&response(json!([{"functionCall": "x"}, null, {"functionCall": null}])), &[]);
}

fn check_next(response: &Value, results: &[ToolResult], expected_turns: Value) {
    let request = json!({"tools": [1], "contents": [{"role": "user", "parts": [{"text": "q"}]}]});
    let mut expected = request.clone();
    expected["contents"].as_array_mut().unwrap().extend(expected_turns.as_array().unwrap().clone());
    assert_eq!(Gemini.next_request(&request, response, results), expected, "{response}");
}

#[test]
fn the_next_request_has_the_models_content_as_it_was_and_one_of_responses() {
    let parts = json!([
        {"text": "hm", "thought": true},
        {"functionCall": {"name": "sum", "args": {"a": 1}, "id": "f1"}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "sum", "args": {}}},
    ]);
    let response = response(parts.clone());
    let results = [result(&made(&response, 1), "[1]"), result("f1", "{\"sum\":1}")];
    check_next(
        &response,
        &results,
        json!([
            {"role": "model", "parts": parts},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "sum", "id": "f1", "response": {"sum": 1}}},
                {"functionResponse": {"name": "sum", "response": {"result": [1]}}},
            ]},
        ]),
    );
}

#[test]
fn a_response_is_an_object_and_says_when_it_is_an_error() {
    let check = |content: &str, is_error: bool, expected: Value| {
        let result = ToolResult { is_error, ..result("f", content) };
        assert_eq!(response_object(&result), expected, "{content}");
    };
    check("{\"a\":1}", false, json!({"a": 1}));
    check("\"text\"", false, json!({"result": "text"}));
    check("{\"a\":[TRUNCATED", false, json!({"result": "{\"a\":[TRUNCATED"}));
    check("{\"error\":\"e\"}", true, json!({"error": "e"}));
    check("{\"a\":1}", true, json!({"error": {"a": 1}}));
    check("{\"a\":", true, json!({"error": "{\"a\":"}));
}

#[test]
fn one_turn_continues_the_first_candidate_that_calls() {
    let silent = json!({"content": {"parts": [{"text": "a"}]}});
    let calling = |id: &str| json!({"content": {"parts": [{"functionCall": {"name": "sum", "id": id}}]}});
    let whole = json!({"candidates": [silent, calling("one"), calling("other")]});
    check_next(
        &whole,
        &[result("one", "{}"), result("other", "{}")],
        json!([
            {"role": "model", "parts": [{"functionCall": {"name": "sum", "id": "one"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "sum", "id": "one", "response": {}}}]},
        ]),
    );
}

#[test]
fn calls_of_the_sdks_list_become_parts_again() {
    let listed = json!({"functionCalls": [{"name": "sum", "args": {"a": 1}}]});
    check_next(
        &listed,
        &[result(&made(&listed, 0), "1")],
        json!([
            {"role": "model", "parts": [{"functionCall": {"name": "sum", "args": {"a": 1}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "sum", "response": {"result": 1}}}]},
        ]),
    );
    check_next(&response(json!([{"text": "a"}])), &[], json!([{"role": "model", "parts": [{"text": "a"}]}]));
    check_next(&response(json!([])), &[], json!([]));
    check_next(&json!({}), &[], json!([]));
    assert_eq!(Gemini.next_request(&json!(1), &json!(2), &[]), json!(1));
}

fn result_text(json: &str) -> Value {
    json!({"text": format!("[Skill result: sum]\n{json}")})
}

#[test]
fn results_precede_the_clients_first_call_which_takes_the_signature() {
    let ours = json!({"functionCall": {"name": "sum", "id": "f1"}, "thoughtSignature": "c2ln"});
    let unnumbered = json!({"functionCall": {"name": "sum"}});
    let client = json!({"functionCall": {"name": "open"}});
    let signed = json!({"functionCall": {"name": "open"}, "thoughtSignature": "c2ln"});
    let text = json!({"text": "a"});
    let whole = response(json!([text, ours, client, unnumbered, client]));
    let results = [result("f1", "1"), result(&made(&whole, 2), "2")];
    let mixed = Gemini.client_response(&whole, &results);
    assert_eq!(mixed, response(json!([text, result_text("1"), result_text("2"), signed, client])));
}

#[test]
fn a_signature_of_the_clients_own_call_stays() {
    let ours = json!({"functionCall": {"name": "sum", "id": "f1"}, "thoughtSignature": "b3Vycw"});
    let client = json!({"functionCall": {"name": "open"}, "thoughtSignature": "dGhlaXJz"});
    let next = json!({"functionCall": {"name": "open"}});
    let mixed = Gemini.client_response(&response(json!([ours, client, next])), &[result("f1", "1")]);
    assert_eq!(mixed, response(json!([result_text("1"), client, next])));
}

#[test]
fn with_no_call_left_the_results_end_the_response() {
    let ours = json!({"functionCall": {"name": "sum", "id": "f1"}});
    let mut whole = response(json!([ours, {"text": "a"}]));
    whole["functionCalls"] = json!([{"name": "sum", "id": "f1"}, {"name": "open"}]);
    let mut expected = response(json!([{"text": "a"}, result_text("1")]));
    expected["functionCalls"] = json!([{"name": "open"}]);
    assert_eq!(Gemini.client_response(&whole, &[result("f1", "1")]), expected);
    assert_eq!(Gemini.client_response(&whole, &[]), whole);
    assert_eq!(Gemini.client_response(&json!("odd"), &[result("f1", "1")]), json!("odd"));
}

#[test]
fn results_of_the_sdks_list_stand_in_the_first_candidate() {
    let listed = json!({"functionCalls": [{"name": "sum"}, {"name": "open"}]});
    let mixed = Gemini.client_response(&listed, &[result(&made(&listed, 0), "1")]);
    let mut expected = response(json!([result_text("1")]));
    expected["functionCalls"] = json!([{"name": "open"}]);
    assert_eq!(mixed, expected);
}

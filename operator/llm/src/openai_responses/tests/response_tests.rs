//! Whole answers: calls, the next request, answers with the client's own calls.

use serde_json::{Value, json};

use crate::{
    Arguments, Dialect as _, DialectName, Usage,
    openai_responses::OpenAiResponses,
    testing::fixtures::{self, result},
};

fn function_call(call_id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{call_id}"), "call_id": call_id, "name": name, "arguments": arguments, "status": "completed"})
}

fn message(id: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]})
}

fn response(output: &[Value]) -> Value {
    json!({"id": "resp_1", "object": "response", "status": "completed", "output": output})
}

fn check_calls(response: &Value, expected: &[(&str, &str, Arguments)]) {
    fixtures::check_calls(DialectName::OpenAiResponses, response, expected);
}

#[test]
fn function_calls_are_read_in_order() {
    let output = [message("m", "hi"), function_call("a", "f", "{\"x\":1}"), function_call("b", "g", "")];
    let expected = [("a", "f", Arguments::Json(json!({"x": 1}))), ("b", "g", Arguments::Json(json!({})))];
    check_calls(&response(&output), &expected);
    let wrapped = json!({"type": "response.completed", "response": response(&output)});
    check_calls(&wrapped, &expected);
}

#[test]
fn arguments_are_taken_as_they_come() {
    let check = |arguments: Value, expected: Arguments| {
        let mut call = function_call("a", "f", "");
        call["arguments"] = arguments;
        check_calls(&response(&[call]), &[("a", "f", expected)]);
    };
    check(json!(" \n"), Arguments::Json(json!({})));
    check(json!(null), Arguments::Json(json!({})));
    check(json!({"x": 1}), Arguments::Json(json!({"x": 1})));
    check(json!("null"), Arguments::Json(json!({})));
    check(json!("[1]"), Arguments::Json(json!({})));
    check(json!([1]), Arguments::Json(json!({})));
    check(json!("{\"x\":"), Arguments::NotJson("{\"x\":".into()));
    let deep = "[".repeat(500) + &"]".repeat(500);
    check(json!(deep), Arguments::NotJson(deep));
}

#[test]
fn an_id_is_the_call_id_or_the_items_own() {
    let ids = |item: Value| OpenAiResponses.tool_calls(&response(&[item]))[0].id.clone();
    assert_eq!(ids(json!({"type": "function_call", "id": "i", "call_id": "c", "name": "f"})), "c");
    assert_eq!(ids(json!({"type": "function_call", "id": "i", "call_id": "", "name": "f"})), "i");
}

#[test]
fn a_call_that_is_no_plain_function_call_never_has_an_offered_name() {
    let output = [
        json!({"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "text"}),
        json!({"type": "function_call", "call_id": "b", "namespace": "crm", "name": "f", "arguments": "{}"}),
        json!({"type": "mcp_approval_request", "id": "c", "name": "f", "arguments": "{}"}),
        json!({"type": "tool_search_call", "execution": "client", "call_id": "d"}),
    ];
    let expected = [
        ("a", "custom_tool_call.f", Arguments::NotJson("text".into())),
        ("b", "crm.f", Arguments::Json(json!({}))),
        ("c", "mcp_approval_request.f", Arguments::Json(json!({}))),
        ("d", "tool_search_call.", Arguments::Json(json!({}))),
    ];
    check_calls(&response(&output), &expected);
}

#[test]
fn what_the_provider_runs_itself_is_no_call() {
    let output = [
        json!({"type": "web_search_call", "id": "w", "status": "completed"}),
        json!({"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "output": "x"}),
        json!({"type": "shell_call", "call_id": "s"}),
        json!({"type": "shell_call_output", "call_id": "s", "output": []}),
        json!({"type": "tool_search_call", "execution": "server"}),
        json!({"type": "reasoning", "id": "r", "summary": []}),
    ];
    check_calls(&response(&output), &[]);
}

#[test]
fn odd_responses_have_no_calls() {
    for odd in [
        json!(null),
        json!("x"),
        json!([]),
        json!({"output": "x"}),
        json!({"output": [null, 1, "x", []]}),
        json!({"response": 5}),
    ] {
        check_calls(&odd, &[]);
        assert_eq!(
            OpenAiResponses.client_response(&odd, &[result("a", "f", "{}")]).is_object(),
            odd.is_object()
        );
        assert_eq!(OpenAiResponses.usage(&odd), Usage::default());
        assert!(OpenAiResponses.next_request(&json!({}), &odd, &[])["input"].is_array());
    }
    assert_eq!(OpenAiResponses.next_request(&json!(5), &json!({}), &[]), json!(5));
}

#[test]
fn the_next_request_has_the_whole_turn_and_a_result_for_each_call() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"});
    let call = function_call("a", "f", "{}");
    let request =
        json!({"model": "m", "input": "Hi", "tools": [], "store": false, "previous_response_id": "resp_0"});
    let next = OpenAiResponses.next_request(
        &request,
        &response(&[reasoning.clone(), message("m", "Let me see."), call.clone()]),
        &[result("a", "f", "{\"ok\":true}")],
    );
    let expected = json!({"model": "m", "tools": [], "store": false, "previous_response_id": "resp_0", "input": [
        {"type": "message", "role": "user", "content": "Hi"},
        reasoning, message("m", "Let me see."), call,
        {"type": "function_call_output", "call_id": "a", "output": "{\"ok\":true}"},
    ]});
    assert_eq!(next, expected);
    let list = json!({"input": [{"role": "user", "content": "Hi"}]});
    let next = OpenAiResponses.next_request(&list, &response(&[]), &[]);
    assert_eq!(next, list);
}

#[test]
fn a_conversation_at_the_provider_gets_the_results_alone() {
    let request = json!({"conversation": "conv_1", "input": "Hi"});
    let next = OpenAiResponses.next_request(
        &request,
        &response(&[function_call("a", "f", "{}")]),
        &[result("a", "f", "1")],
    );
    let output = json!({"type": "function_call_output", "call_id": "a", "output": "1"});
    assert_eq!(next, json!({"conversation": "conv_1", "input": [output]}));
}

fn check_input(item: Value, store: Option<bool>, expected: Option<Value>) {
    let request = store.map_or_else(|| json!({}), |store| json!({ "store": store }));
    let next = OpenAiResponses.next_request(&request, &response(&[item]), &[]);
    let expected: Vec<Value> = expected.into_iter().collect();
    assert_eq!(next["input"], json!(expected));
}

#[test]
fn the_response_says_whether_it_is_stored_before_the_request_does() {
    let bare = json!({"type": "reasoning", "id": "rs", "summary": []});
    for (asked, answered, is_kept) in [(true, false, false), (false, true, true)] {
        let mut response = response(std::slice::from_ref(&bare));
        response["store"] = json!(answered);
        let next = OpenAiResponses.next_request(&json!({ "store": asked }), &response, &[]);
        assert_eq!(next["input"].as_array().unwrap().len(), usize::from(is_kept), "{asked} {answered}");
    }
}

#[test]
fn items_lose_what_a_request_may_not_hold() {
    let bare = json!({"type": "reasoning", "id": "rs", "summary": []});
    check_input(bare.clone(), None, Some(bare.clone()));
    check_input(bare.clone(), Some(false), None);
    let nulls = json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": null, "status": null, "content": null});
    check_input(nulls.clone(), Some(true), Some(bare));
    check_input(nulls, Some(false), None);
    let image = json!({"type": "image_generation_call", "id": "ig", "status": "completed", "result": "b64", "size": "1x1", "quality": "low"});
    let kept = json!({"type": "image_generation_call", "id": "ig", "status": "completed", "result": "b64"});
    check_input(image, None, Some(kept));
    let parsed = json!({"type": "compaction", "id": "c", "encrypted_content": "x", "created_by": "y"});
    check_input(parsed, None, Some(json!({"type": "compaction", "id": "c", "encrypted_content": "x"})));
    let call = json!({"type": "function_call", "name": "f", "arguments": "{}"});
    let mut named = call.clone();
    named["call_id"] = json!(OpenAiResponses.tool_calls(&response(std::slice::from_ref(&call)))[0].id);
    check_input(call, None, Some(named));
}

#[test]
fn a_mixed_response_has_our_results_as_text_before_the_clients_calls() {
    let own = function_call("b", "own", "{}");
    let output =
        [message("m", "hi"), function_call("a", "f", "{}"), own.clone(), function_call("c", "g", "{}")];
    let results = [result("a", "f", "{\"x\":1}"), result("c", "g", "2")];
    let mixed = OpenAiResponses.client_response(&response(&output), &results);
    let text = "[Skill result: f]\n{\"x\":1}\n\n[Skill result: g]\n2";
    assert_eq!(mixed, response(&[message("m", "hi"), message("msg_skillet_a", text), own]));
}

#[test]
fn with_no_call_left_the_results_stand_at_the_end() {
    let output = [function_call("a", "f", "{}"), message("m", "hi")];
    let wrapped = json!({ "response": response(&output) });
    let mixed = OpenAiResponses.client_response(&wrapped, &[result("a", "f", "1")]);
    let text = message("msg_skillet_a", "[Skill result: f]\n1");
    assert_eq!(mixed, json!({ "response": response(&[message("m", "hi"), text]) }));
    let untouched = response(&[function_call("a", "f", "{}")]);
    assert_eq!(OpenAiResponses.client_response(&untouched, &[]), untouched);
}

#[test]
fn the_first_call_may_be_one_of_another_kind() {
    let custom = json!({"type": "custom_tool_call", "call_id": "b", "name": "f", "input": ""});
    let mixed = OpenAiResponses.client_response(
        &response(&[custom.clone(), function_call("a", "f", "{}")]),
        &[result("a", "f", "1")],
    );
    assert_eq!(mixed["output"], json!([message("msg_skillet_a", "[Skill result: f]\n1"), custom]));
}

#[test]
fn the_id_of_a_result_message_is_one_the_provider_takes_back() {
    let long = "x".repeat(100);
    let mixed = OpenAiResponses
        .client_response(&response(&[function_call(&long, "f", "{}")]), &[result(&long, "f", "1")]);
    assert_eq!(mixed["output"][0]["id"].as_str().map(str::len), Some(64));
}

#[test]
fn reasoning_goes_with_the_call_after_it() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let call =
        json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "look", "arguments": "{}"});
    let result =
        crate::ToolResult { id: "c".into(), name: "look".into(), content: "1".into(), is_error: true };
    let cut =
        OpenAiResponses.without_calls(&json!({"output": [reasoning, call]}), std::slice::from_ref(&result));
    assert_eq!(cut["output"], json!([]));
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []});
    let kept = OpenAiResponses.without_calls(&json!({"output": [reasoning, call, message]}), &[result]);
    assert_eq!(kept["output"], json!([reasoning, message]));
}

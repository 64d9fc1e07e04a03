//! Whole responses: calls, the next request, the client's response.

use serde_json::{Value, json};

use crate::{
    Arguments, Dialect as _, DialectName, Usage,
    openai_chat::{OpenAiChat, read_calls},
    testing::fixtures::{self, result},
};

fn offered(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "Says it", "parameters": {"type": "object", "properties": {}}}})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn response(calls: &[Value]) -> Value {
    json!({"id": "chatcmpl-1", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": null, "refusal": null, "tool_calls": calls,
    }}]})
}

fn check_calls(calls: &[Value], expected: &[(&str, &str, Arguments)]) {
    fixtures::check_calls(DialectName::OpenAiChat, &response(calls), expected);
}

#[test]
fn calls_are_read_with_their_arguments() {
    let json = Arguments::Json;
    check_calls(&[], &[]);
    check_calls(
        &[call("1", "a", "{\"x\":1}"), call("2", "b", ""), call("3", "c", " "), call("4", "d", "[1]")],
        &[
            ("1", "a", json(json!({"x": 1}))),
            ("2", "b", json(json!({}))),
            ("3", "c", json(json!({}))),
            ("4", "d", json(json!({}))),
        ],
    );
    check_calls(&[call("1", "a", "{\"x\":")], &[("1", "a", Arguments::NotJson("{\"x\":".to_owned()))]);
    check_calls(
        &[json!({"id": "1", "function": {"name": "a", "arguments": {"x": 1}}}), json!({"id": "2"}), json!(5)],
        &[("1", "a", json(json!({"x": 1}))), ("2", "", json(json!({})))],
    );
}

#[test]
fn a_flat_call_is_read_by_its_name_and_arguments() {
    let json = Arguments::Json;
    check_calls(
        &[
            json!({"id": "1", "name": "a", "arguments": "{\"x\":1}"}),
            json!({"id": "2", "type": "function", "name": "b"}),
        ],
        &[("1", "a", json(json!({"x": 1}))), ("2", "b", json(json!({})))],
    );
}

#[test]
fn a_custom_tools_call_can_be_no_skills() {
    check_calls(
        &[json!({"id": "1", "type": "custom", "custom": {"name": "a", "input": "free"}})],
        &[("1", "custom.a", Arguments::NotJson("free".to_owned()))],
    );
}

#[test]
fn only_the_first_choice_is_continued_and_all_are_read_on_demand() {
    let mut two = response(&[call("1", "a", "{}")]);
    two["choices"].as_array_mut().unwrap().push(response(&[call("2", "b", "{}")])["choices"][0].clone());
    assert_eq!(OpenAiChat.tool_calls(&two).len(), 1);
    assert_eq!(read_calls(&two).len(), 2);
    two["tool_calls"] = json!([{"call_id": "ci", "id": "i", "function": {"name": "top"}}]);
    let top = read_calls(&two);
    assert_eq!((top.len(), top[0].id.as_str(), top[0].name.as_str()), (1, "ci", "top"));
    assert_eq!(OpenAiChat.tool_calls(&two), top);
}

#[test]
fn nothing_is_read_from_what_is_no_response() {
    for odd in [json!(null), json!([]), json!({"choices": {}}), json!({"choices": [1, {"message": []}]})] {
        assert!(OpenAiChat.tool_calls(&odd).is_empty() && read_calls(&odd).is_empty());
        assert_eq!(OpenAiChat.usage(&odd), Usage::default());
        assert_eq!(OpenAiChat.client_response(&odd, &[]), odd);
        let _ = OpenAiChat.next_request(&odd, &odd, &[result("1", "a", "{}")]);
    }
}

#[test]
fn the_next_request_has_the_models_turn_and_a_message_for_each_result() {
    let request = json!({"model": "m", "n": 2, "messages": [{"role": "user", "content": "q"}], "tools": [offered("a")]});
    let response = response(&[call("1", "a", "{}"), call("2", "b", "{")]);
    let next = OpenAiChat.next_request(
        &request,
        &response,
        &[result("1", "a", "{\"x\":1}"), result("2", "b", "null")],
    );
    assert_eq!(
        next,
        json!({"model": "m", "tools": [offered("a")], "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "refusal": null, "tool_calls": [call("1", "a", "{}"), call("2", "b", "{")]},
            {"role": "tool", "tool_call_id": "1", "content": "{\"x\":1}"},
            {"role": "tool", "tool_call_id": "2", "content": "null"},
        ]})
    );
}

#[test]
fn the_models_turn_has_the_ids_that_its_results_have() {
    let response = response(&[
        json!({"function": {"name": "a"}, "extra_content": {"signature": "s"}}),
        call("1", "a", "{}"),
        call("1", "a", "{}"),
    ]);
    let ids: Vec<String> = OpenAiChat.tool_calls(&response).into_iter().map(|call| call.id).collect();
    let next = OpenAiChat.next_request(&json!({}), &response, &[]);
    let calls = next["messages"][0]["tool_calls"].as_array().unwrap();
    assert_eq!(calls.iter().map(|call| call["id"].as_str().unwrap()).collect::<Vec<_>>(), ids);
    assert_eq!(calls[0]["extra_content"], json!({"signature": "s"}));
    let top = OpenAiChat.next_request(&json!({}), &json!({"tool_calls": [call("1", "a", "{}")]}), &[]);
    assert_eq!(
        top["messages"],
        json!([{"role": "assistant", "content": null, "tool_calls": [call("1", "a", "{}")]}])
    );
}

fn check_mixed(content: Value, expected: Value) {
    let mut response =
        response(&[call("1", "ours", "{}"), call("2", "theirs", "{"), call("3", "ours", "{}")]);
    response["choices"][0]["message"]["content"] = content;
    let mixed =
        OpenAiChat.client_response(&response, &[result("1", "ours", "{}"), result("3", "ours", "[]")]);
    response["choices"][0]["message"]["content"] = expected;
    response["choices"][0]["message"]["tool_calls"] = json!([call("2", "theirs", "{")]);
    assert_eq!(mixed, response);
}

#[test]
fn a_mixed_response_has_our_results_as_text_and_the_clients_calls() {
    let text = "[Skill result: ours]\n{}\n\n[Skill result: ours]\n[]";
    check_mixed(json!(null), json!(text));
    check_mixed(json!(""), json!(text));
    check_mixed(json!("So:"), json!(format!("So:\n\n{text}")));
    check_mixed(
        json!([{"type": "text", "text": "So:"}]),
        json!([{"type": "text", "text": "So:"}, {"type": "text", "text": text}]),
    );
}

#[test]
fn a_response_of_which_no_call_is_left_has_ended() {
    let whole = response(&[call("1", "ours", "{}")]);
    let mixed = OpenAiChat.client_response(&whole, &[result("1", "ours", "{}")]);
    let choice = &mixed["choices"][0];
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(
        choice["message"],
        json!({"role": "assistant", "refusal": null, "content": "[Skill result: ours]\n{}"})
    );
    let mut cut = whole;
    cut["choices"][0]["finish_reason"] = json!("length");
    let mixed = OpenAiChat.client_response(&cut, &[result("1", "ours", "{}")]);
    assert_eq!(mixed["choices"][0]["finish_reason"], "length");
    let top = json!({"tool_calls": [call("1", "ours", "{}"), call("2", "theirs", "{}")]});
    let mixed = OpenAiChat.client_response(&top, &[result("1", "ours", "{}")]);
    assert_eq!(mixed["tool_calls"], json!([call("2", "theirs", "{}")]));
    assert_eq!(mixed["choices"][0]["message"]["content"], "[Skill result: ours]\n{}");
}

//! Whole requests and answers.

use super::*;
use crate::Arguments;

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: "Says it".into(),
        parameters: Arc::new(json!({"type": "object", "properties": {}})),
    }
}

fn offered(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "Says it", "parameters": {"type": "object", "properties": {}}}})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn answer(calls: &[Value]) -> Value {
    json!({"id": "chatcmpl-1", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": null, "refusal": null, "tool_calls": calls,
    }}]})
}

fn result(id: &str, name: &str, content: &str) -> ToolResult {
    ToolResult { id: id.to_owned(), name: name.to_owned(), content: content.to_owned(), is_error: false }
}

#[test]
fn the_clients_tools_and_every_name_of_theirs_are_known() {
    let request = json!({
        "tools": [offered("a"), {"type": "custom", "custom": {"name": "b"}}, {"type": "function", "name": "c"}, 5],
        "functions": [{"name": "d"}],
    });
    assert_eq!(OpenAiChat.client_tools(&request).len(), 4);
    assert_eq!(OpenAiChat.client_tool_names(&request), ["a", "b", "c", "d"]);
    assert!(OpenAiChat.client_tools(&json!({"tools": "x"})).is_empty());
    assert!(OpenAiChat.client_tool_names(&json!(null)).is_empty());
}

#[test]
fn all_text_is_read_in_order() {
    let request = json!({"messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": ["u", {"type": "text", "text": "v"}, {"type": "image_url", "image_url": {"url": "x"}}]},
        {"role": "assistant", "content": null}, 7,
        {"role": "tool", "content": "t"},
    ], "tools": [offered("a")]});
    assert_eq!(OpenAiChat.texts(&request), ["s", "u", "v", "t"]);
    assert!(OpenAiChat.texts(&json!({"messages": {}})).is_empty());
}

#[test]
fn only_true_asks_for_a_stream() {
    assert!(OpenAiChat.is_streaming(&json!({"stream": true})));
    assert!(!OpenAiChat.is_streaming(&json!({"stream": "true"})));
    assert!(!OpenAiChat.is_streaming(&json!({})));
}

#[test]
fn tools_are_offered_after_the_clients_own() {
    let check = |given: Value, expected: Value| {
        let mut request = json!({"tools": given});
        OpenAiChat.offer(&mut request, &[tool("x"), tool("y")]).unwrap();
        assert_eq!(request["tools"], expected);
    };
    check(json!([offered("z"), 1]), json!([offered("z"), 1, offered("x"), offered("y")]));
    check(json!(null), json!([offered("x"), offered("y")]));
    let mut request = json!({});
    OpenAiChat.offer(&mut request, &[]).unwrap();
    assert_eq!(request, json!({}));
    OpenAiChat.offer(&mut request, &[tool("x")]).unwrap();
    assert_eq!(request, json!({"tools": [offered("x")]}));
}

#[test]
fn a_request_of_another_shape_is_refused_and_stays() {
    let mut request = json!({"tools": {"a": 1}});
    assert_eq!(OpenAiChat.offer(&mut request, &[tool("x")]).unwrap_err().field, "/tools");
    assert_eq!(request, json!({"tools": {"a": 1}}));
    assert_eq!(OpenAiChat.offer(&mut json!([]), &[]).unwrap_err().to_string(), ": a request is an object");
}

fn check_calls(calls: &[Value], expected: &[(&str, &str, Arguments)]) {
    let read = OpenAiChat.calls(&answer(calls));
    let read: Vec<_> =
        read.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.clone())).collect();
    assert_eq!(read, expected);
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
            ("4", "d", json(json!([1]))),
        ],
    );
    check_calls(&[call("1", "a", "{\"x\":")], &[("1", "a", Arguments::Broken("{\"x\":".to_owned()))]);
    check_calls(
        &[json!({"id": "1", "function": {"name": "a", "arguments": {"x": 1}}}), json!({"id": "2"}), json!(5)],
        &[("1", "a", json(json!({"x": 1}))), ("2", "", json(json!({})))],
    );
}

#[test]
fn a_custom_tools_call_can_be_no_skills() {
    check_calls(
        &[json!({"id": "1", "type": "custom", "custom": {"name": "a", "input": "free"}})],
        &[("1", "custom:a", Arguments::Broken("free".to_owned()))],
    );
}

#[test]
fn missing_and_repeated_ids_are_made_unique_and_stay_the_same() {
    let nameless = json!({"function": {"name": "a", "arguments": "{}"}});
    let answer = answer(&[call("1", "a", "{}"), call("1", "b", "{}"), nameless.clone(), nameless]);
    let ids = |answer: &Value| OpenAiChat.calls(answer).into_iter().map(|call| call.id).collect::<Vec<_>>();
    let read = ids(&answer);
    assert_eq!(read[0], "1");
    assert_eq!(read.iter().collect::<std::collections::HashSet<_>>().len(), 4, "{read:?}");
    assert_eq!(ids(&answer), read);
    let mut later = answer;
    later["id"] = json!("chatcmpl-2");
    assert_ne!(ids(&later)[2], read[2]);
}

#[test]
fn only_the_first_choice_is_continued_and_all_are_read_on_demand() {
    let mut two = answer(&[call("1", "a", "{}")]);
    two["choices"].as_array_mut().unwrap().push(answer(&[call("2", "b", "{}")])["choices"][0].clone());
    assert_eq!(OpenAiChat.calls(&two).len(), 1);
    assert_eq!(read_calls(&two).len(), 2);
    two["tool_calls"] = json!([{"call_id": "ci", "id": "i", "function": {"name": "top"}}]);
    let top = read_calls(&two);
    assert_eq!((top.len(), top[0].id.as_str(), top[0].name.as_str()), (1, "ci", "top"));
    assert_eq!(OpenAiChat.calls(&two), top);
}

#[test]
fn nothing_is_read_from_what_is_no_answer() {
    for odd in [json!(null), json!([]), json!({"choices": {}}), json!({"choices": [1, {"message": []}]})] {
        assert!(OpenAiChat.calls(&odd).is_empty() && read_calls(&odd).is_empty());
        assert_eq!(OpenAiChat.usage(&odd), Usage::default());
        assert_eq!(OpenAiChat.mixed_answer(&odd, &[]), odd);
        let _ = OpenAiChat.next_request(&odd, &odd, &[result("1", "a", "{}")]);
    }
}

#[test]
fn the_next_request_has_the_models_turn_and_a_message_for_each_result() {
    let request = json!({"model": "m", "n": 2, "messages": [{"role": "user", "content": "q"}], "tools": [offered("a")]});
    let answer = answer(&[call("1", "a", "{}"), call("2", "b", "{")]);
    let next = OpenAiChat.next_request(
        &request,
        &answer,
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
    let answer = answer(&[
        json!({"function": {"name": "a"}, "extra_content": {"signature": "s"}}),
        call("1", "a", "{}"),
        call("1", "a", "{}"),
    ]);
    let ids: Vec<String> = OpenAiChat.calls(&answer).into_iter().map(|call| call.id).collect();
    let next = OpenAiChat.next_request(&json!({}), &answer, &[]);
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
    let mut answer = answer(&[call("1", "ours", "{}"), call("2", "theirs", "{"), call("3", "ours", "{}")]);
    answer["choices"][0]["message"]["content"] = content;
    let mixed = OpenAiChat.mixed_answer(&answer, &[result("1", "ours", "{}"), result("3", "ours", "[]")]);
    answer["choices"][0]["message"]["content"] = expected;
    answer["choices"][0]["message"]["tool_calls"] = json!([call("2", "theirs", "{")]);
    assert_eq!(mixed, answer);
}

#[test]
fn a_mixed_answer_has_our_results_as_text_and_the_clients_calls() {
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
fn an_answer_of_which_no_call_is_left_has_ended() {
    let whole = answer(&[call("1", "ours", "{}")]);
    let mixed = OpenAiChat.mixed_answer(&whole, &[result("1", "ours", "{}")]);
    let choice = &mixed["choices"][0];
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(
        choice["message"],
        json!({"role": "assistant", "refusal": null, "content": "[Skill result: ours]\n{}"})
    );
    let mut cut = whole;
    cut["choices"][0]["finish_reason"] = json!("length");
    let mixed = OpenAiChat.mixed_answer(&cut, &[result("1", "ours", "{}")]);
    assert_eq!(mixed["choices"][0]["finish_reason"], "length");
    let top = json!({"tool_calls": [call("1", "ours", "{}"), call("2", "theirs", "{}")]});
    let mixed = OpenAiChat.mixed_answer(&top, &[result("1", "ours", "{}")]);
    assert_eq!(mixed, json!({"tool_calls": [call("2", "theirs", "{}")]}));
}

#[test]
fn usage_is_read_and_put_where_there_is_some() {
    let mut answer = json!({"usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "prompt_tokens_details": {"cached_tokens": 1}}});
    assert_eq!(OpenAiChat.usage(&answer), Usage { input: 3, output: 4 });
    OpenAiChat.put_usage(&mut answer, Usage { input: 10, output: 20 });
    assert_eq!(
        answer,
        json!({"usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30, "prompt_tokens_details": {"cached_tokens": 1}}})
    );
    let mut none = json!({"usage": null});
    OpenAiChat.put_usage(&mut none, Usage { input: 1, output: 1 });
    assert_eq!(none, json!({"usage": null}));
}

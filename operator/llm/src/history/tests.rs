//! Calls and their results as each dialect's clients send them back.

use serde_json::json;
use skillet_core::test_cost::assert_linear;

use super::*;
use crate::{DialectName, ToolResult, confirmation::prompt};

/// Two turns: `pay` with a result that the model has read, then `pay` and `own` with results that it has not.
fn request(dialect: DialectName) -> Value {
    match dialect {
        DialectName::OpenAiChat => {
            let call = |id, name| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{\"a\":1}"}});
            json!({"messages": [
                {"role": "user", "content": "pay"},
                {"role": "assistant", "content": null, "tool_calls": [call("1", "pay")]},
                {"role": "tool", "tool_call_id": "1", "content": "old"},
                {"role": "assistant", "content": "Q", "tool_calls": [call("1", "pay"), call("2", "own")]},
                {"role": "tool", "tool_call_id": "2", "content": "theirs"},
                {"role": "tool", "tool_call_id": "1", "content": "new"},
                {"role": "user", "content": "go on"},
            ]})
        }
        DialectName::OpenAiResponses => {
            let call = |id, name| json!({"type": "function_call", "call_id": id, "name": name, "arguments": "{\"a\":1}"});
            let output = |id, text| json!({"type": "function_call_output", "call_id": id, "output": text});
            json!({"input": [
                {"role": "user", "content": "pay"}, call("1", "pay"), output("1", "old"),
                {"type": "reasoning", "id": "r"}, call("1", "pay"), call("2", "own"),
                {"type": "message", "role": "assistant", "content": "Q"},
                output("2", "theirs"), output("1", "new"), {"role": "user", "content": "go on"},
            ]})
        }
        DialectName::Anthropic => {
            let call = |id, name| json!({"type": "tool_use", "id": id, "name": name, "input": {"a": 1}});
            let result = |id, text| json!({"type": "tool_result", "tool_use_id": id, "content": text});
            json!({"messages": [
                {"role": "user", "content": "pay"},
                {"role": "assistant", "content": [call("1", "pay")]},
                {"role": "user", "content": [result("1", "old")]},
                {"role": "assistant", "content": [call("1", "pay"), call("2", "own"), {"type": "text", "text": "Q"}]},
                {"role": "user", "content": [result("2", "theirs"), result("1", "new"), {"type": "text", "text": "go on"}]},
            ]})
        }
        DialectName::Gemini => {
            let call = |name| json!({"functionCall": {"name": name, "args": {"a": 1}}});
            let response =
                |name, text| json!({"functionResponse": {"name": name, "response": {"result": text}}});
            json!({"contents": [
                {"role": "user", "parts": [{"text": "pay"}]},
                {"role": "model", "parts": [call("pay")]},
                {"role": "user", "parts": [response("pay", "old")]},
                {"role": "model", "parts": [call("pay"), call("own"), {"text": "Q"}]},
                {"role": "user", "parts": [response("own", "theirs"), response("pay", "new"), {"text": "go on"}]},
            ]})
        }
    }
}

fn text(result: &Value) -> &str {
    result.as_str().or_else(|| result["result"].as_str()).unwrap_or_default()
}

#[test]
fn each_result_is_found_with_its_call_and_whether_the_model_has_read_it() {
    for dialect in DialectName::ALL {
        let request = request(dialect);
        let sent = dialect.dialect().history_calls(&request);
        let seen: Vec<_> = sent.iter().map(|call| (call.name, text(call.result), call.is_newest)).collect();
        assert_eq!(
            seen,
            [("pay", "old", false), ("own", "theirs", true), ("pay", "new", true)],
            "{dialect:?}"
        );
        for call in &sent {
            assert_eq!(call.arguments(), Some(json!({"a": 1})), "{dialect:?}");
        }
        let id = if dialect == DialectName::Gemini { "" } else { "2" };
        assert_eq!(sent[1].id, id);
    }
}

#[test]
fn a_result_is_put_in_the_place_of_the_clients_and_nothing_else_changes() {
    for dialect in DialectName::ALL {
        let before = request(dialect);
        let place = dialect.dialect().history_calls(&before)[2].location;
        let mut after = before.clone();
        let result = ToolResult {
            id: "1".into(),
            name: "pay".into(),
            content: "{\"error\":1}".into(),
            is_error: true,
        };
        dialect.dialect().replace_result(&mut after, place, &result);
        let mut wanted = before.clone();
        match dialect {
            DialectName::OpenAiChat => wanted["messages"][5]["content"] = json!("{\"error\":1}"),
            DialectName::OpenAiResponses => wanted["input"][8]["output"] = json!("{\"error\":1}"),
            DialectName::Anthropic => {
                let block = &mut wanted["messages"][4]["content"][1];
                block["content"] = json!("{\"error\":1}");
                block["is_error"] = json!(true);
            }
            DialectName::Gemini => {
                wanted["contents"][4]["parts"][1]["functionResponse"]["response"] = json!({"error": 1});
            }
        }
        assert_eq!(after, wanted, "{dialect:?}");
    }
}

#[test]
fn gateway_texts_after_calls_move_before_them_in_history() {
    let result = ToolResult { id: "1".into(), name: "look".into(), content: "{}".into(), is_error: false };
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "own", "input": {}});
    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "s"});
    let asked = prompt::text("pay", "2", &json!({}), "7.a");
    let turn = |role: &str, blocks: Value| json!({"role": role, "content": blocks});
    let (hm, shown, asked, other) = (text("Hm."), text(&result.to_text()), text(&asked), text("other"));
    for (sent, wanted) in [
        // What a stream gave beside the client's own call, and where it asked too.
        (json!([thinking, hm, call("1"), shown]), json!([thinking, hm, shown, call("1")])),
        (
            json!([call("1"), shown, other, call("2"), asked]),
            json!([shown, other, asked, call("1"), call("2")]),
        ),
        // In order, not of ours, or without calls.
        (json!([shown, call("1")]), json!([shown, call("1")])),
        (json!([call("1"), other]), json!([call("1"), other])),
        (json!([shown, other]), json!([shown, other])),
        (json!("text"), json!("text")),
    ] {
        let user = turn("user", json!([call("1"), shown]));
        let mut request = json!({"messages": [turn("assistant", sent.clone()), user]});
        let is_mended = DialectName::Anthropic.dialect().repair_history(&mut request);
        assert_eq!(request, json!({"messages": [turn("assistant", wanted.clone()), user]}));
        assert_eq!(is_mended, sent != wanted);
    }
}

#[test]
fn no_other_dialect_minds_the_order() {
    for dialect in DialectName::ALL.into_iter().filter(|dialect| *dialect != DialectName::Anthropic) {
        let mut after = request(dialect);
        assert!(!dialect.dialect().repair_history(&mut after));
        assert_eq!(after, request(dialect));
    }
}

/// Replaces the results of a turn with many calls, each refused.
fn replace_results(dialect: DialectName, number: usize) {
    let ids: Vec<String> = (0..number).map(|id| id.to_string()).collect();
    let each = |of: &dyn Fn(&String) -> Value| ids.iter().map(of).collect::<Vec<Value>>();
    let mut request = match dialect {
        DialectName::OpenAiChat => {
            let calls = each(&|id| json!({"id": id, "function": {"name": "a"}}));
            let turn = json!({"role": "assistant", "tool_calls": calls});
            let results = each(&|id| json!({"role": "tool", "tool_call_id": id, "content": "x"}));
            let messages = [vec![turn], results].concat();
            json!({ "messages": messages })
        }
        DialectName::OpenAiResponses => {
            let calls = each(&|id| json!({"type": "function_call", "call_id": id, "name": "a"}));
            let results = each(&|id| json!({"type": "function_call_output", "call_id": id, "output": "x"}));
            let input = [calls, results].concat();
            json!({ "input": input })
        }
        DialectName::Anthropic => {
            let calls = each(&|id| json!({"type": "tool_use", "id": id, "name": "a"}));
            let results = each(&|id| json!({"type": "tool_result", "tool_use_id": id, "content": "x"}));
            json!({"messages": [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]})
        }
        DialectName::Gemini => {
            let calls = each(&|_| json!({"functionCall": {"name": "a"}}));
            let results = each(&|_| json!({"functionResponse": {"name": "a", "response": {}}}));
            json!({"contents": [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]})
        }
    };
    let result = ToolResult { id: "x".into(), name: "a".into(), content: "{}".into(), is_error: true };
    let dialect = dialect.dialect();
    let places: Vec<ResultLocation> =
        dialect.history_calls(&request).iter().map(|call| call.location).collect();
    assert_eq!(places.len(), number);
    places.into_iter().for_each(|place| dialect.replace_result(&mut request, place, &result));
    dialect.repair_history(&mut request);
}

#[test]
fn many_results_of_one_turn_take_no_time_for_each_other() {
    for dialect in DialectName::ALL {
        assert_linear(2_500, |number| replace_results(dialect, number));
    }
}

#[test]
fn a_result_without_its_call_has_no_arguments() {
    let request = json!({"previous_response_id": "resp_1", "input": [
        {"type": "function_call_output", "call_id": "1", "output": "x"}]});
    let sent = DialectName::OpenAiResponses.dialect().history_calls(&request);
    assert_eq!((sent[0].id, sent[0].name, sent[0].arguments()), ("1", "", None));
    assert!(sent[0].is_newest);
}

#[test]
fn what_the_client_approves_is_no_turn_of_the_models() {
    let newest = |after: Value| {
        let request = json!({"input": [
            {"type": "function_call", "call_id": "1", "name": "pay", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "x"}, after]});
        DialectName::OpenAiResponses.dialect().history_calls(&request)[0].is_newest
    };
    assert!(newest(json!({"type": "mcp_approval_response", "approval_request_id": "a", "approve": true})));
    assert!(!newest(json!({"type": "mcp_approval_request", "id": "a"})));
}

#[test]
fn of_two_results_for_one_call_the_first_is_its_own() {
    let result = |text| json!({"role": "tool", "tool_call_id": "1", "content": text});
    let call = json!({"id": "1", "function": {"name": "pay", "arguments": ""}});
    let request =
        json!({"messages": [{"role": "assistant", "tool_calls": [call]}, result("a"), result("b")]});
    let sent = DialectName::OpenAiChat.dialect().history_calls(&request);
    let arguments: Vec<_> = sent.iter().map(HistoryCall::arguments).collect();
    assert_eq!(arguments, [Some(json!({})), None]);
}

#[test]
fn what_is_of_another_shape_holds_no_calls_and_stays() {
    let odd = [
        json!(null),
        json!([1]),
        json!({"messages": 1, "input": "text", "contents": {}}),
        json!({"messages": [1, {"role": "tool"}, {"role": "assistant", "tool_calls": [1, {}]}, {"role": "user", "content": [1]}],
            "input": [1, {"type": "function_call_output"}, {"type": "function_call"}],
            "contents": [1, {"parts": [1]}, {"role": "model", "parts": [{"functionCall": 1}]}]}),
    ];
    let result = ToolResult { id: "1".into(), name: "n".into(), content: "c".into(), is_error: false };
    for (dialect, odd) in
        DialectName::ALL.into_iter().flat_map(|dialect| odd.iter().map(move |odd| (dialect, odd)))
    {
        let sent = dialect.dialect().history_calls(odd);
        assert!(sent.iter().all(|call| call.arguments().is_none()), "{dialect:?} {odd}");
        let mut after = odd.clone();
        dialect.dialect().replace_result(&mut after, ResultLocation { turn: 9, part: 9 }, &result);
        assert_eq!(after, *odd);
    }
}

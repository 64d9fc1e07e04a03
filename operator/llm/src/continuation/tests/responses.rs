//! Histories of Responses.

use super::*;
use crate::{Dialect as _, ToolResult, openai_responses::OpenAiResponses};

const DIALECT: DialectName = DialectName::OpenAiResponses;

fn round() -> Value {
    json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e1"},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "123"},
    ])
}

fn mixed() -> Value {
    let mut turns = round();
    let more = json!([
        {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "look", "arguments": "{}"},
        {"type": "function_call", "id": "fc_3", "call_id": "call_3", "name": "cancel", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_2", "output": "456"},
    ]);
    turns.as_array_mut().unwrap().extend(more.as_array().unwrap().clone());
    turns
}

fn message(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": text}]})
}

fn user() -> Value {
    json!({"role": "user", "content": "Find it."})
}

#[test]
fn a_reasoning_item_with_the_seal_becomes_the_rounds_before_the_message() {
    let seal = seal(DIALECT, &round(), None);
    let sealed =
        json!({"type": "reasoning", "id": "rs_x", "summary": [], "encrypted_content": seal.as_str()});
    let expected = json!([user(), round()[0], round()[1], round()[2], message("It is 123."), user()]);
    // A client of a stream has the reasoning of the first round too.
    let history = json!([user(), round()[0], sealed, message("It is 123."), user()]);
    assert_eq!(restored(DIALECT, &history), expected);
    let reference = json!({"type": "item_reference", "id": seal.to_item_id(0)});
    assert_eq!(restored(DIALECT, &json!([user(), reference, message("It is 123."), user()])), expected);
}

#[test]
fn client_calls_of_a_sealed_turn_are_not_repeated() {
    let seal = seal(DIALECT, &mixed(), Some("call_3"));
    let call = json!({"type": "function_call", "id": "fc_3", "call_id": seal.as_str(), "name": "cancel", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "canceled"});
    let history = json!([user(), call, output(seal.as_str())]);
    let mut expected = vec![user()];
    expected.extend(mixed().as_array().unwrap().clone());
    expected.push(output("call_3"));
    assert_eq!(restored(DIALECT, &history), json!(expected));
    // A provider that keeps the history has all but the output of the skill.
    let mut request = json!({"previous_response_id": "resp_1", "input": [output(seal.as_str())]});
    assert!(restore(DIALECT, &mut request, Some(&key()), NAMESPACE));
    assert_eq!(request["input"], json!([mixed()[5], output("call_3")]));
}

#[test]
fn a_foreign_seal_is_removed() {
    let sealed = json!({"type": "reasoning", "id": "rs_x", "encrypted_content": seal(DIALECT, &round(), None).as_str()});
    assert_eq!(restored_as(DIALECT, &json!([sealed, message("a")]), "team-b"), json!([message("a")]));
}

#[test]
fn a_reference_to_a_message_of_the_gateway_is_dropped() {
    let reference = |id: &str| json!({"type": "item_reference", "id": id});
    let own = OpenAiResponses.client_response(
        &json!({"output": [{"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}]}),
        &[ToolResult { id: "call_1".into(), name: "look".into(), content: "123".into(), is_error: false }],
    );
    let message = &own["output"][0];
    let id = message["id"].as_str().unwrap();
    assert!(id.starts_with("msg_"), "{own}");
    let history = json!([user(), reference("msg_1"), reference(id), {"id": id}, message, user()]);
    assert_eq!(restored(DIALECT, &history), json!([user(), reference("msg_1"), message, user()]));
}

//! Histories of chat completions.

use super::*;

const DIALECT: DialectName = DialectName::OpenAiChat;

/// A skill's round before the answer.
fn round() -> Value {
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    json!([
        {"role": "assistant", "content": "Let me look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "{\"id\":123}"},
    ])
}

/// The same round, and a second one in which the model calls a skill and the client.
fn mixed() -> Value {
    let mut turns = round();
    let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
    let calls = json!([call("call_2", "look"), call("call_3", "cancel")]);
    let turns_list = turns.as_array_mut().unwrap();
    turns_list.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
    turns_list.push(json!({"role": "tool", "tool_call_id": "call_2", "content": "more"}));
    turns
}

#[test]
fn an_answer_with_the_seal_in_a_field_gets_its_rounds_back() {
    let seal = seal(DIALECT, &round(), None);
    let user = json!({"role": "user", "content": "Find it."});
    let answer = json!({
        "role": "assistant", "content": "Let me look.\n\nIt is 123.", "provider_specific_fields": {"skillet": seal.as_str()},
    });
    let expected = json!([user, round()[0], round()[1], {"role": "assistant", "content": "It is 123."}]);
    assert_eq!(restored(DIALECT, &json!([user, answer])), expected);
}

#[test]
fn an_answer_with_a_marker_gets_its_rounds_back_from_text_and_parts() {
    let text =
        format!("Let me look.\n\nIt is 123.\n\n<!-- skillet {} -->", seal(DIALECT, &round(), None).as_str());
    let restored_text = restored(DIALECT, &json!([{"role": "assistant", "content": text}]));
    assert_eq!(restored_text[2], json!({"role": "assistant", "content": "It is 123."}));
    let parts = json!([{"type": "text", "text": text}]);
    let restored_parts = restored(DIALECT, &json!([{"role": "assistant", "content": parts}]));
    assert_eq!(restored_parts[2]["content"], json!([{"type": "text", "text": "It is 123."}]));
}

#[test]
fn a_client_call_with_the_seal_as_id_becomes_the_true_turn() {
    let seal = seal(DIALECT, &mixed(), Some("call_3"));
    let call =
        json!({"id": seal.as_str(), "type": "function", "function": {"name": "cancel", "arguments": "{}"}});
    let history = json!([
        {"role": "assistant", "content": "Let me look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": seal.as_str(), "content": "canceled"},
    ]);
    let mut expected = mixed();
    expected
        .as_array_mut()
        .unwrap()
        .push(json!({"role": "tool", "tool_call_id": "call_3", "content": "canceled"}));
    assert_eq!(restored(DIALECT, &history), expected);
}

#[test]
fn a_seal_of_another_namespace_is_removed_and_the_history_stays_valid() {
    let seal = seal(DIALECT, &mixed(), Some("call_3"));
    let call =
        json!({"id": seal.as_str(), "type": "function", "function": {"name": "cancel", "arguments": "{}"}});
    let history = json!([
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": seal.as_str(), "content": "canceled"},
    ]);
    let restored = restored_as(DIALECT, &history, "team-b");
    let id = restored[0]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() == 29 && id.starts_with("call_"), "{id}");
    assert_eq!(restored[1]["tool_call_id"], id);
    assert!(!restored.to_string().contains(MAGIC_TEXT));
}

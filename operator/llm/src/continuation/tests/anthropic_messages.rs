//! Histories of Messages.

use super::*;

const DIALECT: DialectName = DialectName::Anthropic;

fn thinking(signature: &str) -> Value {
    json!({"type": "thinking", "thinking": "", "signature": signature})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn assistant(blocks: &Value) -> Value {
    json!({"role": "assistant", "content": blocks})
}

fn tool_use(id: &str, name: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": {}})
}

fn tool_result(id: &str, content: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

fn round() -> Value {
    json!([
        assistant(&json!([thinking("s1"), text("Let me look."), tool_use("toolu_1", "look")])),
        {"role": "user", "content": [tool_result("toolu_1", "123")]},
    ])
}

#[test]
fn thinking_of_both_rounds_stands_in_its_own_turn_again() {
    let seal = seal(DIALECT, &round(), None);
    let seen = json!([
        thinking("s1"),
        text("Let me look."),
        thinking(seal.as_str()),
        thinking("s2"),
        text("It is 123.")
    ]);
    let expected = json!([round()[0], round()[1], assistant(&json!([thinking("s2"), text("It is 123.")]))]);
    assert_eq!(restored(DIALECT, &json!([assistant(&seen)])), expected);
    // Texts that a client has moved and joined.
    let seen =
        json!([thinking("s1"), thinking(seal.as_str()), thinking("s2"), text("Let me look.\n\nIt is 123.")]);
    assert_eq!(restored(DIALECT, &json!([assistant(&seen)])), expected);
}

#[test]
fn results_of_skill_and_client_come_in_one_turn() {
    let mut turns = round();
    let calls = json!([thinking("s2"), tool_use("toolu_2", "look"), tool_use("toolu_3", "cancel")]);
    let list = turns.as_array_mut().unwrap();
    list.push(assistant(&calls));
    list.push(json!({"role": "user", "content": [tool_result("toolu_2", "456")]}));
    let seal = seal(DIALECT, &turns, Some("toolu_3"));
    let history = json!([
        {"role": "user", "content": "Find it."},
        assistant(&json!([thinking("s1"), text("Let me look."), thinking("s2"), tool_use(seal.as_str(), "cancel")])),
        {"role": "user", "content": [tool_result(seal.as_str(), "canceled"), text("Thanks.")]},
    ]);
    let results = json!([tool_result("toolu_2", "456"), tool_result("toolu_3", "canceled"), text("Thanks.")]);
    let expected = json!([
        history[0], turns[0], turns[1], turns[2], {"role": "user", "content": results},
    ]);
    assert_eq!(restored(DIALECT, &history), expected);
}

#[test]
fn a_foreign_seal_leaves_the_answer_and_a_valid_id() {
    let seal = seal(DIALECT, &round(), Some("toolu_3"));
    let history = json!([
        assistant(&json!([thinking(seal.as_str()), text("a"), tool_use(seal.as_str(), "cancel")])),
        {"role": "user", "content": [tool_result(seal.as_str(), "canceled")]},
    ]);
    let restored = restored_as(DIALECT, &history, "team-b");
    assert_eq!(restored[0]["content"].as_array().unwrap().len(), 2);
    assert_eq!(restored[0]["content"][1]["id"], restored[1]["content"][0]["tool_use_id"]);
    assert!(!restored.to_string().contains(MAGIC_TEXT));
}

//! Histories as clients send them back, with the forms that facts about real clients name.

use serde_json::{Value, json};

use super::*;
use crate::confirmation::ConfirmationKey;

const NAMESPACE: &str = "team-a";

fn key() -> ContinuationKey {
    ConfirmationKey::new(&[7; 32]).unwrap().continuation_key()
}

fn open(key: &ContinuationKey, namespace: &str, dialect: DialectName, seal: &str) -> Option<Continuation> {
    key.open(namespace, dialect, seal, &mut OPEN_LIMIT_BYTES.clone())
}

fn seal(dialect: DialectName, turns: &Value, call_id: Option<&str>) -> Seal {
    let turns = turns.as_array().unwrap().clone();
    let continuation = Continuation { turns, call_id: call_id.map(str::to_owned) };
    key().seal(NAMESPACE, dialect, &continuation).unwrap()
}

fn field(dialect: DialectName) -> &'static str {
    match dialect {
        DialectName::OpenAiChat | DialectName::Anthropic => "messages",
        DialectName::OpenAiResponses => "input",
        DialectName::Gemini => "contents",
    }
}

fn restored(dialect: DialectName, history: &Value) -> Value {
    restored_as(dialect, history, NAMESPACE)
}

fn restored_as(dialect: DialectName, history: &Value, namespace: &str) -> Value {
    let mut request = json!({ field(dialect): history });
    restore(dialect, &mut request, Some(&key()), namespace);
    request[field(dialect)].take()
}

mod chat {
    use super::*;

    const DIALECT: DialectName = DialectName::OpenAiChat;

    /// A skill's round before the answer.
    fn round() -> Value {
        let call =
            json!({"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}});
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
        let text = format!(
            "Let me look.\n\nIt is 123.\n\n<!-- skillet {} -->",
            seal(DIALECT, &round(), None).as_str()
        );
        let restored_text = restored(DIALECT, &json!([{"role": "assistant", "content": text}]));
        assert_eq!(restored_text[2], json!({"role": "assistant", "content": "It is 123."}));
        let parts = json!([{"type": "text", "text": text}]);
        let restored_parts = restored(DIALECT, &json!([{"role": "assistant", "content": parts}]));
        assert_eq!(restored_parts[2]["content"], json!([{"type": "text", "text": "It is 123."}]));
    }

    #[test]
    fn a_client_call_with_the_seal_as_id_becomes_the_true_turn() {
        let seal = seal(DIALECT, &mixed(), Some("call_3"));
        let call = json!({"id": seal.as_str(), "type": "function", "function": {"name": "cancel", "arguments": "{}"}});
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
        let call = json!({"id": seal.as_str(), "type": "function", "function": {"name": "cancel", "arguments": "{}"}});
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
}

mod responses {
    use super::*;

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
        let reference = json!({"type": "item_reference", "id": seal.to_item_id()});
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
}

mod anthropic_messages {
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
        let expected =
            json!([round()[0], round()[1], assistant(&json!([thinking("s2"), text("It is 123.")]))]);
        assert_eq!(restored(DIALECT, &json!([assistant(&seen)])), expected);
        // Texts that a client has moved and joined.
        let seen = json!([
            thinking("s1"),
            thinking(seal.as_str()),
            thinking("s2"),
            text("Let me look.\n\nIt is 123.")
        ]);
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
        let results =
            json!([tool_result("toolu_2", "456"), tool_result("toolu_3", "canceled"), text("Thanks.")]);
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
}

mod gemini_contents {
    use super::*;

    const DIALECT: DialectName = DialectName::Gemini;

    fn model(parts: &Value) -> Value {
        json!({"role": "model", "parts": parts})
    }

    fn call(name: &str, signature: &str) -> Value {
        json!({"functionCall": {"name": name, "args": {}}, "thoughtSignature": signature})
    }

    fn response(name: &str) -> Value {
        json!({"functionResponse": {"name": name, "response": {"result": 1}}})
    }

    fn round() -> Value {
        json!([
            model(&json!([{"text": "Let me look."}, call("look", "c2ln")])),
            {"role": "user", "parts": [response("look")]},
        ])
    }

    #[test]
    fn a_thought_with_the_seal_becomes_the_rounds_in_either_alphabet() {
        let seal = seal(DIALECT, &round(), None);
        let expected = json!([round()[0], round()[1], model(&json!([{"text": "It is 1."}]))]);
        for text in [seal.to_bytes_field(), seal.as_str().to_owned()] {
            let thought = json!({"text": "Skills ran.", "thought": true, "thoughtSignature": text});
            let seen = json!([{"text": "Let me look."}, thought, {"text": "It is 1."}]);
            assert_eq!(restored(DIALECT, &json!([model(&seen)])), expected);
            // A client that moves the signature to the text, in snake case.
            let moved = json!([{"text": "Let me look.It is 1.", "thought_signature": text}]);
            assert_eq!(restored(DIALECT, &json!([model(&moved)])), expected);
        }
    }

    #[test]
    fn a_client_call_with_the_seal_becomes_the_true_turn() {
        let mut turns = round();
        let list = turns.as_array_mut().unwrap();
        list.push(model(&json!([call("look", "c2ln"), {"functionCall": {"name": "cancel", "args": {}}}])));
        list.push(json!({"role": "user", "parts": [response("look")]}));
        let seal = seal(DIALECT, &turns, Some("call_skillet_1"));
        let history = json!([
            model(&json!([{"text": "Let me look."}, call("cancel", &seal.to_bytes_field())])),
            {"role": "user", "parts": [response("cancel")]},
        ]);
        let both = json!({"role": "user", "parts": [response("look"), response("cancel")]});
        assert_eq!(restored(DIALECT, &history), json!([turns[0], turns[1], turns[2], both]));
    }

    #[test]
    fn a_foreign_seal_leaves_text_and_call() {
        let seal = seal(DIALECT, &round(), None).to_bytes_field();
        let seen = json!([{"text": "Skills ran.", "thought": true, "thoughtSignature": seal}, {"text": "a"}, call("cancel", &seal)]);
        let expected =
            json!([model(&json!([{"text": "a"}, {"functionCall": {"name": "cancel", "args": {}}}]))]);
        assert_eq!(restored_as(DIALECT, &json!([model(&seen)]), "team-b"), expected);
    }
}

#[test]
fn a_seal_opens_only_for_its_namespace_dialect_and_key() {
    let continuation = Continuation { turns: vec![json!({"a": 1})], call_id: Some("c".into()) };
    let seal = key().seal("a", DialectName::Gemini, &continuation).unwrap();
    let text = seal.as_str();
    assert_eq!(open(&key(), "a", DialectName::Gemini, text), Some(continuation.clone()));
    assert_eq!(open(&key(), "a", DialectName::Gemini, &seal.to_item_id()), Some(continuation.clone()));
    assert_eq!(open(&key(), "a", DialectName::Gemini, &seal.to_bytes_field()), Some(continuation));
    let joined = format!("{text}{text}");
    assert!(open(&key(), "a", DialectName::Gemini, &joined).is_some());
    assert_eq!(open(&key(), "b", DialectName::Gemini, text), None);
    assert_eq!(open(&key(), "a", DialectName::Anthropic, text), None);
    assert_eq!(
        open(&ConfirmationKey::new(&[8; 32]).unwrap().continuation_key(), "a", DialectName::Gemini, text),
        None
    );
    for place in 0..text.len() {
        let mut forged = text.to_owned().into_bytes();
        forged[place] = if forged[place] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(forged).unwrap();
        // The last character may hold bits that no byte uses.
        assert!(
            open(&key(), "a", DialectName::Gemini, &forged).is_none() || place == text.len() - 1,
            "{place}"
        );
    }
}

#[test]
fn a_result_too_large_to_carry_says_so() {
    let mut state: u64 = 1;
    let mut noise = |count: usize| -> String {
        let next = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
        });
        next.take(count).collect()
    };
    let (large, small) = (noise(200_000), noise(1_000));
    let result = |content: &str| json!({"role": "tool", "tool_call_id": "c", "content": content});
    let continuation = Continuation { turns: vec![result(&large), result(&small)], call_id: None };
    let seal = key().seal("a", DialectName::OpenAiChat, &continuation).unwrap();
    assert!(seal.as_str().len() <= LIMIT_BYTES);
    let opened = open(&key(), "a", DialectName::OpenAiChat, seal.as_str()).unwrap();
    assert_eq!(opened.turns[1], result(&small));
    let note = opened.turns[0]["content"].as_str().unwrap();
    assert!(note.contains("ResultNotCarried") && note.contains("200000 bytes"), "{note}");
    // Thinking cannot be left out: a turn without it is not the provider's.
    let thinking = json!({"role": "assistant", "content": large});
    assert_eq!(
        key().seal("a", DialectName::OpenAiChat, &Continuation { turns: vec![thinking], call_id: None }),
        None
    );
}

#[test]
fn a_request_without_seals_is_not_changed() {
    for dialect in DialectName::ALL {
        let mut request = json!({field(dialect): [{"role": "user", "content": "c2tp", "parts": []}]});
        assert!(!restore(dialect, &mut request, Some(&key()), NAMESPACE));
    }
}

#[test]
fn many_small_seals_that_hold_much_do_not_fill_the_memory() {
    let turn = json!({"role": "assistant", "content": "x".repeat(1024 * 1024)});
    let seal = seal(DialectName::OpenAiChat, &json!([turn]), None);
    assert!(seal.as_str().len() < 4096);
    let answer =
        json!({"role": "assistant", "content": "a", "provider_specific_fields": {"skillet": seal.as_str()}});
    let restored = restored(DialectName::OpenAiChat, &vec![answer; 100].into());
    let size = restored.to_string().len();
    assert!(size > 1024 * 1024 && size < 9 * 1024 * 1024, "{size}");
    assert!(!restored.to_string().contains(MAGIC_TEXT));
}

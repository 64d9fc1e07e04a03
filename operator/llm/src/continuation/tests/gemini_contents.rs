//! Histories of Gemini.

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
    let expected = json!([model(&json!([{"text": "a"}, {"functionCall": {"name": "cancel", "args": {}}}]))]);
    assert_eq!(restored_as(DIALECT, &json!([model(&seen)]), "team-b"), expected);
}

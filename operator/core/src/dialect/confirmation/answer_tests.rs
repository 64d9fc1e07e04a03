//! Answers as clients and their libraries may write them.

use serde_json::json;

use super::*;
use crate::dialect::{DialectName, confirmation::NONCE_BYTES, names::SkillIdentity};

const NOW: u64 = 1_000;
const CALLER: &str = "a/agent";

fn key() -> ConfirmationKey {
    ConfirmationKey::new(&[7; 32]).unwrap()
}

fn token(call_id: &str, expires: u64) -> String {
    let call = PendingCall { caller: CALLER, call_id, tool: "pay", arguments: &json!({"a": 1}) };
    let skill = SkillIdentity { namespace: "a", name: "pay", version: "1.0.0" };
    key().make(&call, skill, expires, [1; NONCE_BYTES])
}

fn request(result: &Value) -> Value {
    let call = json!({"id": "c", "type": "function", "function": {"name": "pay", "arguments": "{\"a\": 1}"}});
    json!({"messages": [{"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": result}]})
}

fn said(result: &Value, header: &[String]) -> Word {
    let request = request(result);
    let sent = DialectName::OpenAiChat.dialect().sent_calls(&request);
    word(Some(&key()), CALLER, &sent[0], header, NOW)
}

fn is_confirmed(word: &Word) -> bool {
    matches!(word, Word::Confirmed(Confirmed { is_expired: false, .. }))
}

#[test]
fn a_result_confirms_or_refuses_however_it_is_wrapped() {
    let yes = json!({"skillet": "confirm", "token": token("c", NOW + 1)});
    let text = yes.to_string();
    for result in [
        yes.clone(),
        json!(text),
        json!(format!(" \n{text}\n")),
        json!(json!(text).to_string()),
        json!({ "result": text }),
        json!({ "output": yes }),
        json!(json!({ "result": yes }).to_string()),
        json!([{"type": "text", "text": text}]),
    ] {
        assert!(is_confirmed(&said(&result, &[])), "{result}");
    }
    for result in
        [json!(r#"{"skillet":"refuse","why":"too dear"}"#), json!({"output": {"skillet": "refuse"}})]
    {
        assert_eq!(said(&result, &[]), Word::Refused, "{result}");
    }
}

#[test]
fn what_says_neither_is_no_confirmation_and_what_does_not_speak_of_it_is_none_of_ours() {
    for unclear in [r#"{"skillet":"confirm"}"#, r#"{"skillet":"maybe"}"#, r#"{"skillet":7,"token":"x"}"#] {
        assert_eq!(said(&json!(unclear), &[]), Word::Invalid(ConfirmationError::Malformed), "{unclear}");
    }
    let long = format!("{{\"skillet\":\"refuse\",\"x\":\"{}\"}}", "x".repeat(9_000));
    let deep = "[\"skillet\",".repeat(300);
    let wrapped = (0..5).fold(json!({"skillet": "refuse"}), |inner, _| json!({ "result": inner }));
    let parts = json!([{"text": "skillet"}, {"text": "x".repeat(9_000)}]);
    let texts =
        ["", "skillet", "[]", r#"["skillet"]"#, r#"{"token":"skillet"}"#, "{\"skillet\"", &long, &deep];
    let others = [json!(null), json!(1), json!({"a": 1, "result": {"skillet": "refuse"}}), wrapped, parts];
    for other in texts.map(Value::from).into_iter().chain(others) {
        assert_eq!(said(&other, &[]), Word::Missing, "{other}");
    }
}

#[test]
fn the_word_is_the_results_or_else_the_headers() {
    let (good, old, other) = (token("c", NOW + 1), token("c", NOW), token("d", NOW + 1));
    let confirm = |token: &str| json!({"skillet": "confirm", "token": token}).to_string();
    let (nothing, refuse) = (json!("ordinary"), json!(r#"{"skillet":"refuse"}"#));
    let is_expired = |word: &Word| matches!(word, Word::Confirmed(Confirmed { is_expired: true, .. }));
    assert!(is_expired(&said(&json!(confirm(&old)), &[])));
    assert_eq!(said(&json!(confirm(&other)), &[]), Word::Invalid(ConfirmationError::NotThisCall));
    assert_eq!(said(&refuse, std::slice::from_ref(&good)), Word::Refused);
    assert!(is_confirmed(&said(&nothing, &[other.clone(), old.clone(), good.clone()])));
    assert!(is_expired(&said(&nothing, &[other.clone(), old])));
    assert_eq!(said(&nothing, &[other]), Word::Missing);
    // A result that speaks counts, also where the header would do.
    assert_eq!(said(&json!(r#"{"skillet":"yes"}"#), &[good]), Word::Invalid(ConfirmationError::Malformed));
}

#[test]
fn without_key_or_call_nothing_is_confirmed() {
    let confirm = json!({"skillet": "confirm", "token": token("c", NOW + 1)});
    let request = request(&confirm);
    let sent = DialectName::OpenAiChat.dialect().sent_calls(&request);
    assert_eq!(word(None, CALLER, &sent[0], &[], NOW), Word::Invalid(ConfirmationError::NoKey));
    let alone = json!({"messages": [request["messages"][1]]});
    let sent = DialectName::OpenAiChat.dialect().sent_calls(&alone);
    assert_eq!(word(Some(&key()), CALLER, &sent[0], &[], NOW), Word::Invalid(ConfirmationError::NoCall));
    assert_eq!(
        word(Some(&key()), "b/agent", &DialectName::OpenAiChat.dialect().sent_calls(&request)[0], &[], NOW),
        Word::Invalid(ConfirmationError::NotThisCall)
    );
}

#[test]
fn a_header_has_tokens_between_commas() {
    assert_eq!(tokens(Some(" 7.x, ,8.y ")), ["7.x", "8.y"]);
    assert!(tokens(None).is_empty());
    assert_eq!(tokens(Some(&"7.x,".repeat(1_000))).len(), 32);
}

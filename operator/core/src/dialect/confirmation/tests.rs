//! Tokens, and the answers of the next request.

use serde_json::json;

use super::*;
use crate::dice::Dice;

const NOW: u64 = 1_000;

fn key() -> ConfirmationKey {
    ConfirmationKey::new(&[7; 32]).unwrap()
}

fn call(arguments: &Value) -> PendingCall<'_> {
    PendingCall {
        caller: "system:serviceaccount:a:agent",
        call_id: "call_1",
        skill: "a/pay",
        version: "1.0.0",
        arguments,
    }
}

#[test]
fn a_token_confirms_its_call_until_it_expires() {
    let arguments = json!({"amount": 5});
    let token = key().make(&call(&arguments), NOW);
    assert_eq!(token, key().make(&call(&arguments), NOW));
    assert_eq!(key().verify(&token, &call(&arguments), NOW - 1), Ok(()));
    for now in [NOW, NOW + 1, u64::MAX] {
        let expired = Err(ConfirmationError::Expired { at: NOW });
        assert_eq!(key().verify(&token, &call(&arguments), now), expired);
    }
    assert!(key().make(&call(&arguments), u64::MAX).len() < 80);
    assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)), "{token}");
}

#[test]
fn the_form_of_a_token_never_changes() {
    let token = key().make(&call(&json!({"amount": 5})), NOW);
    assert_eq!(token, "1000.Sge4bVOFX8Ry-GucdGHcVAedCJG3lMCqSldB8px3XGM");
}

fn check_other(other: PendingCall<'_>) {
    let arguments = json!({"amount": 5});
    let token = key().make(&call(&arguments), NOW);
    assert_eq!(key().verify(&token, &other, 0), Err(ConfirmationError::NotThisCall), "{other:?}");
}

#[test]
fn a_token_confirms_nothing_else() {
    let (arguments, more) = (json!({"amount": 5}), json!({"amount": 6}));
    let same = call(&arguments);
    check_other(PendingCall { caller: "system:serviceaccount:b:agent", ..same });
    check_other(PendingCall { call_id: "call_2", ..same });
    check_other(PendingCall { skill: "b/pay", ..same });
    check_other(PendingCall { version: "1.0.1", ..same });
    check_other(call(&more));
    // Moving a border between two parts is another call too.
    check_other(PendingCall { call_id: "call_1a", skill: "/pay", ..same });
    let token = key().make(&same, NOW);
    let other_key = ConfirmationKey::new(&[8; 32]).unwrap();
    assert_eq!(other_key.verify(&token, &same, 0), Err(ConfirmationError::NotThisCall));
    let later = token.replacen("1000.", "2000.", 1);
    assert_eq!(key().verify(&later, &same, 0), Err(ConfirmationError::NotThisCall));
}

#[test]
fn the_same_arguments_written_otherwise_are_the_same() {
    let token = key().make(&call(&json!({"a": 1.0, "b": [2]})), NOW);
    let again: Value = serde_json::from_str("{\"b\":[2],\"a\":1}").unwrap();
    assert_eq!(key().verify(&token, &call(&again), 0), Ok(()));
}

#[test]
fn no_damaged_token_confirms() {
    let arguments = json!({});
    let token = key().make(&call(&arguments), NOW);
    for odd in ["", ".", "1000", "1000.", "x.AAAA", "-1.AAAA", "1000.!!", "99999999999999999999.AAAA"] {
        assert!(key().verify(odd, &call(&arguments), 0).is_err(), "{odd}");
    }
    let mut dice = Dice::new(5);
    for _ in 0..2_000 {
        let mut damaged: Vec<char> = token.chars().collect();
        let at = dice.below(u32::try_from(damaged.len()).unwrap()) as usize;
        damaged[at] = dice.text("abcXYZ019-_.é", 1).chars().next().unwrap_or('~');
        let damaged: String = damaged.into_iter().collect();
        assert_eq!(key().verify(&damaged, &call(&arguments), 0).is_ok(), damaged == token, "{damaged}");
    }
}

#[test]
fn a_key_takes_32_bytes() {
    assert_eq!(ConfirmationKey::new(&[0; 31]).err(), Some(KeyTooShort { bytes: 31 }));
    assert!(ConfirmationKey::new(&[0; 32]).is_ok() && ConfirmationKey::new(&[0; 200]).is_ok());
}

fn check_decision(content: &str, expected: Option<&Decision>) {
    let answers = find_answers(&[ClientResult { call_id: "c", content }], None);
    assert_eq!(answers.decisions.get("c"), expected, "{content}");
}

#[test]
fn a_result_confirms_or_refuses() {
    let confirm = Decision::Confirm { token: "7.x".into() };
    let text = r#"{"skillet":"confirm","token":"7.x"}"#;
    check_decision(text, Some(&confirm));
    check_decision(&format!(" \n{text}\n"), Some(&confirm));
    check_decision(&json!(text).to_string(), Some(&confirm));
    check_decision(&json!({ "result": text }).to_string(), Some(&confirm));
    check_decision(&json!({"output": {"skillet": "refuse"}}).to_string(), Some(&Decision::Refuse));
    check_decision(r#"{"skillet":"refuse","why":"too dear"}"#, Some(&Decision::Refuse));
}

#[test]
fn what_says_neither_is_unclear_and_what_does_not_speak_of_it_is_none() {
    for unclear in [r#"{"skillet":"confirm"}"#, r#"{"skillet":"maybe"}"#, r#"{"skillet":7,"token":"x"}"#] {
        check_decision(unclear, Some(&Decision::Unclear));
    }
    let long = format!("{{\"skillet\":\"refuse\",\"x\":\"{}\"}}", "x".repeat(5_000));
    let deep = "[\"skillet\",".repeat(300);
    for other in
        ["", "skillet", "[]", r#"["skillet"]"#, r#"{"token":"skillet"}"#, "{\"skillet\"", &long, &deep]
    {
        check_decision(other, None);
    }
}

#[test]
fn two_answers_to_one_call_must_agree() {
    let result = |content| ClientResult { call_id: "c", content };
    let (yes, no) = (r#"{"skillet":"confirm","token":"7.x"}"#, r#"{"skillet":"refuse"}"#);
    let decided = |contents: &[&'static str]| {
        let results: Vec<_> = contents.iter().map(|content| result(*content)).collect();
        find_answers(&results, None).decisions.remove("c")
    };
    assert_eq!(decided(&[no, no]), Some(Decision::Refuse));
    assert_eq!(decided(&[yes, no, yes]), Some(Decision::Unclear));
    assert_eq!(decided(&[yes, "other"]), Some(Decision::Confirm { token: "7.x".into() }));
}

#[test]
fn a_header_has_tokens_between_commas() {
    assert_eq!(find_answers(&[], Some(" 7.x, ,8.y ")).tokens, ["7.x", "8.y"]);
    assert!(find_answers(&[], None).tokens.is_empty());
    assert_eq!(find_answers(&[], Some(&"7.x,".repeat(1_000))).tokens.len(), 32);
}

fn check_word(content: Option<&str>, header: Option<&str>, expected: Word) {
    let result = content.map(|content| ClientResult { call_id: "call_1", content });
    let answers = find_answers(result.as_slice(), header);
    let word = word(&key(), &call(&json!({})), &answers, 500);
    assert_eq!(word, expected, "{content:?} {header:?}");
}

#[test]
fn the_word_is_the_results_or_else_the_headers() {
    let arguments = json!({});
    let (good, old) = (key().make(&call(&arguments), NOW), key().make(&call(&arguments), 400));
    let other = key().make(&PendingCall { call_id: "call_2", ..call(&arguments) }, NOW);
    let confirm = |token: &str| json!({"skillet": "confirm", "token": token}).to_string();
    let (refuse, expired) =
        (r#"{"skillet":"refuse"}"#, Word::Invalid(ConfirmationError::Expired { at: 400 }));
    check_word(Some(&confirm(&good)), None, Word::Confirmed);
    check_word(Some(&confirm(&old)), None, expired);
    check_word(Some(&confirm(&other)), None, Word::Invalid(ConfirmationError::NotThisCall));
    check_word(Some(r#"{"skillet":"yes"}"#), Some(&good), Word::Invalid(ConfirmationError::Malformed));
    check_word(Some(refuse), Some(&good), Word::Refused);
    check_word(None, Some(&good), Word::Confirmed);
    check_word(None, Some(&format!("{other},{old},{good}")), Word::Confirmed);
    check_word(None, Some(&format!("{good},{old}")), Word::Confirmed);
    check_word(None, Some(&format!("{old},{other}")), expired);
    check_word(None, Some(&other), Word::Missing);
    check_word(Some("ordinary"), None, Word::Missing);
}

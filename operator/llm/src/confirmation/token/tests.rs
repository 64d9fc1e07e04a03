//! Tokens: what they confirm, and what they do not.

use serde_json::json;

use super::*;
use crate::{Arguments, ToolCall, confirmation::ProviderIds};
use skillet_core::test_rng::TestRng;

const NOW: u64 = 1_000;
const PAY: SkillIdentity<'static> = SkillIdentity { namespace: "a", name: "pay", version: "1.0.0" };

fn key() -> ConfirmationKey {
    ConfirmationKey::new(&[7; 32]).unwrap()
}

fn call(arguments: &Value) -> PendingCall<'_> {
    PendingCall { caller: "system:serviceaccount:a:agent", call_id: "call_1", tool: "pay", arguments }
}

fn token(arguments: &Value) -> String {
    key().make(&call(arguments), PAY, NOW, [1; NONCE_BYTES])
}

#[test]
fn a_token_confirms_its_call_and_says_when_it_is_too_late_to_begin() {
    let arguments = json!({"amount": 5});
    let token = token(&arguments);
    let code = token.rsplit('.').next().unwrap().to_owned();
    let confirmed = |is_expired| Confirmed {
        namespace: "a".into(),
        skill: "pay".into(),
        version: "1.0.0".into(),
        code: code.clone(),
        is_expired,
    };
    assert_eq!(key().verify(&token, &call(&arguments), NOW - 1), Ok(confirmed(false)));
    for now in [NOW, NOW + 1, u64::MAX] {
        assert_eq!(key().verify(&token, &call(&arguments), now), Ok(confirmed(true)));
    }
    assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)), "{token}");
}

#[test]
fn the_form_of_a_token_never_changes() {
    let wanted = "1000.AQEBAQEBAQEBAQEB.YS9wYXkvMS4wLjA.TWRimAQNXo95R2SaVXIullNFHNKumMptSGCpZEPIO7I";
    assert_eq!(token(&json!({"amount": 5})), wanted);
}

#[test]
fn a_token_confirms_no_other_call() {
    let (arguments, more) = (json!({"amount": 5}), json!({"amount": 6}));
    let (same, token) = (call(&arguments), token(&arguments));
    for other in [
        PendingCall { caller: "system:serviceaccount:b:agent", ..same },
        PendingCall { call_id: "call_2", ..same },
        PendingCall { tool: "refund", ..same },
        call(&more),
        // Moving a border between two parts is another call too.
        PendingCall { call_id: "call_1p", tool: "ay", ..same },
    ] {
        assert_eq!(key().verify(&token, &other, 0), Err(ConfirmationError::NotThisCall), "{other:?}");
    }
    let other_key = ConfirmationKey::new(&[8; 32]).unwrap();
    assert_eq!(other_key.verify(&token, &same, 0), Err(ConfirmationError::NotThisCall));
}

#[test]
fn neither_date_nor_skill_of_a_token_can_be_changed() {
    let arguments = json!({"amount": 5});
    let token = token(&arguments);
    let skill = |text: &str| URL_SAFE_NO_PAD.encode(text);
    for changed in [
        token.replacen("1000.", "2000.", 1),
        token.replacen("AQEB", "AQEC", 1),
        token.replacen(&skill("a/pay/1.0.0"), &skill("b/pay/1.0.0"), 1),
        token.replacen(&skill("a/pay/1.0.0"), &skill("a/pay/1.0.1"), 1),
    ] {
        assert_ne!(changed, token);
        let verified = key().verify(&changed, &call(&arguments), 0);
        assert_eq!(verified, Err(ConfirmationError::NotThisCall), "{changed}");
    }
}

#[test]
fn two_questions_about_calls_that_are_alike_are_two() {
    let arguments = json!({});
    let code = |nonce| {
        let token = key().make(&call(&arguments), PAY, NOW, [nonce; NONCE_BYTES]);
        key().verify(&token, &call(&arguments), 0).unwrap().code
    };
    assert_eq!(code(1), code(1));
    assert_ne!(code(1), code(2));
}

#[test]
fn the_same_arguments_written_otherwise_are_the_same() {
    let token = token(&json!({"a": 1.0, "b": [2]}));
    let again: Value = serde_json::from_str("{\"b\":[2],\"a\":1}").unwrap();
    assert!(key().verify(&token, &call(&again), 0).is_ok());
}

#[test]
fn no_damaged_token_confirms() {
    let arguments = json!({});
    let token = token(&arguments);
    for odd in
        ["", ".", "...", "1000", "1000.", "x.AAAA", "-1.AAAA", "1000.!!", "99999999999999999999.A.B.AAAA"]
    {
        assert!(key().verify(odd, &call(&arguments), 0).is_err(), "{odd}");
    }
    let mut rng = TestRng::new(5);
    for _ in 0..2_000 {
        let mut damaged: Vec<char> = token.chars().collect();
        let at = rng.below(u32::try_from(damaged.len()).unwrap()) as usize;
        damaged[at] = rng.text("abcXYZ019-_.é", 1).chars().next().unwrap_or('~');
        let damaged: String = damaged.into_iter().collect();
        assert_eq!(key().verify(&damaged, &call(&arguments), 0).is_ok(), damaged == token, "{damaged}");
    }
}

#[test]
fn a_key_takes_32_bytes() {
    assert_eq!(ConfirmationKey::new(&[0; 31]).err(), Some(KeyTooShort { bytes: 31 }));
    assert!(ConfirmationKey::new(&[0; 32]).is_ok() && ConfirmationKey::new(&[0; 200]).is_ok());
}

#[test]
fn an_id_that_the_response_does_not_hold_was_made_here() {
    let call =
        |id: &str| ToolCall { id: id.to_owned(), name: "pay".into(), arguments: Arguments::Json(json!({})) };
    let response = json!({"choices": [{"message": {"tool_calls": [{"id": "call_1"}], "content": "made"}}]});
    let ids = ProviderIds::of(&response);
    assert_eq!((ids.of_call(&call("call_1")), ids.of_call(&call("made"))), ("call_1", ""));
    assert_eq!(ProviderIds::of(&json!({"output": [{"call_id": "c"}]})).of_call(&call("c")), "c");
}

//! Histories as clients send them back, with the forms that facts about real clients name.

mod anthropic_messages;
mod chat;
mod gemini_contents;
mod responses;

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
    let continuation = Continuation { turns, call_id: call_id.map(str::to_owned), session: None };
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

#[test]
fn a_seal_opens_only_for_its_namespace_dialect_and_key() {
    let continuation =
        Continuation { turns: vec![json!({"a": 1})], call_id: Some("c".into()), session: None };
    let seal = key().seal("a", DialectName::Gemini, &continuation).unwrap();
    let text = seal.as_str();
    assert_eq!(open(&key(), "a", DialectName::Gemini, text), Some(continuation.clone()));
    for number in [0, 1, 12] {
        let id = seal.to_item_id(number);
        assert!(is_seal(&id), "{id}");
        assert_eq!(open(&key(), "a", DialectName::Gemini, &id), Some(continuation.clone()));
    }
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
    let continuation =
        Continuation { turns: vec![result(&large), result(&small)], ..Continuation::default() };
    let seal = key().seal("a", DialectName::OpenAiChat, &continuation).unwrap();
    assert!(seal.as_str().len() <= LIMIT_BYTES);
    let opened = open(&key(), "a", DialectName::OpenAiChat, seal.as_str()).unwrap();
    assert_eq!(opened.turns[1], result(&small));
    let note = opened.turns[0]["content"].as_str().unwrap();
    assert!(note.contains("ResultNotCarried") && note.contains("200000 bytes"), "{note}");
    // Thinking cannot be left out: a turn without it is not the provider's.
    let thinking = json!({"role": "assistant", "content": large});
    assert_eq!(
        key().seal(
            "a",
            DialectName::OpenAiChat,
            &Continuation { turns: vec![thinking], ..Continuation::default() }
        ),
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

#[test]
fn a_request_says_how_much_its_seals_hold_before_they_are_opened() {
    let turns = json!([{"output": "x".repeat(10_000)}]);
    for dialect in DialectName::ALL {
        let seal = seal(dialect, &turns, None);
        let size = serde_json::to_vec(&json!({ "t": turns })).unwrap().len();
        let history = json!([{"id": seal.as_str(), "content": [seal.to_item_id(1)]}, {"signature": "other"}]);
        let request = json!({ field(dialect): history });
        assert_eq!(carried_bytes(dialect, &request), size, "{dialect:?}");
        let text = format!("Hi. <!-- skillet {} -->", seal.as_str());
        assert_eq!(carried_bytes(dialect, &json!({ field(dialect): text })), size, "{dialect:?}");
        assert_eq!(carried_bytes(dialect, &json!({ "model": text })), 0, "{dialect:?}");
    }
}

#[test]
fn a_seal_of_another_version_is_removed() {
    let dialect = DialectName::OpenAiResponses;
    let old = seal(dialect, &json!([]), None).as_str().replacen("c2tpbGxldGMy", "c2tpbGxldGMx", 1);
    let user = json!({"role": "user", "content": "hi"});
    let history =
        json!([user, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": old}, user]);
    assert_eq!(restored(dialect, &history), json!([user, user]));
}
